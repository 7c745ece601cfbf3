"""Bombs of a fourth kind, for bombs.py, as in wild_bombs.py: sizes that follow from each other, long ways through few nodes, constants that
are small in the file, texts of kernels and plans, executables cut or altered."""
import json
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper

from more_bombs import BOOL, FLOAT, INT64, STRING, array, info, ints, model, node
from odd_bombs import ML, sized, text
from wild_bombs import npy, npz, value

ANY = helper.make_empty_tensor_value_info


def chain(n, make, inputs=None, weights=(), opset=18, first="x"):
    """make(i, from, to) gives the nodes of one link."""
    nodes = [each for i in range(n) for each in make(i, f"v{i}" if i else first, f"v{i + 1}" if i < n - 1 else "y")]
    return model(nodes, inputs, weights=weights, opset=opset)


def of_one(op, n, extra=(), weights=(), inputs=None, outputs=1, **attributes):
    return chain(n, lambda i, a, b: [node(op, [a, *extra], [b, *(f"{b}_{k}" for k in range(1, outputs))], **attributes)], inputs, weights)


def doubled(n, back):
    """Twice as long, and short again."""
    return chain(n, lambda i, a, b: [node("Concat", [a, a], [f"c{i}"], axis=0), node(back, [f"c{i}", "a", "e"], [b])], [value("x", ["n"])],
                 [ints("a", [0]), ints("e", [4])])


def shuffled(n):
    """Dimensions that go through reshapes and transpositions of symbols."""
    return chain(n, lambda i, a, b: [node("Transpose", [a], [f"t{i}"], perm=[2, 0, 1]), node("Reshape", [f"t{i}", "s"], [f"r{i}"]),
                                     node("Shape", [a], [f"h{i}"]), node("Reshape", [f"r{i}", f"h{i}"], [b])], [value("x", ["n", "m", "k"])], [ints("s", [-1])])


def clamped(n):
    """Slices from and to what is computed of sizes."""
    return chain(n, lambda i, a, b: [node("Shape", [a], [f"s{i}"]), node("Div", [f"s{i}", "two"], [f"h{i}"]), node("Sub", [f"s{i}", f"h{i}"], [f"e{i}"]),
                                     node("Slice", [a, f"h{i}", f"e{i}"], [f"c{i}"]), node("Concat", [f"c{i}", a], [b], axis=0)], [value("x", ["n"])], [ints("two", [2])])


def ranges(n):
    return chain(n, lambda i, a, b: [node("Size", [a], [f"s{i}"]), node("Mul", [f"s{i}", f"s{i}"], [f"q{i}"]), node("Range", ["o", f"q{i}", "one"], [b])],
                 [value("x", ["n"])], [ints("o", 0), ints("one", 1)])


def found(n, op):
    """Each as long as the data say."""
    def link(i, a, b):
        if op == "NonZero":
            return [node("NonZero", [a], [f"z{i}"]), node("Squeeze", [f"z{i}", "zero"], [f"q{i}"]), node("Cast", [f"q{i}"], [b], to=FLOAT)]
        if op == "Compress":
            return [node("Greater", [a, "half"], [f"g{i}"]), node("Compress", [a, f"g{i}"], [b])]
        return [node("Unique", [a], [b])]
    return chain(n, link, [value("x", ["n"])], [ints("zero", [0]), array(np.float32(0.5), "half")])


def mixed(ncaptures, depth):
    """If in Loop in Scan, each of which reads much from outside."""
    reads = [f"v{i}" for i in range(ncaptures)]

    def inside(d, name, kind):
        if d == depth:
            return [node("Sum", [name, *reads], [f"r{d}_{kind}"])], f"r{d}_{kind}"
        inner, gives = inside(d + 1, name, kind)
        if d % 2:
            other = helper.make_graph([node("Sum", [name, *reads], [f"o{d}_{kind}"])], "other", [], [ANY(f"o{d}_{kind}")])
            return [node("If", ["b"], [f"r{d}_{kind}"], then_branch=helper.make_graph(inner, "then", [], [ANY(gives)]), else_branch=other)], f"r{d}_{kind}"
        body = helper.make_graph([node("Identity", [f"c{d}"], [f"co{d}"]), *inner], "body", [info(f"i{d}", INT64, []), info(f"c{d}", BOOL, []), ANY(f"s{d}")],
                                 [ANY(f"co{d}"), ANY(gives)])
        return [node("Loop", ["n", "", name], [f"r{d}_{kind}"], body=body)], f"r{d}_{kind}"
    inner, gives = inside(0, "e", "a")
    body = helper.make_graph([*inner, node("Identity", ["s"], ["t"])], "scan", [ANY("s"), ANY("e")], [ANY("t"), ANY(gives)])
    return model([*(node("Neg", ["x"], [r]) for r in reads), node("Scan", ["x", "rows"], ["y", "all"], body=body, num_scan_inputs=1)],
                 [info("x", FLOAT, [4]), info("rows", FLOAT, ["k", 4]), info("b", BOOL, []), info("n", INT64, [])])


