"""Still more that can be wrong: captures, functions, operators of other versions, quantisation, trees, constants, sequences, texts, recurrences.
Each row's last members are words that must be said: the node, and where it is one of its attributes or inputs that is wrong, that."""
import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from faulty_graphs import BOOL, FLOAT, INT64, X, Y, branch, info, make, node, raw
from faulty_more import f32, i64, one

UINT8, INT8, INT32, STRING = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.STRING
ML, MS = "ai.onnx.ml", "com.microsoft"


def array(values, name):
    return numpy_helper.from_array(np.asarray(values), name)


def many(nodes, inputs=(X,), weights=(), functions=(), domains=(), opset=20, outputs=None):
    """Nodes, with what they give as it comes."""
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("d", 1), *(helper.make_opsetid(d, n) for d, n in domains)]
    outputs = [helper.make_empty_tensor_value_info("y")] if outputs is None else outputs
    graph = helper.make_graph(nodes, "g", list(inputs), outputs, [array(v, n) for n, v in weights])
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10).SerializeToString()


def learned(op, shape, dtype=FLOAT, outputs=1, **attributes):
    """A node of ai.onnx.ml."""
    return many([node(op, ["x"], ["y", "z"][:outputs], "the_node", domain=ML, **attributes)], [info("x", dtype, shape)], domains=[(ML, 3)])


def of_ms(op, inputs, consts=(), **attributes):
    weights = [(f"w{i}", c) for i, c in enumerate(consts)]
    shapes = [info(f"x{i}", *(s if isinstance(s, tuple) else (FLOAT, s))) for i, s in enumerate(inputs)]
    names = [*(s.name for s in shapes), *(n for n, _ in weights)]
    return many([node(op, names, ["y"], "the_node", domain=MS, **attributes)], shapes, weights, domains=[(MS, 1)])


def function(name, nodes, inputs=("a",), outputs=("b",), opsets=(("", 20), ("d", 1)), **more):
    return helper.make_function("d", name, list(inputs), list(outputs), nodes, [helper.make_opsetid(d, n) for d, n in opsets], **more)


def calls(*functions, op="F", outputs=("y",), **attributes):
    return many([node(op, ["x"], list(outputs), "the_node", domain="d", **attributes)], functions=functions)


def looped(inner, gives="t", more=()):
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), *inner], "body",
                             [info("i", INT64, []), info("ci", BOOL, []), info("s", FLOAT, [2, 3])], [info("co", BOOL, []), info(gives, FLOAT, None)])
    return many([node("Loop", ["n", "c", "x"], ["y"], "the_node", body=body), *more], weights=[("n", np.int64(3)), ("c", np.array(True))])


def scanned(**attributes):
    body = helper.make_graph([node("Neg", ["s"], ["t"])], "body", [info("s", FLOAT, [3])], [info("t", FLOAT, [3])])
    return one("Scan", [[2, 3]], body=body, **{"num_scan_inputs": 1, **attributes})


def late_capture():
    """A branch that reads what is computed behind it."""
    return many([node("If", ["c"], ["y"], "the_node", then_branch=branch("Neg", "t", reads="later"), else_branch=branch("Abs", "e")),
                 node("Exp", ["x"], ["later"], "behind")], [X, info("c", BOOL, [])])


def inner_value():
    """What a branch computes, read outside."""
    return many([node("If", ["c"], ["z"], "chooses", then_branch=branch("Neg", "t"), else_branch=branch("Abs", "e")), node("Exp", ["t0"], ["y"], "the_node")],
                [X, info("c", BOOL, [])])


def own_result():
    return many([node("If", ["c"], ["y"], "the_node", then_branch=branch("Neg", "t", reads="y"), else_branch=branch("Abs", "e"))], [X, info("c", BOOL, [])])


def with_attribute(change, op="Elu", **given):
    made = node(op, ["x"], ["y"], "the_node", **given)
    change(made)
    return many([made])


def constant(**values):
    return many([node("Constant", [], ["y"], "the_node", **values)])


TREE = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_values=[1.0, 0.0, 0.0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
            target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0], n_targets=1)


def tree(**changed):
    return learned("TreeEnsembleRegressor", [2, 3], **{**TREE, **changed})


