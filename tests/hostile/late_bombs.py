"""Bombs of a fifth kind, for bombs.py, as in wild_bombs.py: sizes of many symbols, lists in lists of attributes, wire tricks, plans and texts
with many names."""
import json
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper

from far_bombs import ANY, chain, constants, scheduled
from more_bombs import BOOL, FLOAT, INT64, STRING, array, info, ints, model, node
from odd_bombs import ML, sized, string_op, text
from wild_bombs import npy_bytes, npz, value, varint


def together(n, lengths, extra=(), weights=()):
    """A Concat of what `lengths` makes of each input."""
    made = [lengths(i) for i in range(n)]
    return model([*extra, *(m for nodes, _ in made for m in nodes), node("Concat", [name for _, name in made], ["y"], axis=0)],
                 [value("x", ["n"]), value("z", ["m"])], weights=weights, opset=18)


def sliced(i):
    return [node("Slice", ["x", f"b{i}", f"e{i}"], [f"s{i}"])], f"s{i}"


def strided(n):
    return chain(n, lambda i, a, b: [node("Slice", [a, "b", "e", "z", f"s{i % 3}"], [f"t{i}"]), node("Concat", [f"t{i}", a], [b], axis=0)], [value("x", ["n"])],
                 [ints("b", [-1]), ints("e", [-2 ** 62]), ints("z", [0]), *(ints(f"s{k}", [-2 - k]) for k in range(3))])


def products(n):
    """Matrices, each with a symbol of its own on either side."""
    return model([node("MatMul", [f"v{i}" if i else "x0", f"x{i + 1}"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)],
                 [value(f"x{i}", [f"d{i}", f"d{i + 1}"]) for i in range(n + 1)])


def pairwise(n):
    """Two sizes of n terms each, multiplied, divided and compared."""
    nodes = [node("Concat", [f"{c}{i}" for i in range(n)], [c], axis=0) for c in "ab"]
    nodes += [node("Unsqueeze", ["a", "one"], ["c"]), node("Mul", ["c", "b"], ["m"]), node("Transpose", ["m"], ["t"], perm=[1, 0]), node("Shape", ["t"], ["s"]),
              node("Reshape", ["m", "s"], ["r"]), node("Add", ["r", "t"], ["y"])]
    return model(nodes, [value(f"{c}{i}", [f"{c}{i}"]) for c in "ab" for i in range(n)], weights=[ints("one", [1])])


def ranks(n):
    """As many symbols as there are dimensions."""
    return model([node("Sum", [f"x{i}" for i in range(n)], ["y"])], [value(f"x{i}", [f"d{i}_{k}" for k in range(8)]) for i in range(n)])


def shadowed(depth):
    def branch(d):
        inner = [node("Neg", ["x"], ["z"])] if d == depth else [node("If", ["b"], ["z"], then_branch=branch(d + 1), else_branch=leaf())]
        return helper.make_graph(inner, "g", [], [ANY("z")])

    def leaf():
        return helper.make_graph([node("Abs", ["x"], ["z"])], "g", [], [ANY("z")])
    return model([node("If", ["b"], ["y"], then_branch=branch(1), else_branch=leaf())], [info("x", FLOAT, [4]), info("b", BOOL, [])])


def sequences(n, trips):
    """A loop that makes a long list in each step and takes one of it."""
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), node("SequenceConstruct", ["s"] * n, ["q"]), node("ConcatFromSequence", ["q"], ["k"], axis=0),
                              node("Slice", ["k", "zero", "four"], ["t"])], "body", [info("i", INT64, []), info("ci", BOOL, []), ANY("s")], [ANY("co"), ANY("t")])
    return model([node("Loop", ["n", "c", "x"], ["y"], body=body)], weights=[ints("n", trips), array(np.array(True), "c"), ints("zero", [0]), ints("four", [4])])


def many_outputs(m):
    m.graph.output.extend(info(f"o{i}", FLOAT, [4]) for i in range(50_000))
    m.graph.initializer.extend(helper.make_tensor(f"o{i}", FLOAT, [4], [0.0] * 4) for i in range(50_000))


def field(tag, body):
    return bytes([tag]) + varint(len(body)) + body


def in_model(graph, times=1):
    return b"\x08\x09" + field(0x3a, graph) * times + b"\x42\x02\x10\x11"


NEG = field(0x0a, field(0x0a, b"x") + field(0x12, b"y") + field(0x22, b"Neg"))
ENDS = b"".join(field(tag, field(0x0a, name) + field(0x12, field(0x0a, b"\x08\x01\x12\x04\x0a\x02\x08\x04"))) for tag, name in ((0x5a, b"x"), (0x62, b"y")))


def grams(n):
    return sized("TfIdfVectorizer", [], [info("x", INT64, [64])], mode="TF", min_gram_length=1, max_gram_length=3, max_skip_count=5, ngram_counts=[0, n, 3 * n],
                 ngram_indexes=list(range(2 * n)), pool_int64s=[7] * (3 * n))


