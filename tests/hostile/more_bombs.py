"""More bombs for bombs.py: a table of functions that give a file's bytes."""
import io
import struct
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
info, node, array = helper.make_tensor_value_info, helper.make_node, numpy_helper.from_array


def model(nodes, inputs=None, outputs=None, weights=(), opset=17, change=None, functions=()):
    graph = helper.make_graph(nodes, "bomb", [info("x", FLOAT, [4])] if inputs is None else inputs,
                              [info("y", FLOAT, None)] if outputs is None else outputs, list(weights))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("d", 1)]
    made = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)
    if change:
        change(made)
    return made.SerializeToString()


def ints(name, values):
    return array(np.array(values, np.int64), name)


def one(op, *weights, shape=(4,), **attributes):
    return model([node(op, ["x", *(w.name for w in weights)], ["y"], **attributes)], [info("x", FLOAT, list(shape))], weights=weights)


def made(op, weights, opset=17, **attributes):
    """From constants alone, and then negated."""
    return model([node(op, [w.name for w in weights], ["m"], **attributes), node("Neg", ["m"], ["y"])], [], weights=weights, opset=opset)


def scans(depth):
    def body(d):
        inner = node("Neg", [f"s{d}"], [f"t{d}"]) if d == depth else node("Scan", [f"s{d}"], [f"t{d}"], body=body(d + 1), num_scan_inputs=1)
        return helper.make_graph([inner], f"b{d}", [info(f"s{d}", FLOAT, None)], [info(f"t{d}", FLOAT, None)])
    return model([node("Scan", ["x"], ["y"], body=body(1), num_scan_inputs=1)], [info("x", FLOAT, [10] * min(depth, 8))])


def ifs_chain(n):
    """Each in one branch of the one before: deep, not wide."""
    def branch(d):
        inner = node("Neg", ["x"], [f"v{d}"]) if d == n else node("If", ["b"], [f"v{d}"], then_branch=branch(d + 1), else_branch=leaf(d))
        return helper.make_graph([inner], f"g{d}", [], [info(f"v{d}", FLOAT, [4])])

    def leaf(d):
        return helper.make_graph([node("Abs", ["x"], [f"e{d}"])], f"l{d}", [], [info(f"e{d}", FLOAT, [4])])
    return model([node("If", ["b"], ["y"], then_branch=branch(1), else_branch=leaf(0))], [info("x", FLOAT, [4]), info("b", BOOL, [])])


def loop(trips, nodes, state=None, scan=None, shape=(4,), start=None):
    outputs = [info("co", BOOL, []), *([info("t", FLOAT, None)] if state else []), *([info("z", FLOAT, None)] if scan else [])]
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), *nodes], "body",
                             [info("i", INT64, []), info("ci", BOOL, []), *([info("s", FLOAT, list(shape))] if state else [])], outputs)
    return model([node("Loop", ["n", "c"] + ["x"] * bool(state), ["y"], body=body)], [info("x", FLOAT, list(shape))],
                 weights=[ints("n", trips), array(np.array(True), "c")])


def growing_sequence(trips):
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), node("SequenceInsert", ["s", "x"], ["t"])], "body",
                             [info("i", INT64, []), info("ci", BOOL, []), sequence("s", FLOAT, None)], [info("co", BOOL, []), sequence("t", FLOAT, None)])
    return model([node("SequenceEmpty", [], ["e"], dtype=FLOAT), node("Loop", ["n", "c", "e"], ["q"], body=body),
                  node("ConcatFromSequence", ["q"], ["y"], axis=0)], weights=[ints("n", trips), array(np.array(True), "c")])


def branching_calls(n):
    """Functions that call the next one in both branches of an If."""
    functions = []
    for i in range(n):
        def branch(name, i=i):
            inner = node("Neg", ["a"], [name]) if i == n - 1 else node(f"F{i + 1}", ["a", "c"], [name], domain="d")
            return helper.make_graph([inner], name, [], [info(name, FLOAT, [4])])
        functions.append(helper.make_function("d", f"F{i}", ["a", "c"], ["r"], [node("If", ["c"], ["r"], then_branch=branch("p"), else_branch=branch("q"))],
                                              [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]))
    return model([node("F0", ["x", "b"], ["y"], domain="d")], [info("x", FLOAT, [4]), info("b", BOOL, [])], functions=functions)


def shape_arithmetic(n):
    """A size that n operators compute of a dimension."""
    ops = ["Mul", "Add", "Div", "Mod", "Max", "Sub"]
    nodes = [node("Shape", ["x"], ["v0"]), *(node(ops[i % 6] if ops[i % 6] != "Max" else "Add", [f"v{i}", "three"], [f"v{i + 1}"]) for i in range(n)),
             node("Reshape", ["x", f"v{n}"], ["y"])]
    return model(nodes, [info("x", FLOAT, ["n"])], weights=[ints("three", [3])])


