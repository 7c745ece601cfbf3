"""Bombs of rarer kinds for bombs.py: a table of functions that take the folder of the file and give its bytes."""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper

from more_bombs import BOOL, FLOAT, INT64, STRING, array, info, ints, model, node

UINT8 = TensorProto.UINT8
ML, MS = "ai.onnx.ml", "com.microsoft"
sequence = helper.make_tensor_sequence_value_info


def strings(name, values):
    return helper.make_tensor(name, STRING, [len(values)], [v.encode() for v in values])


def control_tower(depth):
    """Loops in branches in scans in loops."""
    def body(d, kind):
        inner = node("Neg", [f"s{d}"], [f"t{d}"]) if d == depth else child(d + 1, f"s{d}", f"t{d}")
        if kind == "Scan":
            return helper.make_graph([inner], f"b{d}", [info(f"s{d}", FLOAT, None)], [info(f"t{d}", FLOAT, None)])
        return helper.make_graph([node("Identity", [f"c{d}"], [f"co{d}"]), inner], f"b{d}",
                                 [info(f"i{d}", INT64, []), info(f"c{d}", BOOL, []), info(f"s{d}", FLOAT, None)],
                                 [info(f"co{d}", BOOL, []), info(f"t{d}", FLOAT, None)])

    def branch(d, source, name):
        inner = node("Abs", [source], [name]) if d == depth else child(d + 1, source, name)
        return helper.make_graph([inner], f"g{name}", [], [info(name, FLOAT, None)])

    def child(d, source, result):
        if d % 3 == 1:
            return node("Loop", ["n", "yes", source], [result], body=body(d, "Loop"))
        if d % 3 == 2:
            return node("If", ["b"], [result], then_branch=branch(d, source, f"{result}p"), else_branch=branch(d, source, f"{result}q"))
        return node("Scan", [source], [result], body=body(d, "Scan"), num_scan_inputs=1)
    return model([child(1, "x", "y")], [info("x", FLOAT, [4] * 8), info("b", BOOL, [])], weights=[ints("n", 9), array(np.array(True), "yes")])


def loop_states(n):
    """A loop with so many states, each of which may be one that grows."""
    nodes = [node("Identity", ["c"], ["co"]), *(node("Concat", [f"s{i}", "x"], [f"t{i}"], axis=0) for i in range(n))]
    body = helper.make_graph(nodes, "body", [info("i", INT64, []), info("c", BOOL, []), *(info(f"s{i}", FLOAT, None) for i in range(n))],
                             [info("co", BOOL, []), *(info(f"t{i}", FLOAT, None) for i in range(n))])
    return model([node("Loop", ["n", "yes", *["x"] * n], [f"y{i}" for i in range(n)], body=body)], outputs=[info("y0", FLOAT, None)],
                 weights=[ints("n", 5), array(np.array(True), "yes")])


def string_sequence(trips):
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), node("SequenceInsert", ["s", "w"], ["t"])], "body",
                             [info("i", INT64, []), info("ci", BOOL, []), sequence("s", STRING, None)],
                             [info("co", BOOL, []), sequence("t", STRING, None)])
    return model([node("SequenceEmpty", [], ["e"], dtype=STRING), node("Loop", ["n", "yes", "e"], ["q"], body=body),
                  node("SequenceLength", ["q"], ["y"])], [], [info("y", INT64, None)],
                 [ints("n", trips), array(np.array(True), "yes"), strings("w", ["a" * 1000])])


