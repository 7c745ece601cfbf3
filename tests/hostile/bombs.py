#!/usr/bin/env python3
"""bombs.py DLC FOLDER [NAME...]: small files that ask for much. Each is done or refused (with a sentence) within 5 s of CPU time and
1 GiB; prints those that are not and exits 1. Without names and DLC_LONG of odd_bombs.py every third, of later ones every sixth."""
import io
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import zipfile
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from far_bombs import FAR
from late_bombs import LATE
from more_bombs import MORE
from odd_bombs import ODD
from wild_bombs import WILD

DLC, OUT = sys.argv[1], pathlib.Path(sys.argv[2])
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SANITIZED = bool(os.environ.get("DLC_SANITIZED"))  # which take several times the time and the memory
SECONDS, MIB = 5 * (1 + 3 * SANITIZED), 1024 * (1 + SANITIZED)
info, node = helper.make_tensor_value_info, helper.make_node
array = numpy_helper.from_array


def model(nodes, inputs=None, outputs=None, weights=(), functions=(), opset=17):
    inputs = [info("x", FLOAT, [4])] if inputs is None else inputs
    outputs = [info("y", FLOAT, None)] if outputs is None else outputs
    graph = helper.make_graph(nodes, "bomb", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("d", 1)] if functions else [])
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9).SerializeToString()


def ints(name, values):
    return array(np.array(values, np.int64), name)


def loops(depth, trips):
    def body(d):
        inner = [node("Neg", [f"s{d}"], [f"t{d}"])] if d == depth else [node("Loop", ["n", "c", f"s{d}"], [f"t{d}"], body=body(d + 1))]
        return helper.make_graph([node("Identity", [f"c{d}"], [f"co{d}"]), *inner], f"b{d}",
                                 [info(f"i{d}", INT64, []), info(f"c{d}", BOOL, []), info(f"s{d}", FLOAT, [4])],
                                 [info(f"co{d}", BOOL, []), info(f"t{d}", FLOAT, [4])])
    return model([node("Loop", ["n", "c", "x"], ["y"], body=body(1))], weights=[ints("n", trips), array(np.array(True), "c")])


def ifs(depth):
    def branch(d, side):
        name = f"{side}{d}"
        nodes = [node("Neg", ["x"], [name])] if d == depth else [
            node("If", ["b"], [name], then_branch=branch(d + 1, side + "t"), else_branch=branch(d + 1, side + "e"))]
        return helper.make_graph(nodes, name, [], [info(name, FLOAT, [4])])
    return model([node("If", ["b"], ["y"], then_branch=branch(1, "t"), else_branch=branch(1, "e"))],
                 inputs=[info("x", FLOAT, [4]), info("b", BOOL, [])])


def calls(n, fan):
    made = []
    for i in range(n):
        nodes = [node("Relu", ["a"], ["b"])] if i == n - 1 else [
            node(f"F{i + 1}", ["a" if k == 0 else f"t{k}"], ["b" if k == fan - 1 else f"t{k + 1}"], domain="d") for k in range(fan)]
        made.append(helper.make_function("d", f"F{i}", ["a"], ["b"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]))
    return model([node("F0", ["x"], ["y"], domain="d")], functions=made)


def doubled(op, n, **attributes):
    nodes = [node(op, [f"v{i}"] * 2, [f"v{i + 1}" if i < n - 1 else "y"], **attributes) for i in range(n)]
    return model(nodes, inputs=[], weights=[array(np.ones(1024, np.float32), "v0")])


def generated(shape, op="ConstantOfShape"):
    tail = [node("Neg", ["big"], ["y"])]
    return model([node(op, ["s"], ["big"]), *tail], inputs=[], weights=[ints("s", shape)])


def shaped(op, *weights, inputs=None, **attributes):
    return model([node(op, ["x", *(w.name for w in weights)], ["y"], **attributes)], inputs=inputs, weights=weights)


def names(n, size):
    return model([node("Neg", ["x" if i == 0 else f"{'n' * size}{i}"], ["y" if i == n - 1 else f"{'n' * size}{i + 1}"], "o" * size)
                  for i in range(n)])


def nested(depth):
    def message(tag, body):
        size, head = len(body), b""
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        return tag + head + bytes([size]) + body
    graph = b""
    for _ in range(depth):
        graph = message(b"\x0a", message(b"\x2a", message(b"\x32", graph)))
    return b"\x08\x09" + message(b"\x3a", graph)


def empties(tag, n):
    body = tag * n
    size, head = len(body), b""
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return b"\x08\x09\x3a" + head + bytes([size]) + body + b"\x42\x02\x10\x11"