def members(n):
    at = [0, 1, 2]
    return sized("TreeEnsemble", [], [value("x", [1, 4])], domain=ML, nodes_splits=array(np.zeros(1, np.float32), "s"), nodes_featureids=[0], n_targets=1,
                 nodes_modes=array(np.array([6], np.uint8), "m"), nodes_truenodeids=[0], nodes_falsenodeids=[1], nodes_trueleafs=[1], nodes_falseleafs=[1], tree_roots=[0],
                 leaf_targetids=at[:2], leaf_weights=array(np.ones(2, np.float32), "w"), membership_values=array(np.arange(n, dtype=np.float32), "v"), opset=18)


def antialiased():
    return sized("Resize", [array(np.zeros(0, np.float32), "r"), array(np.array([1, 1, 1e-6, 1e-6], np.float32), "s")], [info("x", FLOAT, [1, 1, 10 ** 6, 10 ** 6])],
                 mode="cubic", antialias=1, opset=18)


def holes_of_nibbles(out):
    """A TiB of nothing, widened eight times."""
    with open(out / "nibbles.bin", "wb") as file:
        file.truncate(1 << 34)
    tensor = TensorProto(name="w", data_type=TensorProto.UINT4, dims=[1 << 35], data_location=TensorProto.EXTERNAL)
    tensor.external_data.append(onnx.StringStringEntryProto(key="location", value="nibbles.bin"))
    return model([node("DequantizeLinear", ["w", "s"], ["d"]), node("ReduceSum", ["d"], ["y"])], [], weights=[tensor, array(np.float32(1), "s")], opset=21)


def lost_files(n):
    weights = []
    for i in range(n):
        tensor = TensorProto(name=f"w{i}", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value=f"nowhere/{i}.bin"))
        weights.append(tensor)
    return model([node("Sum", ["x", *(f"w{i}" for i in range(n))], ["y"])], weights=weights)


def kernels(n):
    one = "kernel @k(x: f32[4]) -> (y: f32[4]) {\n  axis i0=4\n  y[i0] = neg(x[i0]) -> y[i0]\n}\n"
    return text("module @m for x86-64-v3 after lower {\n  input %x: f32[4]\n  output %y: f32[4]\n}\n" + one * n + "steps {\n  launch 0 (%x) -> (%y)\n}\n")


def symbol_sum(n):
    names = [f"s{i}" for i in range(n)]
    return text(f"kernel @k<{', '.join(names)}>(x: f32[{' + '.join(names)}]) -> (y: f32[{' + '.join(reversed(names))}]) {{\n  axis i0={' + '.join(names)}\n  y[i0] = neg(x[i0]) -> y[i0]\n}}\n"
                "schedule x86-64-v3 grain 1 {\n  par i0 {\n    y\n  }\n}\n")


