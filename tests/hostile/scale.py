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
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


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


# the smallest of the three sizes, the largest for DLC_LONG, KB a node may take beyond 60 MiB
ROWS = {"chain": (chain, 5000, 1_000_000, 0.9), "concat": (concat, 300, 5000, 20), "outputs": (outputs, 1500, 50_000, 8),
        "initializers": (initializers, 1500, 50_000, 6), "readers": (readers, 300, 20_000, 20)}


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
