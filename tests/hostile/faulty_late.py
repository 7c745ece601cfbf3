"""A fifth table of what can be wrong: norms, windows, indices, recurrences, bodies of loops and scans, what a graph declares. As in
faulty_strange.py."""
import numpy as np
from onnx import TensorProto, helper

from faulty_graphs import BOOL, FLOAT, INT64, X, Y, branch, info, make, node
from faulty_more import f32, i64, one
from faulty_strange import INT32, INT8, STRING, UINT8, many

IMAGE = [1, 4, 4, 4]


def norms():
    return {
        "groups_none": (one("GroupNormalization", [IMAGE], [f32(4), f32(4)], opset=21, num_groups=0), "the_node", "num_groups"),
        "groups_odd": (one("GroupNormalization", [IMAGE], [f32(4), f32(4)], opset=21, num_groups=3), "the_node", "num_groups"),
        "layer_axis": (one("LayerNormalization", [[2, 3]], [f32(3)], axis=3), "the_node", "axis"), "layer_scale": (one("LayerNormalization", [[2, 3]], [f32(5)]), "the_node", "5"),
        "rms_scale": (one("RMSNormalization", [[2, 3]], [f32(4)], opset=23), "the_node", "4"), "instance_scale": (one("InstanceNormalization", [IMAGE], [f32(4), f32(3)]), "the_node"),
        "lrn_none": (one("LRN", [IMAGE], size=0), "the_node", "size"), "variance_axes": (one("MeanVarianceNormalization", [IMAGE], axes=[0, 7]), "the_node", "axis 7"),
        "softmax_axis": (one("Softmax", [[2, 3]], axis=-4), "the_node", "axis"), "argmax_axis": (one("ArgMax", [[2, 3]], axis=5), "the_node", "axis"),
    }


def windows():
    w = f32(2, 4, 3, 3)
    return {
        "stride_none": (one("MaxPool", [IMAGE], kernel_shape=[2, 2], strides=[0, 1]), "the_node", "strides"), "kernel_none": (one("AveragePool", [IMAGE], kernel_shape=[0, 2]), "the_node", "kernel_shape"),
        "storage": (one("MaxPool", [IMAGE], kernel_shape=[2, 2], storage_order=2), "the_node", "storage_order"), "auto_pad": (one("Conv", [IMAGE], [w], auto_pad="MIDDLE"), "the_node", "MIDDLE"),
        "deformed": (one("DeformConv", [IMAGE, [1, 7, 2, 2]], [w], kernel_shape=[3, 3]), "the_node"), "unpooled": (one("MaxUnpool", [[1, 1, 2, 2], (INT64, [1, 1, 2, 3])], kernel_shape=[2, 2]), "the_node"),
        "columns": (one("Col2Im", [[1, 5, 4]], [i64(4, 4), i64(2, 2)]), "the_node"), "padding_out": (one("ConvTranspose", [[1, 4, 4, 4]], [f32(4, 2, 3, 3)], strides=[2, 2], output_padding=[1]), "the_node", "output_padding"),
        "shape_out": (one("ConvTranspose", [[1, 4, 4, 4]], [f32(4, 2, 3, 3)], output_shape=[3]), "the_node", "output_shape"), "dilation_none": (one("Conv", [IMAGE], [w], dilations=[0, 1]), "the_node", "dilations"),
    }


def indices():
    return {
        "float_index": (one("Gather", [[2, 3], [1]]), "the_node"), "batches": (one("GatherND", [[2, 3], (INT64, [2, 1])], batch_dims=3), "the_node", "batch_dims"),
        "element_rank": (one("GatherElements", [[2, 3], (INT64, [2])]), "the_node"), "updates": (one("ScatterND", [[4, 3], (INT64, [2, 1]), [2, 4]]), "the_node"),
        "scatter_beyond": (one("ScatterElements", [[3]], [i64(3), f32(1)]), "the_node", "3"), "depth_negative": (one("OneHot", [(INT64, [2])], [i64(-3), f32(2)]), "the_node", "-3"),
        "values_three": (one("OneHot", [(INT64, [2])], [i64(3), f32(3)]), "the_node"), "range_still": (one("Range", [], [np.int64(0), np.int64(4), np.int64(0)]), "the_node"),
        "trilu_rank": (one("Trilu", [[3]]), "the_node"), "sum_axis": (one("CumSum", [[2, 3]], [np.int64(5)]), "the_node", "5"),
        "reverse_axes": (one("ReverseSequence", [[2, 3], (INT64, [3])], batch_axis=1, time_axis=1), "the_node"), "reverse_lengths": (one("ReverseSequence", [[4, 3], (INT64, [5])]), "the_node"),
        "grams_mode": (one("TfIdfVectorizer", [(INT64, [4])], mode="TFF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1]), "the_node", "TFF"),
        "grams_indexes": (one("TfIdfVectorizer", [(INT64, [4])], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0, 1, 2], pool_int64s=[1]), "the_node"),
        "grams_lengths": (one("TfIdfVectorizer", [(INT64, [4])], mode="TF", min_gram_length=3, max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1]), "the_node"),
    }