def tree5(**changed):
    """A branch and two leaves, as version 5 writes them."""
    number = lambda kind, values: helper.make_tensor("", kind, [len(values)], values)
    given = dict(n_targets=1, tree_roots=[0], nodes_featureids=[0], nodes_modes=number(UINT8, [0]), nodes_splits=number(FLOAT, [1.0]), nodes_truenodeids=[0],
                 nodes_falsenodeids=[1], nodes_trueleafs=[1], nodes_falseleafs=[1], leaf_targetids=[0, 0], leaf_weights=number(FLOAT, [1.0, 2.0]))
    return many([node("TreeEnsemble", ["x"], ["y"], "the_node", domain=ML, **{**given, **changed})], [info("x", FLOAT, [2, 3])], domains=[(ML, 5)])


def structure():
    neg = [node("Neg", ["a"], ["b"], "inner")]
    return {
        "late_capture": (late_capture(), "later"), "inner_value": (inner_value(), "the_node", "t0"), "own_result": (own_result(), "y"),
        "loop_gives": (looped([node("Neg", ["s"], ["t"])], "nothing"), "the_node", "nothing"),
        "loop_reads_later": (looped([node("Neg", ["later"], ["t"], "reads")], more=[node("Exp", ["x"], ["later"])]), "reads", "later"),
        "loop_inner_value": (looped([node("Neg", ["s"], ["t"])], more=[node("Exp", ["t"], ["z"], "outside")]), "outside", "'t'"),
        "outputs_equal": (many([node("Split", ["x"], ["y", "y"], "the_node", axis=0, num_outputs=2)]), "y"),
        "no_body": (many([node("Loop", ["n", "c", "x"], ["y"], "the_node")], weights=[("n", np.int64(3)), ("c", np.array(True))]), "the_node", "body"),
        "no_else": (many([node("If", ["c"], ["y"], "the_node", then_branch=branch("Neg", "t"))], [X, info("c", BOOL, [])]), "the_node", "else_branch"),
        "scan_directions": (scanned(scan_input_directions=[2]), "the_node", "scan_input_directions"),
        "scan_directions_many": (scanned(scan_input_directions=[0, 1]), "the_node", "scan_input_directions"),
        "scan_output_axes": (scanned(scan_output_axes=[3]), "the_node", "scan_output_axes"),
        "scan_negative": (scanned(num_scan_inputs=-1), "the_node", "num_scan_inputs"),
        "function_domain": (calls(function("F", neg, opsets=(("d", 1),))), "inner", "domain"),
        "function_opset": (calls(function("F", [node("Gelu", ["a"], ["b"], "inner")], opsets=(("", 17),))), "inner", "Gelu"),
        "function_outputs": (calls(function("F", neg), outputs=("y", "z")), "the_node"),
        "functions_mutual": (calls(function("F", [node("G", ["a"], ["b"], domain="d")]), function("G", [node("F", ["a"], ["b"], domain="d")])), "F"),
        "function_no_attribute": (calls(function("F", [node("Elu", ["a"], ["b"], "inner", alpha=1.0)]), nobody=1.0), "the_node", "nobody"),
        "function_output_twice": (calls(function("F", neg, outputs=("b", "b")), outputs=("y", "z")), "F"),
        "function_capture": (calls(function("F", [node("Neg", ["x"], ["b"], "inner")])), "inner", "x"),
        "attribute_nameless": (with_attribute(lambda n: n.attribute.append(AttributeProto(type=AttributeProto.INT, i=1))), "the_node"),
        "constant_two": (constant(value_float=1.0, value_int=2), "the_node"), "constant_none": (constant(), "the_node"),
        "constant_sparse": (constant(sparse_value=helper.make_sparse_tensor(helper.make_tensor("v", FLOAT, [2], [1, 2]), helper.make_tensor("i", INT64, [2], [1, 9]), [4])),
                            "the_node"),
        "sparse_and_dense": (make([node("Add", ["x", "w"], ["y"], "the_node")], weights=[raw([2, 3], 24)], change=lambda m: m.graph.sparse_initializer.append(
            helper.make_sparse_tensor(helper.make_tensor("w", FLOAT, [1], [1]), helper.make_tensor("i", INT64, [1], [1]), [2, 3]))), "w"),
        "strings_raw": (make([node("StringConcat", ["x", "w"], ["y"], "the_node")], [info("x", STRING, [2])], [info("y", STRING, [2])], [raw([2], 2, STRING)], 20), "w"),
        "nibbles": (make([node("DequantizeLinear", ["w", "s"], ["y"], "the_node")], weights=[raw([3], 3, TensorProto.INT4), array(np.float32(1), "s")], opset=21), "w"),
        "ints_of_bytes": (make([node("Cast", ["w"], ["y"], "the_node", to=1)], weights=[TensorProto(name="w", data_type=INT8, dims=[2], int32_data=[1, 300])]), "w", "300"),
        "halves_of_ints": (make([node("Cast", ["w"], ["y"], "the_node", to=1)], weights=[TensorProto(name="w", data_type=TensorProto.FLOAT16, dims=[1], int32_data=[70000])]),
                           "w", "70000"),
        "bools_of_ints": (make([node("Cast", ["w"], ["y"], "the_node", to=1)], weights=[TensorProto(name="w", data_type=BOOL, dims=[1], int32_data=[7])]), "w", "7"),
        "ir_version": (make([node("Neg", ["x"], ["y"], "the_node")], change=lambda m: m.ClearField("ir_version")), "ir_version"),
        "no_domain_version": (many([node("Scaler", ["x"], ["y"], "the_node", domain=ML, offset=[0.0], scale=[1.0])]), "the_node", ML),
    }