def npz_overlapping():
    """Every directory entry names the same deflated member of 100 MB."""
    data = io.BytesIO()
    np.save(data, np.zeros(25_000_000, np.float32))
    raw = data.getvalue()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(raw) + packer.flush()
    crc = zlib.crc32(raw)
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0x21, crc, len(packed), len(raw), 5, 0) + b"a.npy" + packed
    entries = b"".join(struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0x21, crc, len(packed), len(raw), 9, 0, 0, 0, 0, 0, 0) +
                       b"a%04d.npy" % i for i in range(60))
    return local + entries + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 60, 60, len(entries), len(local), 0)


def npz_many(n, elems):
    """n members of zeros; what is the same in all of them is compressed once."""
    data = io.BytesIO()
    np.save(data, np.zeros(elems, np.float32))
    raw = data.getvalue()
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(raw) + packer.flush()
    about = struct.pack("<5H3I", 20, 0, 8, 0, 0x21, zlib.crc32(raw), len(packed), len(raw))
    members, entries, at = [], [], 0
    for name in (b"m%d.npy" % i for i in range(n)):
        members.append(b"PK\3\4" + about + struct.pack("<2H", len(name), 0) + name + packed)
        entries.append(b"PK\1\2" + struct.pack("<H", 20) + about + struct.pack("<5H2I", len(name), 0, 0, 0, 0, 0, at) + name)
        at += len(members[-1])
    directory = b"".join(entries)
    return b"".join(members) + directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(directory), at, 0)


def npy_huge():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n"
        archive.writestr("x.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
    return data.getvalue()


BOMBS = {
    "loops_15": lambda: loops(15, 10), "loops_3_1000": lambda: loops(3, 1000), "loops_2_huge": lambda: loops(2, 2 ** 40),
    "loops_90": lambda: loops(30, 2), "ifs_10": lambda: ifs(10),
    "calls_20000": lambda: calls(20000, 1), "calls_12_10": lambda: calls(12, 10), "calls_17_2": lambda: calls(17, 2),
    "calls_60_2": lambda: calls(60, 2),
    "concat_doubled": lambda: doubled("Concat", 40, axis=0), "add_doubled": lambda: doubled("Add", 2000),
    "matmul_big": lambda: model([node("ConstantOfShape", ["s"], ["a"]), node("MatMul", ["a", "a"], ["y"])], inputs=[],
                                weights=[ints("s", [20000, 20000])]),
    "constant_of_shape": lambda: generated([2 ** 31, 2 ** 31]), "constant_2g": lambda: generated([2 ** 29]),
    "constant_negative": lambda: generated([-5]), "range_huge": lambda: model(
        [node("Range", ["a", "b", "c"], ["y"])], inputs=[], weights=[ints("a", 0), ints("b", 2 ** 62), ints("c", 1)]),
    "tile_huge": lambda: shaped("Tile", ints("r", [2 ** 62])), "expand_huge": lambda: shaped("Expand", ints("r", [2 ** 40, 4])),
    "pad_huge": lambda: shaped("Pad", ints("r", [2 ** 62, 2 ** 62])), "pad_large": lambda: shaped("Pad", ints("r", [0, 2 ** 33])),
    "one_hot": lambda: model([node("OneHot", ["i", "d", "v"], ["y"])], inputs=[], weights=[
        ints("i", list(range(1000))), ints("d", 2 ** 31), array(np.array([0, 1], np.float32), "v")]),
    "resize_huge": lambda: model([node("Resize", ["x", "", "s"], ["y"])], inputs=[info("x", FLOAT, [1, 1, 4, 4])],
                                 weights=[array(np.array([1, 1, 1e9, 1e9], np.float32), "s")]),
    "conv_kernel": lambda: model([node("Conv", ["x", "w"], ["y"], dilations=[2 ** 40, 2 ** 40], pads=[2 ** 40] * 4)],
                                 inputs=[info("x", FLOAT, [1, 1, 8, 8])], weights=[array(np.ones((1, 1, 3, 3), np.float32), "w")]),
    "pool_kernel": lambda: model([node("MaxPool", ["x"], ["y"], kernel_shape=[2 ** 31 - 1] * 2, pads=[2 ** 30] * 4)],
                                 inputs=[info("x", FLOAT, [1, 1, 8, 8])]),
    "einsum": lambda: model([node("Einsum", ["x"] * 20, ["y"], equation=",".join("abcdefghijklmnopqrst") + "->abcdefghijklmnopqrst")]),
    "split_many": lambda: model([node("Split", ["x"], [f"o{i}" for i in range(20000)], axis=0, num_outputs=20000)],
                                inputs=[info("x", FLOAT, [20000])], outputs=[info("o0", FLOAT, None)], opset=18),
    "attributes_many": lambda: model([helper.make_node("Neg", ["x"], ["y"], **{f"a{i}": 1 for i in range(20000)})]),
    "inputs_many": lambda: model([node("Sum", ["x"] * 20000, ["y"])]),
    "max_many": lambda: model([node("Max", ["x"] * 20000, ["y"])]),
    "names_long": lambda: names(200, 20000), "names_one": lambda: names(1, 10 ** 7),
    "dims_many": lambda: model([node("Neg", ["x"], ["y"])], inputs=[info("x", FLOAT, [1] * 100000)]),
    "symbols_many": lambda: model([node("Sum", [f"x{i}" for i in range(2000)], ["y"])],
                                  inputs=[info(f"x{i}", FLOAT, [f"d{i}"]) for i in range(2000)]),
    "nested_3000": lambda: nested(3000), "nested_90": lambda: nested(90),
    "empty_nodes": lambda: empties(b"\x0a\x00", 2_000_000), "empty_tensors": lambda: empties(b"\x2a\x00", 500_000),
    "reshapes": lambda: model([node("Reshape", [f"v{i}" if i else "x", "s"], [f"v{i + 1}" if i < 4999 else "y"]) for i in range(5000)],
                              weights=[ints("s", [2, 2])]),
    "transposes": lambda: model([node("Transpose", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < 4999 else "y"], perm=[1, 0])
                                 for i in range(5000)], inputs=[info("x", FLOAT, [64, 32])]),
    "pows": lambda: model([node("Pow", [f"v{i}" if i else "x"] * 2, [f"v{i + 1}" if i < 299 else "y"]) for i in range(300)]),
    "slices": lambda: model([node("Slice", [f"v{i}" if i else "x", "a", "b"], [f"v{i + 1}" if i < 1999 else "y"]) for i in range(2000)],
                            inputs=[info("x", FLOAT, [5000])], weights=[ints("a", [1]), ints("b", [2 ** 62])]),
    "overlapping.npz": npz_overlapping, "many.npz": lambda: npz_many(10000, 16), "zeros.npz": lambda: npz_many(40, 10 ** 7),
    "huge.npz": npy_huge, **MORE, **{name: lambda make=make: make(OUT) for name, make in (ODD | WILD | FAR | LATE).items()},
}