def kinds():
    return {
        "choice": (one("Where", [[2], [2], [2]]), "the_node"), "remainder": (one("Mod", [[2], [2]]), "the_node", "fmod"), "shift": (one("BitShift", [(UINT8, [2]), (UINT8, [2])], direction="UP"), "the_node", "UP"),
        "bits": (one("BitwiseAnd", [[2], [2]]), "the_node"), "negation": (one("Not", [[2]]), "the_node"), "clip_list": (one("Clip", [[2]], [f32(2)]), "the_node"),
        "gemm_rank": (one("Gemm", [[2, 3, 4], [4, 5]]), "the_node"), "gemm_sum": (one("Gemm", [[2, 3], [3, 4], [3, 3]]), "the_node"), "slope": (one("PRelu", [[2, 3]], [f32(4)]), "the_node"),
        "integer_zero": (one("MatMulInteger", [(UINT8, [2, 3]), (UINT8, [3, 4])], [np.zeros(5, np.uint8)]), "the_node"), "dynamic": (one("DynamicQuantizeLinear", [(INT32, [2])], outputs=3), "the_node"),
        "fill_float": (one("ConstantOfShape", [[2]]), "the_node"), "sizes_differ": (one("Einsum", [[2, 3], [4, 5]], equation="ij,jk->ik"), "the_node"),
        "words": (one("Exp", [(STRING, [2])]), "the_node"), "causal": (one("Attention", [[1, 4, 8]] * 3, opset=23, q_num_heads=3, kv_num_heads=3), "the_node"),
    }


def recurrences():
    return {
        "hidden": (one("GRU", [[4, 1, 3]], [f32(1, 12, 3), f32(1, 12, 4)], hidden_size=5), "the_node", "hidden_size"),
        "sideways": (one("GRU", [[4, 1, 3]], [f32(1, 12, 3), f32(1, 12, 4)], hidden_size=4, direction="sideways"), "the_node", "sideways"),
        "one_direction": (one("RNN", [[4, 1, 3]], [f32(1, 4, 3), f32(1, 4, 4)], hidden_size=4, direction="bidirectional"), "the_node"),
        "condition": (many([node("If", ["c"], ["y"], "the_node", then_branch=branch("Neg", "t"), else_branch=branch("Abs", "e"))], [X, info("c", BOOL, [2])]), "the_node"),
        "trips": (loop(FLOAT, FLOAT), "the_node"), "state_type": (loop(INT64, INT64), "the_node"), "no_scans": (scan(0), "the_node", "num_scan_inputs"), "lengths": (scan(2, 3), "the_node"),
        "insert": (many([node("SequenceConstruct", ["x"], ["q"]), node("SequenceInsert", ["q", "k"], ["r"], "the_node"), node("SequenceLength", ["r"], ["y"])], [X, info("k", INT64, [2])]), "the_node"),
        "split_axis": (many([node("SplitToSequence", ["x"], ["q"], "the_node", axis=5), node("SequenceLength", ["q"], ["y"])]), "the_node", "axis"),
    }


def loop(trips, gives):
    """A state that starts as a float and comes back as something else, or a count that is none."""
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), node("Cast", ["s"], ["t"], to=gives)], "body", [info("i", INT64, []), info("ci", BOOL, []), info("s", FLOAT, [2, 3])],
                             [info("co", BOOL, []), info("t", gives, [2, 3])])
    return many([node("Loop", ["n", "", "x"], ["y"], "the_node", body=body)], [X, info("n", trips, [])])


def scan(n, rows=2):
    body = helper.make_graph([node("Add", ["a", "b"], ["t"])], "body", [info("a", FLOAT, [3]), info("b", FLOAT, [3])], [info("t", FLOAT, [3])])
    return many([node("Scan", ["x", "z"], ["y"], "the_node", body=body, num_scan_inputs=n)], [X, info("z", FLOAT, [rows, 3])])


def declared():
    neg = [node("Neg", ["x"], ["y"], "the_node")]
    return {
        "other_type": (make(neg, outputs=[info("y", INT64, [2, 3])]), "y"),
        "input_twice": (make(neg, [X, X]), "x"), "output_twice": (make(neg, outputs=[Y, Y]), "y"), "weight_and_result": (many(neg, weights=[("y", f32(2, 3))]), "y"),
        "no_opsets": (make(neg, change=lambda m: m.ClearField("opset_import")), "opset"), "no_operator": (make([node("", ["x"], ["y"], "the_node")]), "the_node"),
        "no_graph": (make(neg, change=lambda m: m.ClearField("graph")), "graph"),
    }


def LATE():
    rows = {}
    for group in (norms, windows, indices, kinds, recurrences, declared):
        rows |= {f"{group.__name__}:{name}": row for name, row in group().items()}
    return [(name, 0, row[0], row[1:]) for name, row in rows.items()]