def versions():
    return {
        "too_new": (one("Gelu", [[2, 3]], opset=17), "the_node", "Gelu", "20"), "too_old": (one("Upsample", [[1, 1, 2, 2]], [f32(4)], opset=13), "the_node", "Upsample"),
        "attribute_too_new": (one("Reshape", [[2, 3]], [i64(3, 2)], opset=13, allowzero=1), "the_node", "allowzero"),
        "attribute_too_old": (one("ReduceSum", [[2, 3]], opset=13, axes=[0]), "the_node", "axes"),
        "input_too_new": (one("Split", [[4]], [i64(2, 2)], 2, opset=11), "the_node"), "input_too_old": (one("Squeeze", [[1, 3]], opset=13, axes=[0]), "the_node", "axes"),

        "antialias": (one("Resize", [[1, 1, 4, 4]], [f32(0), np.array([1, 1, .5, .5], np.float32)], opset=13, antialias=1), "the_node", "antialias"),
    }


def shapes():
    return {
        "reshape_two": (one("Reshape", [[2, 3]], [i64(-1, -1)]), "the_node"), "reshape_low": (one("Reshape", [[2, 3]], [i64(-2, 3)]), "the_node", "-2"),
        "reshape_zero": (one("Reshape", [[2, 3]], [i64(2, 3, 0)]), "the_node"), "reshape_count": (one("Reshape", [[2, 3]], [i64(4, 2)]), "the_node"),
        "reshape_zero_and_any": (one("Reshape", [[2, 3]], [i64(0, -1)], allowzero=1), "the_node"), "reshape_rank": (one("Reshape", [[2, 3]], [i64([3, 2])]), "the_node"),
        "unsqueeze_twice": (one("Unsqueeze", [[2, 3]], [i64(0, 0)]), "the_node"), "squeeze_three": (one("Squeeze", [[2, 3]], [i64(1)]), "the_node", "3"),
        "slice_step": (one("Slice", [[2, 3]], [i64(0), i64(1), i64(0), i64(0)]), "the_node"), "slice_axes": (one("Slice", [[2, 3]], [i64(0, 0), i64(1, 1), i64(1, 1)]), "the_node"),
        "slice_lengths": (one("Slice", [[2, 3]], [i64(0, 0), i64(1)]), "the_node"), "tile_length": (one("Tile", [[2, 3]], [i64(2)]), "the_node"),
        "tile_negative": (one("Tile", [[2, 3]], [i64(2, -1)]), "the_node", "repeats[1]", "-1"), "expand": (one("Expand", [[2, 3]], [i64(2, 4)]), "the_node", "4"),
        "concat_rank": (one("Concat", [[2, 3], [2]], axis=0), "the_node"), "concat_axis": (one("Concat", [[2, 3], [2, 3]], axis=2), "the_node", "axis"),
        "concat_no_axis": (one("Concat", [[2, 3], [2, 3]]), "the_node", "axis"), "depth": (one("DepthToSpace", [[1, 6, 2, 2]], blocksize=2), "the_node", "6"),
        "space": (one("SpaceToDepth", [[1, 1, 3, 3]], blocksize=2), "the_node", "3"), "perm_twice": (one("Transpose", [[2, 3]], perm=[0, 0]), "the_node", "perm"),
        "perm_short": (one("Transpose", [[2, 3]], perm=[0]), "the_node", "perm"), "eye": (one("EyeLike", [[3]]), "the_node"),
        "norm_length": (one("BatchNormalization", [[1, 3, 2, 2]], [f32(2), f32(3), f32(3), f32(3)]), "the_node"),
        "fill_two": (one("ConstantOfShape", [], [i64(2)], value=helper.make_tensor("v", FLOAT, [2], [1, 2])), "the_node", "value"),
        "fill_negative": (one("ConstantOfShape", [], [i64(-1)]), "the_node", "-1"), "k_negative": (one("TopK", [[3]], [i64(-1)], 2), "the_node", "-1"),
        "sizes_and_axes": (one("Resize", [[1, 1, 4, 4]], [f32(0), f32(0), i64(2, 2, 2)], axes=[2, 3]), "the_node"),
        "scale_zero": (one("Resize", [[1, 1, 4, 4]], [f32(0), np.array([1, 1, 0, 1], np.float32)]), "the_node"),
        "split_outputs": (one("Split", [[4]], [i64(2, 2)], 3), "the_node"), "split_negative": (one("Split", [[4]], [i64(5, -1)], 2), "the_node", "-1"),
        "split_both": (one("Split", [[4]], [i64(2, 2)], 2, num_outputs=2), "the_node", "num_outputs"),
        "dft_axis": (one("DFT", [[1, 8, 1]], [np.int64(0), np.int64(7)], opset=20), "the_node"), "dft_last": (one("DFT", [[1, 8, 3]]), "the_node", "3"),
        "stft_step": (one("STFT", [[1, 16, 1]], [np.int64(0)]), "the_node"), "boxes": (one("NonMaxSuppression", [[1, 4, 5], [1, 1, 4]]), "the_node"),
        "roi_columns": (one("RoiAlign", [[1, 1, 4, 4], [2, 5], (INT64, [2])]), "the_node"), "affine": (one("AffineGrid", [[1, 2, 3]], [i64(1, 1, 4)]), "the_node"),
        "random_no_shape": (one("RandomNormal", []), "the_node", "shape"), "random_type": (one("RandomUniform", [], shape=[2], dtype=STRING), "the_node", "dtype"),
        "samples": (one("Multinomial", [[1, 3]], sample_size=-1), "the_node", "sample_size"), "unique_axis": (one("Unique", [[2, 3]], axis=4), "the_node", "axis"),
        "einsum_dots": (one("Einsum", [[2, 3], [4, 3]], equation="...i,...i->..."), "the_node"), "einsum_no_arrows": (one("Einsum", [[2, 3]], equation="ij->i->j"), "the_node"),
    }


