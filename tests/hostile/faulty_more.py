"""More that can be wrong with one node, beside faulty_nodes.py: relations between its inputs, attributes and outputs."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from faulty_graphs import BOOL, FLOAT, INT64, branch, info, make, node

UINT8 = TensorProto.UINT8


def one(op, shapes, consts=(), outputs=1, opset=20, **attributes):
    """shapes: f32 shapes, or (dtype, shape); consts: arrays behind them."""
    inputs = [info(f"in{i}", *(s if isinstance(s, tuple) else (FLOAT, s))) for i, s in enumerate(shapes)]
    weights = [numpy_helper.from_array(np.asarray(c), f"w{i}") for i, c in enumerate(consts)]
    names = [*(i.name for i in inputs), *(w.name for w in weights)]
    return make([node(op, names, [f"out{i}" for i in range(outputs)], "the_node", **attributes)], inputs,
                [helper.make_empty_tensor_value_info("out0")], weights, opset)


def mixed_branches():
    sequence = helper.make_graph([node("SequenceConstruct", ["x"], ["e0"])], "e", [], [helper.make_tensor_sequence_value_info("e0", FLOAT, None)])
    return make([node("If", ["c"], ["y"], "the_node", then_branch=branch("Neg", "t"), else_branch=sequence)],
                inputs=[info("x", FLOAT, [2, 3]), info("c", BOOL, [])])


def scan_axis():
    body = helper.make_graph([node("Neg", ["s"], ["t"])], "body", [info("s", FLOAT, [3])], [info("t", FLOAT, [3])])
    return one("Scan", [[2, 3]], body=body, num_scan_inputs=1, scan_input_axes=[5])


def nameless(result):
    """A loop whose two states have no name inside."""
    body = helper.make_graph([node("Identity", ["c"], ["d"]), node("Neg", ["x"], ["t"])], "body",
                             [info("i", INT64, []), info("c", BOOL, []), info("", FLOAT, None), info("", FLOAT, None)],
                             [info("d", BOOL, []), info(result, FLOAT, None), info(result, FLOAT, None)])
    return make([node("Loop", ["n", "yes", "x", "x"], ["y", "z"], "the_node", body=body)],
                weights=[numpy_helper.from_array(np.array(5), "n"), numpy_helper.from_array(np.array(True), "yes")])


def i64(*values):
    return np.array(values, np.int64)


def f32(*shape):
    return np.ones(shape, np.float32)


def MORE():
    made = {
        "layer_norm_scale": one("LayerNormalization", [[2, 3]], [f32(4)], axis=-1), "layer_norm_axis": one("LayerNormalization", [[2, 3]], [f32(3)], axis=7),
        "groups": one("GroupNormalization", [[1, 6, 4]], [f32(4), f32(4)], num_groups=4, opset=18),
        "top_k": one("TopK", [[2, 3]], [i64(9)], 2, axis=1), "one_hot_axis": one("OneHot", [(INT64, [2])], [i64(3), f32(2)], axis=5),
        "resize_both": one("Resize", [[1, 1, 2, 2]], [f32(0), np.array([1, 1, 2, 2], np.float32), i64(1, 1, 4, 4)]),
        "einsum_extents": one("Einsum", [[2, 3], [4, 5]], equation="ij,jk->ik"), "einsum_letter": one("Einsum", [[2, 3]], equation="ij->iz"),
        "einsum_rank": one("Einsum", [[2, 3]], equation="ijk->k"), "grid": one("GridSample", [[1, 1, 4, 4], [1, 2, 2, 3]]),
        "transposed_shape": one("ConvTranspose", [[1, 1, 4, 4]], [f32(1, 1, 3, 3)], output_shape=[8]),
        "pool_strides": one("MaxPool", [[1, 1, 4, 4]], kernel_shape=[2, 2], strides=[0, 1]), "pads_odd": one("Pad", [[2, 3]], [i64(1, 1, 1)]),
        "scatter_updates": one("ScatterElements", [[4, 4]], [i64([0, 1]), f32(1, 3)]),
        "split_sum": one("Split", [[6]], [i64(2, 3)], 2), "clip_type": one("Clip", [[2, 3], (INT64, [])]),
        "direction": one("LSTM", [[4, 1, 3]], [f32(1, 16, 3), f32(1, 16, 4)], hidden_size=4, direction="sideways"),
        "directions": one("GRU", [[4, 1, 3]], [f32(1, 12, 3), f32(1, 12, 4)], hidden_size=4, direction="bidirectional"),
        "heads": one("Attention", [[1, 4, 12], [1, 4, 8], [1, 4, 8]], opset=23, q_num_heads=3, kv_num_heads=2),
        "roi_counts": one("RoiAlign", [[1, 1, 4, 4], [2, 4], (INT64, [3])]), "sequence_position": make(
            [node("SequenceConstruct", ["x"], ["q"]), node("SequenceAt", ["q", "x"], ["y"], "the_node")]),
        "sequence_types": make([node("Cast", ["x"], ["z"], to=INT64), node("SequenceConstruct", ["x", "z"], ["q"], "the_node"),
                                node("SequenceLength", ["q"], ["y"])], outputs=[info("y", INT64, [])]),
        "sequence_insert": make([node("Cast", ["x"], ["z"], to=INT64), node("SequenceConstruct", ["x"], ["q"]),
                                 node("SequenceInsert", ["q", "z"], ["r"], "the_node"), node("SequenceLength", ["r"], ["y"])],
                                outputs=[info("y", INT64, [])]),
        "mixed_branches": mixed_branches(), "nameless_result": nameless(""), "scan_axis": scan_axis(),
        "zero_point": one("DequantizeLinear", [(UINT8, [2, 3])], [np.float32(1), np.int8(0)]),
        "crop_axes": one("CenterCropPad", [[4, 4]], [i64(2, 2)], axes=[0]), "col2im_rank": one("Col2Im", [[1, 4, 4]], [i64(4, 4), i64(2)]),
        "trilu": one("Trilu", [[3, 3]], [np.float32(1)]), "integers": one("MatMulInteger", [[2, 3], [3, 2]]),
        "bits": one("BitwiseAnd", [[2, 3], [2, 3]]), "string_floats": one("StringConcat", [[2], [2]]), "cast_to": one("Cast", [[2]], to=99),
        "hidden": one("RNN", [[4, 1, 3]], [f32(1, 4, 3), f32(1, 4, 5)], hidden_size=4), "gather_rank": one("GatherND", [[2, 3]], [i64([0, 0, 0])]),
        "where_extents": one("Where", [(BOOL, [2]), [3], [3]]), "gemm_extents": one("Gemm", [[2, 3], [4, 5]]),
    }
    return [("more:nameless_inputs", 1, nameless("t"), ""), *((f"more:{name}", 0, data, "the_node") for name, data in made.items())]