def measure(command):
    """Exit status, CPU seconds and MiB of the largest process, and what was said; the limits end it."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 2))
    with open(OUT / "said", "w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, preexec_fn=limit)
        killer = threading.Timer(60, lambda: os.kill(process.pid, signal.SIGKILL))  # what waits takes no time
        killer.start()
        _, state, usage = os.wait4(process.pid, 0)
        killer.cancel()
        process.returncode = 0
        said.seek(0)
        text = said.read()
    return os.waitstatus_to_exitcode(state), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def command_for(path):
    """What reads a file of that kind."""
    neg = OUT / "neg.onnx"
    return [DLC, *{".npz": ["run", OUT / "neg.so", "--inputs", path], ".so": ["run", path], ".json": ["compile", neg, "--fusion", path, "-o", OUT / "out.so"],
                   ".kernel": ["compile", neg, "--target", "x86-64-v3", "--schedule", path, "-o", OUT / "out.so"],
                   ".schedule": ["compile", neg, "--target", "x86-64-v3", "--schedule", path, "-o", OUT / "out.so"]}.get(
                       path.suffix, ["compile", path, "-o", OUT / "out.so"])]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = Neg(x) }'),
              OUT / "neg.onnx")
    subprocess.run([DLC, "compile", OUT / "neg.onnx", "-o", OUT / "neg.so", "--quiet"], check=True)
    bad = 0
    is_long = bool(os.environ.get("DLC_LONG"))
    names = sys.argv[3:] or [*(set(BOMBS) - set(ODD | WILD | FAR | LATE)), *list(ODD)[:: 1 if is_long else 3],
                              *(name for table in (WILD, FAR, LATE) for name in list(table)[:: 1 if is_long else 6])]
    for name in names:
        before = set(OUT.iterdir())
        path = OUT / (name if "." in name else f"{name}.onnx")
        data = BOMBS[name]()
        if data is not None:
            path.write_bytes(data)
        code, seconds, mib, text = measure(command_for(path))
        for made in set(OUT.iterdir()) - before - {OUT / "said"}:  # the file, and what it needs
            shutil.rmtree(made) if made.is_dir() and not made.is_symlink() else made.unlink()
        said = " ".join(text.split())
        ok = code in (0, 1, 2, 3, 5, 7) and (code == 0 or len(said) > 20) and seconds < SECONDS and mib < MIB
        bad += not ok
        if not ok or len(sys.argv) > 3 or os.environ.get("VERBOSE"):
            print(f"{'ok ' if ok else 'BAD'} {name}: exit {code}, {seconds:.2f} s, {mib:.0f} MiB: {said[:160]}", flush=True)
    print(f"{bad} of {len(names)} bombs went off")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