def quantised():
    u8, i8 = np.zeros(3, np.uint8), np.zeros(3, np.int8)
    return {
        "scale_rank": (one("QuantizeLinear", [[2, 3]], [f32(3, 1)]), "the_node"), "scale_length": (one("QuantizeLinear", [[2, 3]], [f32(4)], axis=1), "the_node"),
        "zero_length": (one("QuantizeLinear", [[2, 3]], [f32(3), np.zeros(2, np.uint8)]), "the_node"), "quant_axis": (one("QuantizeLinear", [[2, 3]], [f32(3), u8], axis=5), "the_node", "axis"),
        "zero_float": (one("QuantizeLinear", [[2, 3]], [np.float32(1), np.float32(0)]), "the_node"), "scale_int": (one("DequantizeLinear", [(UINT8, [2, 3])], [np.int32(1)]), "the_node"),
        "block_rank": (one("DequantizeLinear", [(INT8, [2, 4])], [f32(2)], opset=21, axis=1, block_size=2), "the_node"),
        "block_count": (one("DequantizeLinear", [(INT8, [2, 4])], [f32(2, 3)], opset=21, axis=1, block_size=2), "the_node"),
        "block_huge": (one("DequantizeLinear", [(INT8, [2, 4])], [f32(2, 1)], opset=21, axis=1, block_size=2 ** 63 - 1), "the_node", "block_size"),
        "block_negative": (one("DequantizeLinear", [(INT8, [2, 4])], [f32(2, 2)], opset=21, axis=1, block_size=-2), "the_node", "block_size"),
        "output_dtype": (one("QuantizeLinear", [[2, 3]], [f32(3), u8], opset=21, axis=1, output_dtype=INT8), "the_node", "output_dtype"),
        "quant_matmul": (one("QLinearMatMul", [(UINT8, [2, 3]), (UINT8, [3, 4])], [f32(5), np.zeros(5, np.uint8), f32(1), u8[:1], f32(1), u8[:1]]), "the_node"),
        "quant_conv": (make([node("QLinearConv", ["q", "a", "b", "w", "c", "d", "e", "f"], ["y"], "the_node")], [info("q", UINT8, [1, 1, 4, 4])],
                            [helper.make_empty_tensor_value_info("y")], [array(v, n) for n, v in (("a", np.float32(1)), ("b", np.uint8(0)), ("w", np.zeros((2, 1, 3, 3), np.int8)), (
                                "c", f32(3)), ("d", i8), ("e", np.float32(1)), ("f", np.uint8(0)))]), "the_node"),
        "n_bits": (of_ms("MatMulNBits", [[2, 32]], [np.zeros((4, 1, 16), np.uint8), f32(4)], K=32, N=4, bits=3, block_size=32), "the_node", "bits"),
        "n_bits_k": (of_ms("MatMulNBits", [[2, 32]], [np.zeros((4, 1, 16), np.uint8), f32(4)], K=64, N=4, bits=4, block_size=32), "the_node"),
        "fused": (of_ms("FusedMatMul", [[2, 3], [4, 5]]), "the_node"), "skip": (of_ms("SkipLayerNormalization", [[1, 2, 4], [1, 2, 5]], [f32(4)]), "the_node"),
    }