IMAGE = info("x", FLOAT, [1, 1, 4, 4])
LATE = {
    "slices_together": lambda out: together(150, sliced, weights=[w for i in range(150) for w in (ints(f"b{i}", [i]), ints(f"e{i}", [-i - 1]))]),
    "nonzeros_together": lambda out: together(60, lambda i: ([node("Add", ["x", f"c{i}"], [f"a{i}"]), node("NonZero", [f"a{i}"], [f"z{i}"]), node("Transpose", [f"z{i}"], [f"t{i}"])], f"t{i}"),
                                              weights=[array(np.float32(i), f"c{i}") for i in range(60)]),
    "same_together": lambda out: together(20_000, lambda i: ([], "xz"[i % 2])), "halves_together": lambda out: together(
        200, lambda i: ([node("Slice", ["x", "o", f"e{i}"], [f"s{i}"])], f"s{i}"), [node("Shape", ["x"], ["h"])] + [node("Div", ["h", f"d{i}"], [f"e{i}"]) for i in range(200)],
        [ints("o", [0]), *(ints(f"d{i}", [i + 2]) for i in range(200))]),
    "empties_together": lambda out: together(5000, lambda i: ([], "w"), weights=[array(np.zeros(0, np.float32), "w")]),
    "strided": lambda out: strided(60), "products": lambda out: products(300), "pairwise": lambda out: pairwise(40), "ranks": lambda out: ranks(500),
    "shadowed": lambda out: shadowed(20), "sequences": lambda out: sequences(2000, 50), "sequences_huge": lambda out: sequences(50, 2 ** 60),
    "many_outputs": lambda out: model([node("Neg", ["x"], ["y"])], change=many_outputs),
    "outputs_same": lambda out: model([node("Neg", ["x"], ["v"]), *(node("Identity", ["v"], [f"o{i}"]) for i in range(20_000))],
                                      outputs=[info(f"o{i}", FLOAT, [4]) for i in range(20_000)]),
    "inputs_empty": lambda out: model([node("Sum", ["x"] + [""] * 200_000, ["y"])]), "outputs_empty": lambda out: model([node("Split", ["x"], ["y"] + [""] * 100_000)]),
    "graphs_merged": lambda out: in_model(ENDS + NEG, 2000), "names_again": lambda out: in_model(ENDS + field(0x0a, field(0x0a, b"x") + field(0x12, b"y") + field(0x22, b"Neg") + field(0x1a, b"n") * 500_000)),
    "groups": lambda out: in_model(b"\x7b" * 100_000 + b"\x7c" * 100_000 + ENDS + NEG), "long_varints": lambda out: in_model(ENDS + NEG + field(0x2a, field(0x0a, (b"\xff" * 9 + b"\x01") * 1_000_000))),
    "packed_dims": lambda out: in_model(ENDS + NEG + field(0x2a, field(0x0a, b"\x01" * 5_000_000) + b"\x10\x01" + field(0x42, b"w"))),
    "names_no_utf8": lambda out: in_model(ENDS + b"".join(field(0x0a, field(0x0a, b"x") + field(0x12, b"\xff%d" % i) + field(0x22, b"Neg")) for i in range(100_000)) + NEG),
    "grams": lambda out: grams(200_000), "members": lambda out: members(500_000), "antialiased": lambda out: antialiased(), "nibbles": holes_of_nibbles, "lost_files": lambda out: lost_files(20_000),
    "conv_cube": lambda out: sized("Conv", [array(np.ones((1, 1, 100, 100, 100), np.float32), "w")], [value("x", [1, 1, "a", "b", "c"])]),
    "conv_prime": lambda out: sized("Conv", [array(np.ones((7, 1, 1, 4099), np.float32), "w")], [info("x", FLOAT, [1, 7, 3, 2 ** 31 - 1])], group=7, dilations=[1, 524_287]),
    "pool_indices": lambda out: model([node("MaxPool", ["x"], ["y", "i"], kernel_shape=[1000, 1000], dilations=[2 ** 30, 2 ** 30])], [IMAGE]),
    "pow_folded": lambda out: model([node("Pow", ["a", "b"], ["y"])], [], [ANY("y")], [ints("a", [3] * 1000), ints("b", [2 ** 62] * 1000)]),
    "shift_folded": lambda out: model([node("BitShift", ["a", "b"], ["y"], direction="LEFT")], [], [ANY("y")],
                                      [array(np.full(4, 1, np.uint64), "a"), array(np.array([63, 64, 2 ** 63, 2 ** 64 - 1], np.uint64), "b")]),
    "attention_folded": lambda out: constants("MatMul", [[1, 2 ** 18, 4], [1, 4, 2 ** 18]]), "value_strings": lambda out: model([node("Constant", [], ["y"], value_strings=["ab"] * 1_000_000)], [],
                                                                                                                               [info("y", STRING, None)]),
    "alternatives": lambda out: string_op("RegexFullMatch", ["a" * 1000], pattern="|".join(f"a{i}" for i in range(50_000))),
    "classes": lambda out: string_op("RegexFullMatch", ["a"], pattern="[" + "a-z" * 200_000 + "]"), "class_repeated": lambda out: string_op("RegexFullMatch", ["a"], pattern="[^a]{1000}" * 200),
    "split_letters": lambda out: string_op("StringSplit", ["a," * 500_000], delimiter=","), "imputed": lambda out: sized(
        "Imputer", [], [value("x", ["n", 4])], domain=ML, imputed_value_floats=[1.0] * 1_000_000, replaced_value_float=0.0),
    "zero_members.npz": lambda out: npz("x.npy", npy_bytes(np.zeros((0, 2 ** 40), np.float32))), "shape_words.npz": lambda out: npz("x.npy", b"\x93NUMPY\3\0" + struct.pack("<I", 2 ** 31)),
    "kernels.dlc": lambda out: kernels(5000), "sums.kernel": lambda out: symbol_sum(2000), "requires.dlc": lambda out: text(
        "graph @g(%x: f32[n], %z: f32[m]) -> %y {\n" + '  require n == m "same"\n' * 100_000 + "  %y: f32[n] = neg %x\n}\n"),
    "strings.dlc": lambda out: text('string "a"\n' * 200_000 + "graph @g(%x: f32[4]) -> %x {\n}\n"), "range.dlc": lambda out: text(
        "symbol n = dim(%x, 0) in -9223372036854775808..9223372036854775807\ngraph @g(%x: f32[n,n,n]) -> %y {\n  %y: f32[n,n,n] = neg %x\n}\n"),
    "selects.dlc": lambda out: text("graph @g(%x: f32[n]) -> %y {\n  %y: f32[" + "select(n == 1, " * 20_000 + "n" + ", 2)" * 20_000 + "] = neg %x\n}\n"),
    "many_keys.json": lambda out: text(json.dumps({f"k{i}": i for i in range(300_000)} | {"groups": []})),
    "nested_keys.json": lambda out: text('{"a": ' * 900 + "1" + "}" * 900), "behind.json": lambda out: text('{"groups": []}' + " " * 5_000_000 + "x"),
    "copies.schedule": lambda out: scheduled("".join(f"copy c{i} = y.x [i0]\n" for i in range(20_000)) + "par i0 {\n  y\n}"),
}
