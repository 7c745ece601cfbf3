#!/usr/bin/env python3
"""memory.py DLC FOLDER [NAME...]: what compiling takes of memory, against what the model's weights take; prints each row, and exits 1
where one takes more than docs/promises.md allows. Weights are holes in a file, so that they cost no disk."""
import os
import pathlib
import sys

import numpy as np
from onnx import StringStringEntryProto, TensorProto, helper

from measure import measure

DLC, OUT = sys.argv[1], pathlib.Path(sys.argv[2])
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
info, node = helper.make_tensor_value_info, helper.make_node


def weight(name, dims):
    """An external tensor of zeros; its bytes."""
    size = 4
    for dim in dims:
        size *= dim
    with open(OUT / f"{name}.bin", "wb") as file:
        file.truncate(size)
    made = TensorProto(name=name, data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    made.external_data.append(StringStringEntryProto(key="location", value=f"{name}.bin"))
    return made, size


def save(name, nodes, inputs, weights):
    graph = helper.make_graph(nodes, name, inputs, [info("y", FLOAT, None)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (OUT / f"{name}.onnx").write_bytes(model.SerializeToString())


def table():
    """Not repacked: rows are gathered."""
    w, size = weight("table_w", [32768, 2048])
    save("table", [node("Gather", ["table_w", "i"], ["y"])], [info("i", INT64, [4])], [w])
    return size, 1.15


def matmul():
    """Repacked on its way into the file."""
    w, size = weight("matmul_w", [8192, 8192])
    save("matmul", [node("MatMul", ["x", "matmul_w"], ["y"])], [info("x", FLOAT, [4, 8192])], [w])
    return size, 1.15


def scaled(name="scaled", n=4, channels=1024):
    """Computed, then repacked: batch normalisation goes into the weights."""
    weights, nodes, total = [], [], 0
    ones = [helper.make_tensor(f"s{i}", FLOAT, [channels], [1.0 + i] * channels) for i in range(4)]
    for i in range(n):
        w, size = weight(f"{name}_w{i}", [channels, 8192, 1, 1])
        nodes += [node("Conv", [f"x{i}", w.name], [f"c{i}"]), node("BatchNormalization", [f"c{i}", "s0", "s1", "s2", "s3"], [f"b{i}"])]
        weights.append(w)
        total += size
    save(name, [*nodes, node("Sum", [f"b{i}" for i in range(n)], ["y"])], [info(f"x{i}", FLOAT, [1, 8192, 7, 7]) for i in range(n)],
         [*weights, *ones])
    return total, 1.15


def alone():
    """The same of one tensor alone: of what it is computed from, little lies in memory at a time."""
    return scaled("alone", 1, 8192)


def big():
    """2.3 GiB of drawn numbers, repacked: more than one protobuf may hold, and no holes."""
    weights, nodes, total, width = [], [], 0, 5600
    draw = np.random.default_rng(0)
    for i in range(20):
        w, size = weight(f"big_w{i}", [width, width])
        draw.standard_normal((width, width), np.float32).tofile(OUT / f"{w.name}.bin")
        nodes += [node("MatMul", [f"r{i}" if i else "x", w.name], [f"m{i}"]), node("Relu", [f"m{i}"], [f"r{i + 1}" if i < 19 else "y"])]
        weights.append(w)
        total += size
    save("big", nodes, [info("x", FLOAT, ["n", width])], weights)
    return total, 1.6


ROWS = {"table": table, "matmul": matmul, "scaled": scaled, "alone": alone}
LONG = {"big": big}  # by name alone: takes 5 GB of disk


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name in sys.argv[3:] or ROWS:
        size, times = (ROWS | LONG)[name]()
        status, seconds, mib, text = measure([DLC, "compile", OUT / f"{name}.onnx", "-o", OUT / "out.so", "--quiet"], 120)
        most = times * size / 2 ** 20 + 64
        is_good = status == 0 and (mib <= most or bool(os.environ.get("DLC_SANITIZED")))
        print(f"{'ok ' if is_good else 'BAD'} {name}: exit {status}, {seconds:.1f} s, {mib:.0f} MiB for {size >> 20} MiB of weights "
              f"(at most {most:.0f}) {text[:300]}", flush=True)
        bad += not is_good
        for path in OUT.glob(f"{name}_w*.bin"):
            path.unlink()
    (OUT / "out.so").unlink(missing_ok=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