def of_ml():
    return {
        "tree_child": (tree(nodes_truenodeids=[9, 0, 0]), "the_node", "9"), "tree_cycle": (tree(nodes_truenodeids=[0, 0, 0]), "the_node"),
        "tree_lists": (tree(nodes_values=[1.0, 0.0]), "the_node", "nodes_values"), "tree_mode": (tree(nodes_modes=["BRANCH_ODD", "LEAF", "LEAF"]), "the_node", "BRANCH_ODD"),
        "tree_feature": (tree(nodes_featureids=[3, 0, 0]), "the_node", "3"), "tree_target": (tree(target_ids=[0, 4]), "the_node", "4"),
        "tree_weights": (tree(target_weights=[1.0]), "the_node", "target_weights"), "tree_twice": (tree(nodes_nodeids=[0, 1, 1]), "the_node"),
        "tree_roots": (tree(nodes_truenodeids=[2, 0, 0]), "the_node", "nodes_truenodeids", "node 0 of tree 0", "node 1"), "tree_tracks": (
            tree(nodes_missing_value_tracks_true=[1]), "the_node", "nodes_missing_value_tracks_true has 1", "3"), "tree5_tracks": (
            tree5(nodes_missing_value_tracks_true=[1, 0]), "the_node", "nodes_missing_value_tracks_true has 2", "nodes_featureids has 1"), "tree_parents": (
            tree(nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], nodes_truenodeids=[1, 2, 0], nodes_falsenodeids=[2, 2, 0]), "the_node", "node 2 of tree 0", "node 0 and node 1"),
        "tree_absent": (learned("TreeEnsembleRegressor", [2, 3], **{k: v for k, v in TREE.items() if k[0] != "n"}), "the_node", "nodes_treeids is missing or empty"),
        "tree_weightless": (learned("TreeEnsembleRegressor", [2, 3], **{k: v for k, v in TREE.items() if k[0] == "n"}), "the_node", "target_treeids is missing or empty"),
        "tree_few": (tree(nodes_modes=None), "the_node", "nodes_modes is missing or empty"),
        "labels": (learned("LabelEncoder", [2], INT64, keys_int64s=[1, 2], values_int64s=[1]), "the_node"), "scaler": (learned("Scaler", [2, 3], offset=[0.0, 1.0], scale=[1.0]), "the_node"),
        "linear": (learned("LinearRegressor", [2, 3], coefficients=[1.0, 2.0], targets=1), "the_node"), "categories": (learned("OneHotEncoder", [2]), "the_node"),
        "imputer": (learned("Imputer", [2, 3], imputed_value_floats=[0.0, 1.0], replaced_value_float=1.0), "the_node"),
        "norm": (learned("Normalizer", [2, 3], norm="L9"), "the_node", "L9"), "features": (learned("ArrayFeatureExtractor", [2, 3]), "the_node"),
        "post": (learned("LinearClassifier", [2, 3], outputs=2, coefficients=[1.0] * 6, intercepts=[0.0, 0.0], classlabels_ints=[0, 1], post_transform="SOFT"), "the_node", "SOFT"),
        "svm": (learned("SVMRegressor", [2, 3], coefficients=[1.0], support_vectors=[1.0] * 4, n_supports=1, kernel_type="LINEAR", rho=[0.0]), "the_node"),
    }