def string_doubled(n):
    nodes = [node("StringConcat", [f"v{i}"] * 2, [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)]
    return model(nodes, [], [info("y", STRING, None)], [strings("v0", ["a" * 1000])], opset=20)


def string_op(op, values, *more, **attributes):
    return model([node(op, ["w", *(w.name for w in more)], ["y"] if op != "StringSplit" else ["y", "z"], **attributes)], [],
                 [helper.make_empty_tensor_value_info("y")], [strings("w", values), *more], opset=20)


def optionals(n):
    nodes = [m for i in range(n) for m in (node("Optional", [f"v{i}" if i else "x"], [f"o{i}"]),
                                           node("OptionalGetElement", [f"o{i}"], [f"v{i + 1}" if i < n - 1 else "y"]))]
    return model(nodes, opset=18)


def defaults(n, each):
    """Functions whose attributes have defaults, which the next one takes by reference."""
    made = []
    for f in range(n):
        inner = node("LeakyRelu", ["a"], ["b"]) if f == n - 1 else node(f"F{f + 1}", ["a"], ["b"], domain="d")
        names = ["alpha"] if f == n - 1 else [f"a{i}" for i in range(each)]
        for name in names:
            inner.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=f"a{len(inner.attribute)}", type=onnx.AttributeProto.FLOAT))
        function = helper.make_function("d", f"F{f}", ["a"], ["b"], [inner], [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)])
        function.attribute_proto.extend(helper.make_attribute(f"a{i}", 0.5) for i in range(each))
        made.append(function)
    return model([node("F0", ["x"], ["y"], domain="d")], functions=made)


def sparse_value(dims, count):
    tensor = onnx.SparseTensorProto(dims=dims)
    tensor.values.CopyFrom(helper.make_tensor("", FLOAT, [count], [1.0] * count))
    tensor.indices.CopyFrom(helper.make_tensor("", INT64, [count], list(range(count))))
    return model([node("Constant", [], ["c"], sparse_value=tensor), node("Neg", ["c"], ["y"])], [])


def blocks(size, shape, op="DequantizeLinear"):
    scale = array(np.ones((1, 1), np.float32), "s")
    return model([node(op, ["x", "s"], ["y"], axis=1, block_size=size)],
                 [info("x", UINT8 if op == "DequantizeLinear" else FLOAT, shape)], [helper.make_empty_tensor_value_info("y")], [scale], opset=21)


def nbits(k, n, block):
    weight = helper.make_tensor("w", UINT8, [1, 1, 16], bytes(16), raw=True)
    return model([node("MatMulNBits", ["x", "w", "s"], ["y"], domain=MS, K=k, N=n, bits=4, block_size=block)], [info("x", FLOAT, [1, 32])],
                 weights=[weight, array(np.ones(1, np.float32), "s")])


def forest(ntrees, depth):
    """Trees of one leaf each, or chains."""
    size = depth + 1
    trees, ids = [t for t in range(ntrees) for _ in range(size)], list(range(size)) * ntrees
    return model([node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=1, nodes_treeids=trees, nodes_nodeids=ids,
                       nodes_featureids=[0] * len(ids), nodes_modes=(["BRANCH_LEQ"] * depth + ["LEAF"]) * ntrees, nodes_values=[1.0] * len(ids),
                       nodes_truenodeids=[i + 1 if i < depth else 0 for i in ids], nodes_falsenodeids=[depth if i < depth else 0 for i in ids],
                       target_treeids=list(range(ntrees)), target_nodeids=[depth] * ntrees, target_ids=[0] * ntrees,
                       target_weights=[1.0] * ntrees)], [info("x", FLOAT, [1, 4])])


def tree5(true, false, roots=(0,)):
    """The ensemble of ai.onnx.ml 5, whose links may lead back."""
    values = helper.make_tensor("", FLOAT, [len(true)], [1.0] * len(true))
    weights = helper.make_tensor("", FLOAT, [1], [1.0])
    modes = helper.make_tensor("", UINT8, [len(true)], [0] * len(true))
    made = node("TreeEnsemble", ["x"], ["y"], domain=ML, n_targets=1, aggregate_function=1, post_transform=0, tree_roots=list(roots),
                nodes_featureids=[0] * len(true), nodes_modes=modes, nodes_splits=values, nodes_truenodeids=list(true),
                nodes_falsenodeids=list(false), nodes_trueleafs=[0] * len(true), nodes_falseleafs=[0] * len(true), leaf_targetids=[0],
                leaf_weights=weights)
    def opset(m):
        m.opset_import[1].version = 5
    return model([made], [info("x", FLOAT, [1, 4])], change=opset)


def external(location, length=None, dims=(1 << 20,), offset=None):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("length", length), ("offset", offset)):
        if value is not None:
            tensor.external_data.append(onnx.StringStringEntryProto(key=key, value=str(value)))
    return model([node("Neg", ["w"], ["y"])], [], weights=[tensor])


