#!/usr/bin/env python3
"""scale.py DLC FOLDER [NAME...]: models of one kind in three sizes, each twice the one before; prints each row, and exits 1 where twice the
size takes more than 3 times the processor time, or more memory than a node may. DLC_LONG adds sizes up to a million nodes."""
import os
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from measure import measure

DLC, OUT = sys.argv[1], pathlib.Path(sys.argv[2])
SANITIZED, LONG = bool(os.environ.get("DLC_SANITIZED")), bool(os.environ.get("DLC_LONG"))
info, node, FLOAT = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT


def model(nodes, outputs, weights=()):
    graph = helper.make_graph(nodes, "scale", [info("x", FLOAT, [4])], outputs, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8).SerializeToString()


def numbers(n):
    return [numpy_helper.from_array(np.full(4, i, np.float32), f"w{i}") for i in range(n)]


def chain(n):
    ops = ["Relu", "Neg", "Abs", "Sigmoid"]
    return model([node(ops[i % 4], [f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)], [info("y", FLOAT, [4])])


def concat(n):
    adds = [node("Add", ["x", f"w{i}"], [f"a{i}"]) for i in range(n)]
    return model([*adds, node("Concat", [f"a{i}" for i in range(n)], ["y"], axis=0)], [info("y", FLOAT, None)], numbers(n))


def outputs(n):
    return model([node("Add", ["x", f"w{i}"], [f"a{i}"]) for i in range(n)], [info(f"a{i}", FLOAT, [4]) for i in range(n)], numbers(n))


def initializers(n):
    return model([node("Add", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)],
                 [info("y", FLOAT, [4])], numbers(n))


def readers(n):
    """One value that many read."""
    nodes = [node("Neg", ["x"], ["r"]), *(node("Add", ["r", f"w{i}"], [f"a{i}"]) for i in range(n))]
    return model([*nodes, node("Sum", [f"a{i}" for i in range(n)], ["y"])], [info("y", FLOAT, [4])], numbers(n))


def scan(n):
    """A loop of n steps, of which each does some things."""
    body = [node("Add", ["s", "e"], ["a0"]), *(node(op, [f"a{i}"], [f"a{i + 1}"]) for i, op in enumerate(["Tanh", "Neg", "Abs", "Sigmoid"] * 6)),
            node("Identity", ["a24"], ["t"])]
    inner = helper.make_graph(body, "step", [info("s", FLOAT, [4]), info("e", FLOAT, [4])], [info("a24", FLOAT, [4]), info("t", FLOAT, [4])])
    rows = numpy_helper.from_array(np.zeros((n, 4), np.float32), "rows")
    return model([node("Scan", ["x", "rows"], ["y", "all"], body=inner, num_scan_inputs=1)], [info("y", FLOAT, [4]), info("all", FLOAT, [n, 4])], [rows])


def trees(n):
    """A forest of n trees of 31 nodes."""
    inside, most = 15, 31
    at = [i for _ in range(n) for i in range(most)]
    forest = node("TreeEnsembleRegressor", ["r"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=[t for t in range(n) for _ in range(most)],
                  nodes_nodeids=at, nodes_featureids=[i % 4 for i in at], nodes_values=[float(i % 7) for i in at],
                  nodes_modes=["BRANCH_LEQ" if i < inside else "LEAF" for i in at], nodes_truenodeids=[2 * i + 1 if i < inside else 0 for i in at],
                  nodes_falsenodeids=[2 * i + 2 if i < inside else 0 for i in at], target_treeids=[t for t in range(n) for _ in range(most - inside)],
                  target_nodeids=list(range(inside, most)) * n, target_ids=[0] * (n * (most - inside)), target_weights=[0.5] * (n * (most - inside)))
    return model([node("Reshape", ["x", "two"], ["r"]), forest], [info("y", FLOAT, [1, 1])], [numpy_helper.from_array(np.array([1, 4]), "two")])


# the smallest of the three sizes, the largest for DLC_LONG, KB a node may take beyond 60 MiB
ROWS = {"chain": (chain, 5000, 1_000_000, 0.9), "concat": (concat, 300, 5000, 20), "outputs": (outputs, 1500, 50_000, 8),
        "initializers": (initializers, 1500, 50_000, 6), "readers": (readers, 300, 20_000, 20),
        "scan": (scan, 100, 10_000, 1), "trees": (trees, 500, 20_000, 8)}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name in sys.argv[3:] or ROWS:
        make, least, most, kb = ROWS[name]
        before = None
        for n in [least, 2 * least, 4 * least] + [most] * LONG:
            (OUT / "scale.onnx").write_bytes(make(n))
            start = os.times()
            status, _, mib, text = measure([DLC, "compile", OUT / "scale.onnx", "-o", OUT / "scale.so", "--quiet", "--jobs", "1"], 240)
            seconds = os.times().children_user + os.times().children_system - start.children_user - start.children_system
            is_good = status == 0 and (SANITIZED or mib <= 60 + n * kb / 1024)
            if before and n < most:
                is_good &= seconds <= 3 * before + 0.3
            before = seconds
            bad += not is_good
            print(f"{'ok ' if is_good else 'BAD'} {name} of {n}: exit {status}, {seconds:.2f} s, {mib:.0f} MiB {text[:200]}", flush=True)
    for path in OUT.glob("scale.*"):
        path.unlink()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