def others():
    lstm = [f32(1, 16, 3), f32(1, 16, 4)]
    words = info("x", STRING, [2])
    return {
        "activations": (one("LSTM", [[4, 1, 3]], lstm, hidden_size=4, activations=["Sigmoid", "Tanh", "Jump"]), "the_node", "Jump"),
        "activations_few": (one("LSTM", [[4, 1, 3]], lstm, hidden_size=4, activations=["Sigmoid"]), "the_node", "activations"),
        "layout": (one("LSTM", [[4, 1, 3]], lstm, hidden_size=4, layout=2), "the_node", "layout"), "lengths": (one("LSTM", [[4, 1, 3]], [*lstm, f32(1, 32), np.array([1, 2], np.int32)], hidden_size=4), "the_node"),
        "sequence_none": (many([node("SequenceConstruct", [], ["q"], "the_node"), node("SequenceLength", ["q"], ["y"])]), "the_node"),
        "from_sequence": (many([node("SequenceConstruct", ["x"], ["q"]), node("ConcatFromSequence", ["q"], ["y"], "the_node", axis=4)]), "the_node", "axis"),
        "to_sequence": (many([node("SplitToSequence", ["x", "s"], ["q"], "the_node"), node("SequenceLength", ["q"], ["y"])], weights=[("s", i64(1, 2))]), "the_node"),
        "sequence_of_tensor": (one("SequenceLength", [[2]]), "the_node"), "optional_nothing": (many([node("Optional", [], ["o"], "the_node"), node("OptionalHasElement", ["o"], ["y"])]), "the_node"),
        "string_sum": (one("Add", [(STRING, [2]), (STRING, [2])]), "the_node"), "pattern": (many([node("RegexFullMatch", ["x"], ["y"], "the_node", pattern="(a")], [words]), "the_node", "pattern"),
        "cast_string_bool": (one("BitCast", [(STRING, [2])], to=FLOAT, opset=26), "the_node"), "cast_none": (one("Cast", [[2]]), "the_node", "to"),
        "cast_zero": (one("Cast", [[2]], to=0), "the_node", "to"), "mode_grid": (one("GridSample", [[1, 1, 4, 4], [1, 2, 2, 2]], mode="warm"), "the_node", "warm"),
        "case": (many([node("StringNormalizer", ["x"], ["y"], "the_node", case_change_action="TITLE")], [words]), "the_node", "TITLE"),
        "approximate": (one("Gelu", [[2]], approximate="some"), "the_node", "some"), "reduction": (one("ScatterElements", [[3]], [i64(0), f32(1)], reduction="sub"), "the_node", "sub"),
        "lp": (one("LpNormalization", [[2, 3]], p=3), "the_node", "p"), "window": (one("HannWindow", [], [i64(3, 4)]), "the_node"),
        "attention_rank": (one("Attention", [[4, 12], [4, 12], [4, 12]], opset=23, q_num_heads=3, kv_num_heads=3), "the_node"),
        "rotary": (one("RotaryEmbedding", [[1, 2, 4, 6]], [f32(4, 2), f32(4, 3)], opset=23), "the_node"),
        "direction_axis": (one("CumSum", [[2, 3]], [i64(0, 1)]), "the_node"), "det": (one("Det", [[2, 3]]), "the_node"),
        "loss": (one("NegativeLogLikelihoodLoss", [[3, 5], (INT64, [4])]), "the_node"), "loss_reduction": (one("SoftmaxCrossEntropyLoss", [[3, 5], (INT64, [3])], reduction="max"), "the_node", "max"),
    }


def STRANGE():
    rows = {}
    for group in (structure, versions, shapes, quantised, of_ml, others):
        rows |= {f"{group.__name__}:{name}": row for name, row in group().items()}
    return [(name, 0, row[0], row[1:]) for name, row in rows.items()]