def squares(n):
    """A size that doubles its text with each operator."""
    nodes = [node("Shape", ["x"], ["v0"]), *(node("Mul", [f"v{i}", f"v{i}"], [f"w{i}"]) for i in range(n)),
             *(node("Add", [f"w{i}", f"v{i}"], [f"v{i + 1}"]) for i in range(n)), node("Expand", ["x", f"v{n}"], ["y"])]
    order = [nodes[0]] + [m for i in range(n) for m in (nodes[1 + i], nodes[1 + n + i])] + [nodes[-1]]
    return model(order, [info("x", FLOAT, ["n"])])


def tree(cycle):
    true, false = ([0, 0], [0, 0]) if cycle else ([1, 0], [1, 0])
    return model([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0, 0], nodes_nodeids=[0, 1],
                       nodes_featureids=[0, 0], nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ" if cycle else "LEAF"], nodes_values=[1.0, 1.0],
                       nodes_truenodeids=true, nodes_falsenodeids=false, target_treeids=[0], target_nodeids=[1], target_ids=[0], target_weights=[1.0])],
                 [info("x", FLOAT, [1, 4])])


def tree_chain(n):
    """A tree as deep as it has nodes."""
    ids = list(range(n + 1))
    return model([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0] * (n + 1), nodes_nodeids=ids,
                       nodes_featureids=[0] * (n + 1), nodes_modes=["BRANCH_LEQ"] * n + ["LEAF"], nodes_values=[1.0] * (n + 1),
                       nodes_truenodeids=ids[1:] + [0], nodes_falsenodeids=ids[1:] + [0], target_treeids=[0], target_nodeids=[n], target_ids=[0],
                       target_weights=[1.0])], [info("x", FLOAT, [1, 4])])


def sparse(dims):
    tensor = onnx.SparseTensorProto(dims=dims)
    tensor.values.CopyFrom(helper.make_tensor("w", FLOAT, [1], [1.0]))
    tensor.indices.CopyFrom(helper.make_tensor("w_i", INT64, [1], [0]))
    return model([node("Neg", ["w"], ["y"])], [], change=lambda m: m.graph.sparse_initializer.append(tensor))