def fifo(out):
    path = out / "pipe.bin"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return external("pipe.bin")


def links(out):
    """A link that leads to itself."""
    path = out / "ring.bin"
    path.unlink(missing_ok=True)
    path.symlink_to("ring.bin")
    return external("ring.bin")


def text(lines):
    return lines.encode()


def kernel_text(depth):
    return text("kernel @k(x: f32[4]) -> (y: f32[4]) {\n  axis i0=4\n  y[i0] = " + "(" * depth + "x[i0]" + ")" * depth + " -> y[i0]\n}\n")


def schedule_text(depth):
    return text("kernel @k(x: f32[4]) -> (y: f32[4]) {\n  axis i0=4\n  y[i0] = x[i0] -> y[i0]\n}\nschedule x86-64-v3 grain 1 {\n" +
                "par i0 {\n" * depth + "}\n" * depth + "}\n")


def graph_text(dims):
    return text(f"graph @g(%x: f32[{dims}]) -> %y {{\n  %y: f32[{dims}] = neg %x\n}}\n")


def squeezes(n):
    """Each without axes, of a value whose rank nobody declares."""
    nodes = [m for i in range(n) for m in (node("Identity", ["x" if i == 0 else f"r{i}"], [f"q{i}"]),
                                           node("Squeeze", [f"q{i}"], [f"r{i + 1}" if i < n - 1 else "y"]))]
    return model(nodes, [info("x", FLOAT, ["n", "m"])])


def squeezed_outputs(n):
    """Each without axes, of the same input; each result is an output of a rank that nobody declares."""
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(n)]
    return model([node("Squeeze", ["x"], [f"y{i}"]) for i in range(n)], [info("x", FLOAT, ["n", "m"])], outputs)


def labels(n):
    return model([node("LabelEncoder", ["x"], ["y"], domain=ML, keys_int64s=list(range(n)), values_floats=[0.5] * n)], [info("x", INT64, [4])])


def sized(op, weights, inputs=(), domain="", opset=20, outputs=("y",), **attributes):
    return model([node(op, [*(i.name for i in inputs), *(w.name for w in weights)], list(outputs), domain=domain, **attributes)], list(inputs),
                 [helper.make_empty_tensor_value_info(outputs[0])], list(weights), opset=opset)