def symbols_together(n):
    return model([node("Concat", [f"x{i}" for i in range(n)], ["y"], axis=0)], [value(f"x{i}", [f"d{i}", 2]) for i in range(n)])


def constants(op, dims, **attributes):
    """Of values that the file gives as fills."""
    fills = [node("ConstantOfShape", [f"s{i}"], [f"c{i}"]) for i in range(len(dims))]
    return model([*fills, node(op, [f"c{i}" for i in range(len(dims))], ["y"], **attributes)], [], weights=[ints(f"s{i}", d) for i, d in enumerate(dims)], opset=18)


def lookup(nkeys, nelems):
    return model([node("ConstantOfShape", ["s"], ["c"], value=helper.make_tensor("v", INT64, [1], [7])),
                  node("LabelEncoder", ["c"], ["y"], domain=ML, keys_int64s=list(range(nkeys)), values_floats=[1.0] * nkeys)], [], weights=[ints("s", [nelems])])


def wide_forest(nnodes, ntargets):
    at = list(range(nnodes))
    return sized("TreeEnsembleRegressor", [], [value("x", [1, 4])], domain=ML, n_targets=ntargets, nodes_treeids=at, nodes_nodeids=[0] * nnodes, nodes_featureids=[0] * nnodes,
                 nodes_values=[0.0] * nnodes, nodes_modes=["LEAF"] * nnodes, nodes_truenodeids=[0] * nnodes, nodes_falsenodeids=[0] * nnodes,
                 target_treeids=[0], target_nodeids=[0], target_ids=[0], target_weights=[1.0])


def far_numbered(nnodes):
    """A tree whose nodes have numbers that a multiplicative hash brings together."""
    turn = pow(0xbf58476d1ce4e5b9, -1, 1 << 64)
    ids = [(i * turn + (1 << 63)) % (1 << 64) - (1 << 63) for i in range(nnodes)]
    return sized("TreeEnsembleRegressor", [], [value("x", [1, 4])], domain=ML, n_targets=1, nodes_treeids=[0] * nnodes, nodes_nodeids=ids, nodes_featureids=[0] * nnodes,
                 nodes_values=[0.0] * nnodes, nodes_modes=["LEAF"] * nnodes, nodes_truenodeids=[0] * nnodes, nodes_falsenodeids=[0] * nnodes,
                 target_treeids=[0], target_nodeids=[ids[0]], target_ids=[0], target_weights=[1.0])


def many_weights_of_one(out, n):
    """Weights outside that all lie in the same bytes."""
    (out / "same.bin").write_bytes(bytes(4 << 20))
    weights = []
    for i in range(n):
        tensor = TensorProto(name=f"w{i}", data_type=FLOAT, dims=[1 << 20], data_location=TensorProto.EXTERNAL)
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value="same.bin"))
        weights.append(tensor)
    return model([node("Sum", [f"w{i}" for i in range(n)], ["y"])], [], weights=weights)


def scheduled(steps, size="4"):
    return text(f"kernel @k(x: f32[{size}]) -> (y: f32[{size}]) {{\n  axis i0={size}\n  y[i0] = neg(x[i0]) -> y[i0]\n}}\nschedule x86-64-v3 grain 1 {{\n{steps}\n}}\n")


def executable(out, change):
    """One of dlc's own, altered; --compile beside the other files has made it."""
    raw = bytearray((out / "neg.so").read_bytes())
    change(raw)
    return bytes(raw)


def header(at, form, number):
    return lambda raw: struct.pack_into(form, raw, at, number)