def npz_claims(stored, claimed):
    """A member whose directory entry says that it unpacks to much more than it does."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        member = io.BytesIO()
        np.save(member, np.zeros(stored, np.float32))
        archive.writestr("x.npy", member.getvalue())
    raw = bytearray(data.getvalue())
    at = raw.rindex(b"PK\1\2")
    struct.pack_into("<I", raw, at + 24, claimed)
    struct.pack_into("<I", raw, 22, claimed)
    return bytes(raw)


def npz_directory(n):
    """A directory that says it has n entries, and has none."""
    return b"PK\5\6" + struct.pack("<4H2IH", 0, 0, n, n, 0, 0, 0)


def npy_header(size):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\2\0" + struct.pack("<I", size) + b"{" + b" " * (size - 1))
    return data.getvalue()


def lists(n):
    return list(range(n))


EINSUM = "".join(chr(c) for c in [*range(65, 91), *range(97, 123)])
MORE = {
    "scans_8": lambda: scans(8), "scans_30": lambda: scans(30), "ifs_chain_25": lambda: ifs_chain(25),
    "branching_calls_20": lambda: branching_calls(20), "branching_calls_60": lambda: branching_calls(60),
    "loop_concat": lambda: loop(60, [node("Concat", ["s", "s"], ["t"], axis=0)], state=1), "loop_long": lambda: loop(2 ** 62, [node("Neg", ["s"], ["t"])], state=1),
    "loop_stack": lambda: loop(2 ** 50, [node("Neg", ["x"], ["z"])], scan=1), "growing_sequence": lambda: growing_sequence(2 ** 40),
    "growing_sequence_1000": lambda: growing_sequence(1000),
    "input_huge": lambda: model([node("Neg", ["x"], ["y"])], [info("x", FLOAT, [2 ** 62, 2])]),
    "input_wraps": lambda: model([node("Neg", ["x"], ["y"])], [info("x", FLOAT, [2 ** 32, 2 ** 32, 4])]),
    "shape_arithmetic": lambda: shape_arithmetic(600), "squares": lambda: squares(30),
    "perm_long": lambda: one("Transpose", perm=lists(10 ** 6)), "axes_long": lambda: one("ReduceSum", ints("a", lists(10 ** 6))),
    "unsqueeze_long": lambda: one("Unsqueeze", ints("a", lists(10 ** 5))), "value_ints": lambda: model(
        [node("Constant", [], ["c"], value_ints=lists(10 ** 6)), node("Cast", ["c"], ["y"], to=FLOAT)], []),
    "slice_axes": lambda: one("Slice", ints("a", lists(10 ** 5)), ints("b", lists(10 ** 5)), ints("c", lists(10 ** 5))),
    "einsum_52": lambda: model([node("Einsum", ["x", "x"], ["y"], equation=f"{EINSUM[:8]},{EINSUM[8:16]}->{EINSUM[:16]}")], [info("x", FLOAT, [2] * 8)]),
    "einsum_long": lambda: model([node("Einsum", ["x"], ["y"], equation="i" * 10 ** 6 + "->i")]),
    "resize_sizes": lambda: model([node("Resize", ["x", "", "", "s"], ["y"])], [info("x", FLOAT, [1, 1, 4, 4])], weights=[ints("s", [1, 1, 2 ** 31, 2 ** 31])]),
    "resize_infinite": lambda: model([node("Resize", ["x", "", "s"], ["y"])], [info("x", FLOAT, [1, 1, 4, 4])],
                                     weights=[array(np.array([1, 1, np.inf, np.nan], np.float32), "s")]),
    "one_hot_huge": lambda: model([node("OneHot", ["i", "d", "v"], ["y"])], [], weights=[ints("i", [1]), ints("d", 2 ** 62), array(np.array([0, 1], np.float32), "v")]),
    "range_fine": lambda: made("Range", [array(np.float32(v), f"r{i}") for i, v in enumerate((0, 1, 1e-30))]),
    "range_nan": lambda: made("Range", [array(np.float32(v), f"r{i}") for i, v in enumerate((0, np.inf, 1))]),
    "sparse_huge": lambda: sparse([2 ** 31, 2 ** 31]), "sparse_large": lambda: sparse([2 ** 15, 2 ** 15]),
    "strings": lambda: model([node("Identity", ["s"], ["q"]), node("Neg", ["x"], ["y"])],
                             weights=[helper.make_tensor("s", STRING, [10 ** 6], [b""] * 10 ** 6)]),
    "tree_cycle": lambda: tree(True), "tree_chain": lambda: tree_chain(20000),
    "inputs_100000": lambda: model([node("Neg", ["x"], ["y"])], [info("x", FLOAT, [4]), *(info(f"x{i}", FLOAT, [4]) for i in range(100_000))]),
    "values_100000": lambda: model([node("Neg", ["x"], ["y"])], change=lambda m: m.graph.value_info.extend(info(f"v{i}", FLOAT, [4]) for i in range(100_000))),
    "opsets_100000": lambda: model([node("Neg", ["x"], ["y"])], change=lambda m: m.opset_import.extend(helper.make_opsetid("", 17) for _ in range(100_000))),
    "metadata": lambda: model([node("Neg", ["x"], ["y"])], change=lambda m: helper.set_model_props(m, {f"k{i}": "v" * 100 for i in range(50_000)})),
    "doc_string": lambda: model([node("Neg", ["x"], ["y"])], change=lambda m: setattr(m, "doc_string", "d" * 30_000_000)),
    "empty_weights": lambda: model([node("Neg", ["x"], ["y"])], weights=[helper.make_tensor(f"w{i}", FLOAT, [0], []) for i in range(50_000)]),
    "split_sequence": lambda: model([node("SplitToSequence", ["x"], ["q"], axis=0, keepdims=0), node("SequenceAt", ["q", "i"], ["y"])],
                                    [info("x", FLOAT, [10 ** 7])], weights=[ints("i", 3)]),
    "eye_huge": lambda: model([node("ConstantOfShape", ["s"], ["a"]), node("EyeLike", ["a"], ["y"])], [], weights=[ints("s", [2 ** 20, 2 ** 20])]),
    "cumsum_large": lambda: model([node("ConstantOfShape", ["s"], ["a"]), node("CumSum", ["a", "z"], ["y"])], [], weights=[ints("s", [2 ** 28]), ints("z", 0)]),
    "topk_huge": lambda: model([node("TopK", ["x", "k"], ["y", "j"])], weights=[ints("k", [2 ** 62])]),
    "conv_groups": lambda: model([node("Conv", ["x", "w"], ["y"], group=2 ** 40)], [info("x", FLOAT, [1, 1, 8, 8])], weights=[array(np.ones((1, 1, 3, 3), np.float32), "w")]),
    "lstm_long": lambda: model([node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)], [info("x", FLOAT, [2 ** 30, 1, 3])],
                               weights=[array(np.ones((1, 16, 3), np.float32), "w"), array(np.ones((1, 16, 4), np.float32), "r")]),
    "dft_long": lambda: model([node("DFT", ["x"], ["y"], axis=1)], [info("x", FLOAT, [1, 2 ** 24 + 1, 1])]),
    "claims.npz": lambda: npz_claims(16, 2 ** 32 - 2), "directory.npz": lambda: npz_directory(65535), "header.npz": lambda: npy_header(10 ** 8),
}