X4 = info("x", FLOAT, [1, 1, 4, 4])
ODD = {
    "tower_12": lambda out: control_tower(12), "tower_20": lambda out: control_tower(20), "loop_states": lambda out: loop_states(2000),
    "string_sequence": lambda out: string_sequence(2 ** 40), "string_doubled": lambda out: string_doubled(45),
    "strings_long": lambda out: string_op("StringNormalizer", ["a" * 8_000_000] * 4, case_change_action="UPPER"),
    "string_split": lambda out: string_op("StringSplit", [" ".join("ab" for _ in range(1_000_000))]),
    "regex": lambda out: string_op("RegexFullMatch", ["a" * 5000 + "b"], pattern="(a*)*" * 20 + "c"),
    "regex_nested": lambda out: string_op("RegexFullMatch", ["a"], pattern="(" * 100_000 + "a" + ")" * 100_000),
    "regex_repeated": lambda out: string_op("RegexFullMatch", ["a"], pattern="((((a{1000}){1000}){1000}){1000})"),
    "optionals": lambda out: optionals(20_000), "defaults": lambda out: defaults(300, 300),
    "sparse_value": lambda out: sparse_value([2 ** 40], 1), "sparse_wraps": lambda out: sparse_value([2 ** 33, 2 ** 33], 4),
    "blocks_huge": lambda out: blocks(2 ** 62, [4, 4]), "blocks_large": lambda out: blocks(1, [2 ** 20, 2 ** 20]),
    "blocks_negative": lambda out: blocks(-4, [4, 4], "QuantizeLinear"), "nbits": lambda out: nbits(2 ** 40, 2 ** 40, 2 ** 30),
    "nbits_small": lambda out: nbits(2 ** 31 - 1, 2 ** 31 - 1, 16),
    "forest": lambda out: forest(100_000, 0), "forest_million": lambda out: forest(1, 1_000_000), "tree5_cycle": lambda out: tree5([1, 0], [1, 0]),
    "tree5_shared": lambda out: tree5([*range(1, 60), 59], [*range(1, 60), 59]), "tree5_outside": lambda out: tree5([2 ** 40], [-1]),
    "einsum_many": lambda out: model([node("Einsum", ["x"] * 26, ["y"], equation=",".join(f"{a}{b}" for a, b in zip(
        "abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza")) + "->")], [info("x", FLOAT, [50, 50])]),
    "device": lambda out: external("/dev/zero"), "climbs": lambda out: external("../../../../../../dev/zero"), "fifo": fifo, "ring": links,
    "itself": lambda out: external("itself.onnx", 2 ** 62, (2 ** 60,)), "folder": lambda out: external("."),
    "far": lambda out: external("far.onnx", 4, (1,), 2 ** 63 - 1), "proc": lambda out: external("/proc/self/mem", 2 ** 40),
    "nested.json": lambda out: text('{"groups": ' + "[" * 200_000 + "]" * 200_000 + "}"),
    "long.json": lambda out: text(json.dumps({"version": 1, "groups": [["conv", "relu"]] * 200_000})),
    "nested.kernel": lambda out: kernel_text(200_000), "nested.schedule": lambda out: schedule_text(50_000),
    "nested.dlc": lambda out: graph_text("(" * 100_000 + "4" + ")" * 100_000), "sum.dlc": lambda out: graph_text("+".join(["1"] * 200_000)),
    "squeezes": lambda out: squeezes(4000), "squeezed_outputs": lambda out: squeezed_outputs(2000), "labels": lambda out: labels(500_000),
    "random_huge": lambda out: sized("RandomNormal", [], shape=[2 ** 20, 2 ** 20]),
    "multinomial": lambda out: sized("Multinomial", [], [info("x", FLOAT, [1, 4])], sample_size=2 ** 31 - 1),
    "window": lambda out: sized("HannWindow", [ints("n", 2 ** 40)]), "mel": lambda out: sized("MelWeightMatrix", [
        ints("b", 2 ** 30), ints("d", 2 ** 30), ints("r", 16000), array(np.float32(0), "lo"), array(np.float32(8000), "hi")]),
    "stft": lambda out: model([node("STFT", ["x", "step", "", "length"], ["y"])], [info("x", FLOAT, [1, 2 ** 28, 1])],
                              [helper.make_empty_tensor_value_info("y")], [ints("step", 1), ints("length", 2 ** 20)], opset=20),
    "unpool": lambda out: sized("MaxUnpool", [ints("o", [1, 1, 2 ** 31, 2 ** 31])], [X4, info("i", INT64, [1, 1, 4, 4])], kernel_shape=[2, 2]),
    "col2im": lambda out: sized("Col2Im", [ints("i", [2 ** 31, 2 ** 31]), ints("b", [1, 1])], [info("x", FLOAT, [1, 1, 16])]),
    "roi": lambda out: sized("RoiAlign", [], [X4, info("r", FLOAT, [1, 4]), info("b", INT64, [1])], output_height=2 ** 30, output_width=2 ** 30,
                             sampling_ratio=2 ** 30),
    "affine_grid": lambda out: sized("AffineGrid", [ints("s", [1, 1, 2 ** 30, 2 ** 30])], [info("x", FLOAT, [1, 2, 3])]),
    "space": lambda out: sized("SpaceToDepth", [], [X4], blocksize=2 ** 31), "depth": lambda out: sized("DepthToSpace", [], [X4], blocksize=2 ** 33),
    "rnn_hidden": lambda out: sized("RNN", [array(np.ones((1, 4, 3), np.float32), "w"), array(np.ones((1, 4, 4), np.float32), "r")],
                                    [info("x", FLOAT, [4, 1, 3])], hidden_size=2 ** 62),
    "heads": lambda out: sized("Attention", [], [info(n, FLOAT, [1, 4, 8]) for n in "qkv"], opset=23, q_num_heads=2 ** 40, kv_num_heads=2 ** 40),
    "names_same": lambda out: model([node("Neg", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < 49_999 else "y"], "same") for i in range(50_000)]),
}