def segments(offset, number):
    """A word of every entry of the table of segments."""
    def change(raw):
        first, = struct.unpack_from("<Q", raw, 32)
        n, = struct.unpack_from("<H", raw, 56)
        for i in range(n):
            struct.pack_into("<Q", raw, first + 56 * i + offset, number)
    return change


def sparse_executable(out):
    with open(out / "long.so", "wb") as file:
        file.write((out / "neg.so").read_bytes())
        file.truncate(1 << 40)


FAR = {
    "doubled": lambda out: doubled(150, "Slice"), "shuffled": lambda out: shuffled(60), "clamped": lambda out: clamped(30), "ranges": lambda out: ranges(40),
    "nonzeros": lambda out: found(60, "NonZero"), "compresses": lambda out: found(100, "Compress"), "uniques": lambda out: found(100, "Unique"),
    "mixed_200": lambda out: mixed(200, 5), "mixed_deep": lambda out: mixed(4, 14), "symbols_together": lambda out: symbols_together(300), "symbols_together_1000": lambda out: symbols_together(1000),
    "resizes": lambda out: of_one("Resize", 64, ["", "s"], [array(np.array([1, 1, 2, 2], np.float32), "s")], [value("x", [1, 1, 4, 4])]),
    "resizes_symbolic": lambda out: of_one("Resize", 60, ["", "s"], [array(np.array([1, 1, 2, 1.5], np.float32), "s")], [value("x", [1, 1, "h", "w"])]),
    "pads": lambda out: of_one("Pad", 200, ["p"], [ints("p", [2 ** 40, 2 ** 40])]), "tiles_64": lambda out: of_one("Tile", 64, ["r"], [ints("r", [4])]),
    "expands": lambda out: of_one("Expand", 500, ["r"], [ints("r", [1, 1])], [value("x", ["n", "m"])]),
    "transposed_40": lambda out: of_one("ConvTranspose", 40, ["w"], [array(np.ones((1, 1, 2, 2), np.float32), "w")], [value("x", [1, 1, 4, 4])], strides=[2, 2]),
    "depths": lambda out: of_one("SpaceToDepth", 30, [], [], [value("x", [1, 1, 2 ** 31, 2 ** 31])], blocksize=2),
    "pools": lambda out: of_one("MaxPool", 400, [], [], [value("x", [1, 1, "h", "w"])], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "pools_ceil": lambda out: of_one("AveragePool", 60, [], [], [value("x", [1, 1, "h", "w"])], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "topks": lambda out: of_one("TopK", 150, ["k"], [ints("k", [2])], outputs=2), "cumsums": lambda out: of_one("CumSum", 300, ["z"], [ints("z", 0)], [value("x", ["n"])]),
    "splits": lambda out: chain(200, lambda i, a, b: [node("Split", [a], [f"p{i}", f"q{i}"], axis=0, num_outputs=2), node("Concat", [f"q{i}", f"p{i}"], [b], axis=0)], [value("x", ["n"])]),
    "gathers_each": lambda out: chain(300, lambda i, a, b: [node("Shape", [a], [f"s{i}"]), node("Gather", [f"s{i}", "z"], [f"g{i}"]), node("ConstantOfShape", [f"g{i}"], [f"f{i}"]),
                                                            node("Add", [a, f"f{i}"], [b])], [value("x", ["n"])], [ints("z", [0])]),
    "reshapes_symbolic": lambda out: chain(200, lambda i, a, b: [node("Reshape", [a, "s"], [b])], [value("x", ["n", "m", 6])], [ints("s", [-1, 2, 3])]),
    "product_folded": lambda out: constants("MatMul", [[8192, 8192], [8192, 8192]]), "product_huge": lambda out: constants("MatMul", [[2 ** 31, 2], [2, 2 ** 31]]),
    "conv_folded": lambda out: constants("Conv", [[1, 256, 512, 512], [256, 256, 3, 3]]), "gemm_folded": lambda out: constants("Gemm", [[4096, 32768], [32768, 64]]),
    "outer_folded": lambda out: constants("Mul", [[65536, 1], [1, 65536]]), "einsum_folded": lambda out: constants("Einsum", [[64] * 4, [64] * 4], equation="abcd,dcef->abef"),
    "lookup": lambda out: lookup(100_000, 10 ** 6), "wide_forest": lambda out: wide_forest(50_000, 32_000), "far_numbered": lambda out: far_numbered(250_000), "same_bytes": lambda out: many_weights_of_one(out, 2000),
    "lstm_folded": lambda out: constants("LSTM", [[10 ** 5, 1, 4], [1, 64, 4], [1, 64, 16]], hidden_size=16),
    "texts_folded": lambda out: model([node("ConstantOfShape", ["s"], ["c"], value=TensorProto(data_type=STRING, dims=[1], string_data=[b"ab" * 500])), node("StringConcat", ["c", "c"], ["y"])],
                                      [], [info("y", STRING, None)], [ints("s", [10 ** 7])], 20),
    "normalised": lambda out: model([node("StringNormalizer", ["x"], ["y"], stopwords=[f"w{i}" for i in range(200_000)], case_change_action="LOWER")], [info("x", STRING, ["n"])],
                                    [info("y", STRING, None)]),
    "classes": lambda out: sized("LinearClassifier", [], [value("x", ["n", 4])], domain=ML, coefficients=[1.0] * 400_000, intercepts=[0.0] * 100_000, classlabels_ints=list(range(100_000))),
    "hosts": lambda out: model([node("Sum", ["x"] * 3, [f"y{i}"]) for i in range(2000)], outputs=[ANY(f"y{i}") for i in range(2000)], change=lambda m: [
        n.attribute.append(helper.make_attribute("é" * 500, 1)) for n in m.graph.node]),
    "spaces.npz": lambda out: npz("x.npy", npy("{'descr': '<f4', " + " " * 60_000 + "'fortran_order': False, 'shape': (4,), }", bytes(16))),
    "empty_dims.npz": lambda out: npz("x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4611686018427387904), }")),
    "words.npz": lambda out: npz("x.npy", npy("{'descr': '<U1073741823', 'fortran_order': False, 'shape': (1,), }", bytes(64))),
    "digits.npz": lambda out: npz("x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 50_000 + ",), }", bytes(64))),
    "groups.json": lambda out: text(json.dumps({"version": 1, "groups": [[f"n{i}"] for i in range(200_000)]})),
    "escapes.json": lambda out: text('{"version": 1, "groups": [["' + "\\u0000\\ud800" * 100_000 + '"]]}'),
    "numbers.json": lambda out: text('{"version": ' + "1e" + "9" * 100_000 + ', "groups": []}'), "keys.json": lambda out: text('{"version": 1' + ', "groups": []' * 200_000 + "}"),
    "splits.schedule": lambda out: scheduled("\n".join(f"par i{i}" for i in range(100_000))), "tiles.schedule": lambda out: scheduled("par i0 tile 9223372036854775807 {\n}"),
    "lanes.schedule": lambda out: scheduled("lanes i0 4294967296 {\n}"), "extent.schedule": lambda out: scheduled("par i0 {\n}", "9" * 10_000),
    "axes.kernel": lambda out: text("kernel @k(x: f32[4]) -> (y: f32[4]) {\n" + "".join(f"  axis i{i}=4\n" for i in range(100_000)) + "  y[i0] = x[i0] -> y[i0]\n}\n"),
    "names.kernel": lambda out: text("kernel @" + "k" * 10 ** 6 + "(x: f32[4]) -> (y: f32[4]) {\n  axis i0=4\n  y[i0] = x[i0] -> y[i0]\n}\n"),
    "regions.dlc": lambda out: text("graph @g(%x: f32[4]) -> %x {\n" + "  if %x {\n" * 50_000 + "}\n"), "steps.dlc": lambda out: text("module @m {\n" + "  launch @k(%x)\n" * 200_000 + "}\n"),
    "symbols.dlc": lambda out: text("graph @g(" + ", ".join(f"%x{i}: f32[n{i}]" for i in range(20_000)) + ") -> %x0 {\n}\n"),
    "entries.so": lambda out: executable(out, header(56, "<H", 65535)), "sections.so": lambda out: executable(out, header(40, "<Q", 2 ** 63)),
    "entry.so": lambda out: executable(out, header(24, "<Q", 2 ** 64 - 8)), "memory.so": lambda out: executable(out, segments(40, 2 ** 45)),
    "addresses.so": lambda out: executable(out, segments(16, 2 ** 45)), "files.so": lambda out: executable(out, segments(32, 2 ** 62)),
    "half.so": lambda out: (out / "neg.so").read_bytes()[:2048], "twice.so": lambda out: (out / "neg.so").read_bytes() * 2, "long.so": sparse_executable,
}
