#!/usr/bin/env python3
"""make_cases.py OUT_DIR: writes dlc's own cases as test folders, like onnx's: what its node tests leave out.

A case is a function of this file: it builds a small model, and says what must come out, by numpy or by onnx's reference
evaluator. OUT_DIR/NAME/{model.onnx, data.json, test_data_set_0/{input,output}_J.pb}.
"""
import argparse
import hashlib
import json
import pathlib
import shutil

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import control_cases

node, info = helper.make_node, helper.make_tensor_value_info
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def rng():
    return np.random.default_rng(7)


def normal(*shape, dtype=np.float32):
    return rng().standard_normal(shape).astype(dtype)


def model(nodes, inputs, outputs, weights=None, opset=17, domains=(), shapes=None):
    """inputs: name -> array; shapes: name -> dimensions where names stand for symbols; outputs: names."""
    of = helper.np_dtype_to_tensor_dtype
    shapes = shapes or {}
    ins = [info(n, of(v.dtype), shapes.get(n, v.shape)) for n, v in inputs.items()]
    outs = [info(n, T.UNDEFINED, None) if isinstance(n, str) else info(n[0], n[1], None) for n in outputs]
    consts = [numpy_helper.from_array(np.asarray(v), n) for n, v in (weights or {}).items()]
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    return helper.make_model(helper.make_graph(nodes, "case", ins, outs, consts), opset_imports=opsets, ir_version=10)


def run(nodes, inputs, outputs, expected=None, rtol=1e-4, atol=1e-6, **options):
    """A case; what is expected comes from the reference evaluator where the case does not say."""
    typed = list(outputs)
    if expected is None:
        names = [o if isinstance(o, str) else o[0] for o in outputs]
        expected = ReferenceEvaluator(model(nodes, inputs, [(n, T.FLOAT) for n in names], **options)).run(names, inputs)
    expected = [np.asarray(e) for e in expected]
    typed = [(n if isinstance(n, str) else n[0], helper.np_dtype_to_tensor_dtype(e.dtype)) for n, e in zip(typed, expected)]
    return model(nodes, inputs, typed, **options), inputs, dict(zip([n for n, _ in typed], expected)), rtol, atol


# --- indices and layouts ---

@case
def index_through_floats():
    """Buckets of distances, as T5 has them: an index that was a float is data."""
    w = normal(32, 4)
    nodes = [node("Shape", ["x"], ["s"], end=1), node("Squeeze", ["s"], ["n"]), node("Range", ["zero", "n", "one"], ["r"]),
             node("Cast", ["r"], ["f"], to=T.FLOAT), node("Mul", ["f", "k"], ["fk"]), node("Cast", ["fk"], ["i"], to=T.INT64),
             node("Add", ["i", "eight"], ["j"]), node("Gather", ["w", "j"], ["g"]), node("Transpose", ["g"], ["y"], perm=[1, 0])]
    weights = {"zero": np.int64(0), "one": np.int64(1), "k": np.float32(0.1), "eight": np.int64(8), "w": w}
    return run(nodes, {"x": normal(20)}, ["y"], weights=weights, shapes={"x": ["n"]})


@case
def top_k_of_transpose():
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]), node("TopK", ["t", "k"], ["y", "i"])]
    return run(nodes, {"x": normal(1, 4, 6, 6)}, ["y", "i"], weights={"k": np.array([2])})


@case
def top_k_of_conv():
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Relu", ["c"], ["r"]), node("TopK", ["r", "k"], ["y", "i"], axis=1)]
    return run(nodes, {"x": normal(1, 4, 6, 6)}, ["y", "i"], weights={"k": np.array([2]), "w": normal(4, 4, 3, 3)})


@case
def conv_of_top_k():
    nodes = [node("TopK", ["x", "k"], ["t", "i"], axis=2), node("Conv", ["t", "w"], ["y"])]
    return run(nodes, {"x": normal(1, 4, 6, 6)}, ["y"], weights={"k": np.array([4]), "w": normal(4, 4, 3, 3)}, atol=1e-5)


@case
def nonzero_of_conv():
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Greater", ["c", "z"], ["g"]), node("NonZero", ["g"], ["y"])]
    return run(nodes, {"x": normal(1, 4, 6, 6)}, ["y"], weights={"z": np.float32(0), "w": normal(4, 4, 3, 3)})


@case
def nonzero_of_max_pool():
    nodes = [node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2]), node("NonZero", ["p"], ["y"])]
    return run(nodes, {"x": np.maximum(normal(1, 2, 6, 6), 0)}, ["y"])


# --- arithmetic at the edges ---

@case
def log_sum_exp_of_one():
    return run([node("ReduceLogSumExp", ["x"], ["y"])], {"x": np.float32(100)}, ["y"], [np.float32(100)])


@case
def pow_odd_exponent():
    x, e = np.array([-1, -1, 2], np.float32), np.array([1001, 1000, -2], np.int32)
    return run([node("Pow", ["x", "e"], ["y"])], {"x": x, "e": e}, ["y"], [np.array([-1, 1, 0.25], np.float32)])


@case
def pow_half_odd_exponent():
    x, e = np.array([-1, 2], np.float16), np.array([3001, 3], np.int32)
    return run([node("Pow", ["x", "e"], ["y"])], {"x": x, "e": e}, ["y"], [np.array([-1, 8], np.float16)])


@case
def pow_wide_exponent():
    x, e = np.array([2, -1, 3], np.int32), np.array([2**33 + 1, 2**33 + 1, 2], np.int64)
    return run([node("Pow", ["x", "e"], ["y"])], {"x": x, "e": e}, ["y"], [np.array([0, -1, 9], np.int32)])


@case
def pool_of_too_little():
    nodes = [node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3]), node("AveragePool", ["x"], ["z"], kernel_shape=[3, 3])]
    empty = np.zeros((1, 1, 0, 3), np.float32)
    return run(nodes, {"x": normal(1, 1, 2, 5)}, ["y", "z"], [empty, empty])


@case
def expand_of_first():
    nodes = [node("Slice", ["x", "zero", "one"], ["f"]), node("Shape", ["m"], ["s"]), node("Expand", ["f", "s"], ["y"])]
    return run(nodes, {"x": normal(3, 5), "m": normal(4, 5)}, ["y"], weights={"zero": np.array([0]), "one": np.array([1])},
               shapes={"x": ["n", 5], "m": ["e", 5]})


# --- axes, steps and sizes that only the run knows ---

@case
def reduce_two_axes_of_four():
    x = normal(2, 3, 4, 5)
    nodes = [node("ReduceMean", ["x", "a"], ["m"], keepdims=0), node("ReduceLogSumExp", ["x", "a"], ["l"], keepdims=0),
             node("ReduceMax", ["x", "a"], ["t"]), node("ReduceL2", ["x", "b"], ["n"], keepdims=0)]
    axes = (3, 1)
    expected = [x.mean(axes), np.log(np.exp(x).sum(axes)), x.max(axes, keepdims=True), np.sqrt((x * x).sum())]
    inputs = {"x": x, "a": np.array([-1, 1]), "b": np.array([1, 0, -1, 2])}
    return run(nodes, inputs, ["m", "l", "t", "n"], expected, opset=18)


@case
def reduce_one_axis_of_symbols():
    x = normal(2, 3, 4)
    return run([node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"x": x, "a": np.array([1])}, ["y"], [x.sum(1)],
               shapes={"x": ["n", "m", "k"]})


@case
def slice_of_everything():
    x = normal(20, 10, 5)
    nodes = [node("Slice", ["x", "s", "e", "a", "t"], ["y"])]
    inputs = {"x": x, "s": np.array([20, 0]), "e": np.array([-100, 7]), "a": np.array([0, -1]), "t": np.array([-3, 2])}
    return run(nodes, inputs, ["y"], [x[20:None:-3, :, 0:7:2]], shapes={"x": ["n", 10, "k"]})


@case
def pad_and_shape_by_axes():
    x = normal(1, 3, 4)
    nodes = [node("Pad", ["x", "p", "", "a"], ["y"]), node("Squeeze", ["x", "q"], ["z"]), node("Unsqueeze", ["x", "u"], ["v"])]
    inputs = {"x": x, "p": np.array([1, 2, 0, 1]), "a": np.array([2, -2]), "q": np.array([0]), "u": np.array([4, 1])}
    return run(nodes, inputs, ["y", "z", "v"], [np.pad(x, ((0, 0), (2, 1), (1, 0))), x[0], x[:, None, :, :, None]], opset=18)


# --- old operators ---

@case
def broadcast_by_attributes():
    """As opset 6 has it: the second operand's dimensions begin at an axis."""
    x, b, s = normal(2, 3, 4), normal(3), normal(3)
    nodes = [node("Mul", ["x", "b"], ["m"], broadcast=1, axis=1), node("Add", ["m", "one"], ["a"], broadcast=1),
             node("PRelu", ["a", "s"], ["p"]), node("Greater", ["x", "b"], ["g"], broadcast=1, axis=1),
             node("Reshape", ["p", "shape"], ["r"])]
    m = x * b[:, None] + np.float32(1)
    return run(nodes, {"x": x}, ["r", "g"], [np.where(m < 0, m * s[:, None], m).reshape(6, 4), x > b[:, None]],
               weights={"b": b, "s": s, "one": np.float32(1), "shape": np.array([-1, 4])}, opset=6)


@case
def attributes_that_became_inputs():
    x = normal(2, 3, 2, 2)
    nodes = [node("Reshape", ["x"], ["r"], shape=[0, -1]), node("Cast", ["r"], ["i"], to="INT32"),
             node("Pad", ["r"], ["p"], paddings=[0, 1, 0, 2], value=0.5), node("Concat", ["r", "r"], ["c"]),
             node("Dropout", ["r"], ["d"], is_test=1, consumed_inputs=[0])]
    r = x.reshape(2, 12)
    expected = [r.astype(np.int32), np.pad(r, ((0, 0), (1, 2)), constant_values=0.5), np.concatenate([r, r], 1), r]
    return run(nodes, {"x": x}, ["i", "p", "c", "d"], expected, opset=1)


@case
def batch_normalization_of_opset_6():
    x, g, b, m = normal(2, 3, 4), normal(3), normal(3) + 1, normal(3)
    v = np.abs(normal(3)) + np.float32(0.5)
    t = lambda a: a[:, None]
    y = (x - t(m)) / np.sqrt(t(v) + np.float32(1e-5)) * t(g) + t(b)
    nodes = [node("BatchNormalization", ["x", "g", "b", "m", "v"], ["y"], is_test=1, spatial=1)]
    return run(nodes, {"x": x}, ["y"], [y], weights={"g": g, "b": b, "m": m, "v": v}, opset=6)


@case
def resize_10_rounds_up_where_it_shrinks():
    x = np.arange(35, dtype=np.float32).reshape(1, 1, 5, 7)
    rows, columns = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4], [0, 2, 4, 5]
    return run([node("Resize", ["x", "s"], ["y"])], {"x": x}, ["y"], [x[:, :, rows][:, :, :, columns]],
               weights={"s": np.array([1, 1, 2.5, 0.6], np.float32)}, opset=10)


# --- ai.onnx.ml ---

ML = (("ai.onnx.ml", 3),)


def ml(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def grow(generator, ntrees, depth, nfeatures, targets, key, modes=("BRANCH_LEQ",), positive=False):
    """Attributes of random trees."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                             "missing_value_tracks_true")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def plant(tree, level, count):
        number, at = count[0], len(nodes["modes"])
        count[0] += 1
        is_leaf = level == 0 or (level < depth and generator.random() < 0.2)
        row = (tree, number, 0 if is_leaf else int(generator.integers(nfeatures)),
               0.0 if is_leaf else float(np.float32(generator.standard_normal())),
               "LEAF" if is_leaf else str(generator.choice(modes)), 0, 0, int(generator.random() < 0.5))
        for k, v in zip(nodes, row):
            nodes[k].append(v)
        for t in targets if is_leaf else ():
            weight = generator.random() if positive else generator.standard_normal()
            for k, v in zip(leaves, (tree, number, t, float(np.float32(weight)))):
                leaves[k].append(v)
        if not is_leaf:
            nodes["truenodeids"][at] = plant(tree, level - 1, count)
            nodes["falsenodeids"][at] = plant(tree, level - 1, count)
        return number

    for tree in range(ntrees):
        plant(tree, depth, [0])
    return {**{"nodes_" + k: v for k, v in nodes.items()}, **{f"{key}_{k}": v for k, v in leaves.items()}}


def go_down(attributes, x, key, ntargets):
    """[samples, trees, targets]: what the leaves weigh, one sample and one tree at a time."""
    nodes = {k[6:]: v for k, v in attributes.items() if k.startswith("nodes_")}
    tests = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater,
             "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal}
    index = {(t, n): i for i, (t, n) in enumerate(zip(nodes["treeids"], nodes["nodeids"]))}
    trees = sorted(set(nodes["treeids"]))
    result = np.zeros((len(x), len(trees), ntargets))
    for s, sample in enumerate(x):
        for t in trees:
            i = index[t, 0]
            while nodes["modes"][i] != "LEAF":
                value = sample[nodes["featureids"][i]]
                yes = tests[nodes["modes"][i]](value, np.float32(nodes["values"][i]))
                yes = yes or (np.isnan(value) and nodes["missing_value_tracks_true"][i])
                i = index[t, nodes["truenodeids" if yes else "falsenodeids"][i]]
            for lt, ln, li, lw in zip(*(attributes[f"{key}_{k}"] for k in ("treeids", "nodeids", "ids", "weights"))):
                if (lt, ln) == (t, nodes["nodeids"][i]):
                    result[s, t, li] += lw
    return result


def with_gaps(*shape):
    x = normal(*shape)
    x[rng().random(shape) < 0.2] = np.nan
    return x


@case
def trees_sum_and_extremes():
    x, generator = with_gaps(17, 5), rng()
    trees = grow(generator, 7, 5, 5, (0, 1), "target", ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_NEQ"))
    weights = go_down(trees, x, "target", 2)
    hows = {"SUM": weights.sum(1), "AVERAGE": weights.mean(1), "MIN": weights.min(1), "MAX": weights.max(1)}
    nodes = [ml("TreeEnsembleRegressor", ["x"], [how], n_targets=2, aggregate_function=how, base_values=[0.5, 1.0], **trees)
             for how in hows]
    return run(nodes, {"x": x}, list(hows), [(v + [0.5, 1.0]).astype(np.float32) for v in hows.values()], domains=ML,
               shapes={"x": ["n", 5]})


@case
def trees_vote_for_three():
    x, generator = with_gaps(11, 4), rng()
    trees = grow(generator, 5, 4, 4, (0, 1, 2), "class")
    scores = go_down(trees, x, "class", 3).sum(1)
    soft = np.exp(scores - scores.max(1, keepdims=True))
    nodes = [ml("TreeEnsembleClassifier", ["x"], ["l", "p"], classlabels_int64s=[7, 5, 3], post_transform="SOFTMAX", **trees)]
    labels = np.array([7, 5, 3])[scores.argmax(1)]
    return run(nodes, {"x": x}, ["l", "p"], [labels, (soft / soft.sum(1, keepdims=True)).astype(np.float32)], domains=ML)


@case
def trees_weigh_for_one_of_two():
    """As boosted trees are written: the score of one label, through a sigmoid."""
    x, generator = normal(11, 4), rng()
    trees = grow(generator, 5, 4, 4, (0,), "class")
    score = go_down(trees, x, "class", 1).sum(1)[:, 0] + 0.25
    nodes = [ml("TreeEnsembleClassifier", ["x"], ["l", "p"], classlabels_int64s=[0, 1], post_transform="LOGISTIC",
                base_values=[0.25], **trees)]
    p = 1 / (1 + np.exp(-score))
    return run(nodes, {"x": x}, ["l", "p"], [(score > 0).astype(np.int64), np.stack([1 - p, p], 1).astype(np.float32)],
               domains=ML)


@case
def scale_impute_and_classify():
    """A pipeline as skl2onnx writes it, its domain imported twice."""
    x = with_gaps(9, 3)
    filled = np.where(np.isnan(x), np.float32([1, 2, 3]), x)
    scaled = (filled - np.float32([1, 0, -1])) * np.float32([2, 1, 0.5])
    w, b = normal(2, 3), np.float32([0.1, -0.2])
    scores = scaled @ w.T + b
    soft = np.exp(scores - scores.max(1, keepdims=True))
    nodes = [ml("Imputer", ["x"], ["f"], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan")),
             ml("Scaler", ["f"], ["s"], offset=[1.0, 0.0, -1.0], scale=[2.0, 1.0, 0.5]),
             ml("LinearClassifier", ["s"], ["l", "c"], classlabels_ints=[4, 9], coefficients=w.ravel().tolist(),
                intercepts=b.tolist(), post_transform="SOFTMAX"),
             ml("Normalizer", ["c"], ["p"], norm="L1"), ml("ZipMap", ["p"], ["z"], classlabels_int64s=[4, 9])]
    p = (soft / soft.sum(1, keepdims=True)).astype(np.float32)
    return run(nodes, {"x": x}, ["l", "z"], [np.array([4, 9])[scores.argmax(1)], p], domains=(*ML, *ML))


@case
def encoders():
    x = np.array([[1, 5], [2, 9]])
    nodes = [ml("OneHotEncoder", ["x"], ["o"], cats_int64s=[1, 2, 5]),
             ml("LabelEncoder", ["x"], ["e"], keys_int64s=[1, 2, 5], values_floats=[0.5, 0.25, 3.0], default_float=-7.0),
             ml("FeatureVectorizer", ["x", "x"], ["v"], inputdimensions=[1, 3]),
             ml("ArrayFeatureExtractor", ["x", "i"], ["a"])]
    hot = (x[..., None] == np.array([1, 2, 5])).astype(np.float32)
    wide = np.array([[1, 1, 5, 0], [2, 2, 9, 0]], np.float32)
    return run(nodes, {"x": x}, ["o", "e", "v", "a"], [hot, np.array([[0.5, 3], [0.25, -7]], np.float32), wide, x[:, [1, 0, 1]]],
               weights={"i": np.array([1, 0, 1])}, domains=ML)


@case
def support_vectors():
    x, sv, c = normal(8, 3), normal(6, 3)[::-1].copy(), normal(2, 6)
    k = np.exp(-0.3 * ((x[:, None] - sv) ** 2).sum(-1))
    d = [k[:, :3] @ c[0, :3] + k[:, 3:5] @ c[0, 3:5] + 0.1, k[:, :3] @ c[1, :3] + k[:, 5:] @ c[0, 5:] - 0.2,
         k[:, 3:5] @ c[1, 3:5] + k[:, 5:] @ c[1, 5:] + 0.3]
    votes = np.stack([(d[0] > 0) * 1 + (d[1] > 0), (d[0] <= 0) * 1 + (d[2] > 0), (d[1] <= 0) * 1 + (d[2] <= 0)], 1)
    common = {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 3.0], "support_vectors": sv.ravel().tolist()}
    nodes = [ml("SVMRegressor", ["x"], ["y"], coefficients=c[0].tolist(), n_supports=6, rho=[0.4], **common),
             ml("SVMClassifier", ["x"], ["l", "s"], coefficients=c.ravel().tolist(), vectors_per_class=[3, 2, 1],
                rho=[0.1, -0.2, 0.3], classlabels_ints=[0, 1, 2], **common)]
    return run(nodes, {"x": x}, ["y", "l", "s"], [(k @ c[0] + 0.4)[:, None].astype(np.float32), votes.argmax(1),
                                                  np.stack(d, 1).astype(np.float32)], domains=ML)


def coupled(r):
    """The p that pairwise probabilities r[i, j] of i against j least contradict, a sample at a time."""
    k = len(r)
    q = np.diag((r ** 2).sum(0)) - r * r.T
    p = np.full(k, 1 / k)
    for _ in range(100):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            step = (pqp - qp[t]) / q[t, t]
            pqp = (pqp + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            qp = (qp + step * q[t]) / (1 + step)
            p = (p + step * (np.arange(k) == t)) / (1 + step)
    return p


@case
def support_vectors_and_probabilities():
    """Of four classes, whose pairs contradict each other; encoded categories that must be known."""
    x, w, n = normal(9, 3), np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32), 4
    a, b, rho = [-2.0, -1.5, -3.0, -1.0, -2.5, -2.0], [0.1, 0.0, -0.2, 0.3, 0.0, 0.1], [0.1, 0.2, -0.3, 0.0, 0.4, -0.1]
    c = np.random.default_rng(6).standard_normal((n - 1, n)).astype(np.float32)
    k = x @ w.T
    r = np.zeros((len(x), n, n))
    for at, (i, j) in enumerate((i, j) for i in range(n) for j in range(i + 1, n)):
        d = k[:, i] * c[j - 1, i] + k[:, j] * c[i, j] + rho[at]
        r[:, i, j] = np.clip(1 / (1 + np.exp(a[at] * d + b[at])), 1e-7, 1 - 1e-7)
        r[:, j, i] = 1 - r[:, i, j]
    nodes = [ml("SVMClassifier", ["x"], ["l", "p"], coefficients=c.ravel().tolist(), vectors_per_class=[1] * n, rho=rho, prob_a=a, prob_b=b,
                classlabels_ints=list(range(n)), support_vectors=w.ravel().tolist(), kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0]),
             ml("OneHotEncoder", ["i"], ["o"], cats_int64s=[4, 7], zeros=0)]
    i = np.array([[7, 4, 4]])
    return run(nodes, {"x": x, "i": i}, ["p", "o"], [np.array([coupled(row) for row in r], np.float32), np.eye(2, dtype=np.float32)[(i == 7) * 1]],
               domains=ML, shapes={"x": ["n", 3]}, rtol=1e-3, atol=1e-4)


# --- com.microsoft ---

MS = (("com.microsoft", 1),)


def ms(op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, domain="com.microsoft", **attributes)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@case
def fused_products():
    x, w, b, image, f, add = normal(3, 8), normal(6, 8), normal(6), normal(1, 3, 5, 5), normal(4, 3, 3, 3), normal(1, 4, 3, 3)
    nodes = [ms("FusedMatMul", ["x", "w"], ["m"], transB=1, alpha=0.5), ms("FusedGemm", ["x", "w", "b"], ["g"], transB=1,
             activation="LeakyRelu", activation_alpha=0.25), ms("FusedConv", ["i", "f", "", "a"], ["c"], activation="Relu")]
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    conv = np.einsum("nchwij,ocij->nohw", windows, f) + add
    g = x @ w.T + b
    return run(nodes, {"x": x, "i": image}, ["m", "g", "c"], [0.5 * x @ w.T, np.where(g > 0, g, 0.25 * g), np.maximum(conv, 0)],
               weights={"w": w, "b": b, "f": f, "a": add}, domains=MS, atol=1e-5)


@case
def skip_normalization():
    x, s, g, b = normal(2, 3, 8), normal(3, 8)[None].repeat(2, 0), normal(8), normal(1, 8)[0] + 1
    total = x + s
    norm = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + np.float32(1e-5))
    rms = total / np.sqrt((total**2).mean(-1, keepdims=True) + np.float32(1e-5))
    nodes = [ms("SkipLayerNormalization", ["x", "s", "g", "b"], ["y", "", "", "t"], epsilon=1e-5),
             ms("SkipSimplifiedLayerNormalization", ["x", "s", "g"], ["r"], epsilon=1e-5)]
    return run(nodes, {"x": x, "s": s}, ["y", "t", "r"], [norm * g + b, total, rms * g], weights={"g": g, "b": b}, domains=MS)


@case
def weights_of_four_bits():
    g = rng()
    x, codes, zeros = normal(3, 40), g.integers(0, 16, (10, 48)), g.integers(0, 16, (10, 4))
    scales = g.random((10, 3)).astype(np.float32)
    w = ((codes.reshape(10, 3, 16) - zeros[:, :3, None]) * scales[..., None]).reshape(10, 48)[:, :40].astype(np.float32)
    packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8).reshape(10, 3, 8)
    packed_zeros = (zeros[:, 0::2] | zeros[:, 1::2] << 4).astype(np.uint8).ravel()
    nodes = [ms("MatMulNBits", ["x", "w", "s", "z"], ["y"], K=40, N=10, bits=4, block_size=16)]
    return run(nodes, {"x": x}, ["y"], [x @ w.T], weights={"w": packed, "s": scales.ravel(), "z": packed_zeros}, domains=MS,
               atol=1e-4)


@case
def attention_with_masks():
    x, w, b = normal(2, 4, 8), normal(8, 24), normal(24)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    q, k, v = np.split((x @ w + b).reshape(2, 4, 6, 4).transpose(0, 2, 1, 3), 3, 1)
    scores = q @ k.transpose(0, 1, 3, 2) / 2
    masked = softmax(scores + np.where(mask, 0, -10000)[:, None, None]) @ v
    later = np.triu(np.full((4, 4), -np.inf), 1)
    causal = softmax(scores + later) @ v
    flat = lambda t: t.transpose(0, 2, 1, 3).reshape(2, 4, 8).astype(np.float32)
    nodes = [ms("Attention", ["x", "w", "b", "m"], ["y"], num_heads=2), ms("Attention", ["x", "w", "b"], ["z"], num_heads=2,
             unidirectional=1), ms("MultiHeadAttention", ["q", "k", "v", "", "m"], ["u"], num_heads=2)]
    inputs = {"x": x, "m": mask, **{n: flat(t) for n, t in zip("qkv", (q, k, v))}}
    return run(nodes, inputs, ["y", "z", "u"], [flat(masked), flat(causal), flat(masked)], weights={"w": w, "b": b}, domains=MS)


@case
def quantised_neighbours():
    """What the quantiser leaves between convolutions: scales of two make every product exact."""
    g = rng()
    a, b = g.integers(0, 256, (4, 5)).astype(np.uint8), g.integers(0, 256, (4, 5)).astype(np.uint8)
    real_a, real_b = (a.astype(np.float32) - 120) * 0.125, (b.astype(np.float32) - 110) * 0.0625
    to_y = lambda r: np.clip(np.rint(r / np.float32(0.25)) + 100, 0, 255).astype(np.uint8)
    w = {"as": np.float32(0.125), "az": np.uint8(120), "bs": np.float32(0.0625), "bz": np.uint8(110), "ys": np.float32(0.25),
         "yz": np.uint8(100)}
    nodes = [ms("QLinearAdd", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["s"]),
             ms("QLinearMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["p"]),
             ms("QLinearConcat", ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], ["c"], axis=1),
             ms("QGemm", ["a", "as", "az", "b", "bs", "bz"], ["g"], transB=1)]
    return run(nodes, {"a": a, "b": b}, ["s", "p", "c", "g"], [to_y(real_a + real_b), to_y(real_a * real_b),
               to_y(np.concatenate([real_a, real_b], 1)), real_a @ real_b.T], weights=w, domains=MS)


# --- selection ---

def keep_boxes(boxes, scores, most, threshold, least):
    """Of every batch and class, greedily; boxes are y1, x1, y2, x2."""
    def overlap(a, b):
        low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
        shared = np.prod(np.maximum(high - low, 0))
        return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)

    found = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if len(kept) < most and scores[b, c, i] > least and all(overlap(boxes[b, i], boxes[b, k]) <= threshold for k in kept):
                kept.append(i)
        found += [(b, c, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


@case
def boxes_of_a_detector():
    g = rng()
    corner = g.random((2, 50, 2))
    boxes = np.concatenate([corner, corner + 0.05 + 0.3 * g.random((2, 50, 2))], 2).astype(np.float32)
    scores = np.round(g.random((2, 3, 50)), 2).astype(np.float32)
    limits = {"m": np.array([7]), "t": np.array([0.3], np.float32), "s": np.array([0.4], np.float32)}
    nodes = [node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"]), node("Gather", ["y", "two"], ["b"], axis=1)]
    kept = keep_boxes(boxes, scores, 7, 0.3, np.float32(0.4))
    return run(nodes, {"boxes": boxes, "scores": scores, **limits}, ["y", "b"], [kept, kept[:, 2]], weights={"two": np.int64(2)},
               shapes={"boxes": ["n", "k", 4], "scores": ["n", 3, "k"]})


@case
def boxes_none_wanted():
    inputs = {"boxes": normal(1, 4, 4), "scores": normal(1, 1, 4)}
    return run([node("NonMaxSuppression", ["boxes", "scores"], ["y"])], inputs, ["y"], [np.zeros((0, 3), np.int64)])


@case
def unique_of_all_and_of_rows():
    x = rng().integers(0, 4, (9, 2, 2)).astype(np.float32)
    nodes = [node("Unique", ["x"], ["a", "ai", "ar", "ac"]), node("Unique", ["x"], ["r", "", "rr", "rc"], axis=0),
             node("Unique", ["x"], ["u", "ui", "ur"], sorted=0)]
    a = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    r = np.unique(x, axis=0, return_index=True, return_inverse=True, return_counts=True)
    by_place = np.argsort(a[1])
    expected = [a[0], a[1], a[2].ravel(), a[3], r[0], r[2].ravel(), r[3], a[0][by_place], a[1][by_place],
                np.argsort(by_place)[a[2].ravel()]]
    return run(nodes, {"x": x}, ["a", "ai", "ar", "ac", "r", "rr", "rc", "u", "ui", "ur"], expected, shapes={"x": ["n", 2, 2]})


# --- signals ---

def parts(z):
    return np.stack([z.real, z.imag], -1).astype(np.float32)


@case
def dft_of_many_points():
    """Lengths that split into products several times over, one that does not, and zeros behind the end."""
    x = normal(2, 1200, 1)
    lengths = {"a": 1200, "b": 127, "c": 4096, "d": 1000}
    nodes = [node("DFT", ["x", f"n{k}", "axis"], [k]) for k in lengths]
    weights = {f"n{k}": np.array(v) for k, v in lengths.items()} | {"axis": np.array(1)}
    return run(nodes, {"x": x}, list(lengths), [parts(np.fft.fft(x[..., 0], n, 1)) for n in lengths.values()], opset=20,
               weights=weights, atol=1e-4)


@case
def dft_back_and_forth():
    """What only the run knows: the length, and so the matrices; one-sided both ways is the identity."""
    x = normal(3, 30, 1)
    nodes = [node("DFT", ["x"], ["f"], onesided=1, axis=1), node("DFT", ["f"], ["y"], onesided=1, inverse=1, axis=1)]
    return run(nodes, {"x": x}, ["f", "y"], [parts(np.fft.rfft(x[..., 0], axis=1)), x], shapes={"x": ["b", "n", 1]}, atol=1e-5)


@case
def stft_of_a_stream():
    """A signal of any length, frames that overlap, a window."""
    x, window = normal(2, 500, 1), np.hanning(64).astype(np.float32)
    frames = np.stack([x[:, i * 24:i * 24 + 64, 0] * window for i in range(1 + (500 - 64) // 24)], 1)
    nodes = [node("STFT", ["x", "step", "w"], ["y"])]
    return run(nodes, {"x": x}, ["y"], [parts(np.fft.rfft(frames))], weights={"step": np.array(24), "w": window},
               shapes={"x": ["b", "t", 1]}, atol=1e-4)


# --- regions ---

@case
def regions_of_many_sizes():
    """As many samples of a bin as its region is large, of several images; boxes that leave the image."""
    x = normal(3, 4, 17, 13)
    boxes = np.array([[0, 0, 16, 32], [2.5, 3.5, 7, 5], [-9, -9, 40, 50], [20, 4, 21, 30]], np.float32)
    attributes = dict(output_height=3, output_width=2, sampling_ratio=0, spatial_scale=0.5)
    nodes = [node("RoiAlign", ["x", "b", "i"], ["y"], mode="avg", **attributes),
             node("RoiAlign", ["x", "b", "i"], ["z"], mode="max", coordinate_transformation_mode="output_half_pixel", **attributes)]
    return run(nodes, {"x": x, "b": boxes, "i": np.array([2, 0, 1, 2])}, ["y", "z"], shapes={"b": ["r", 4], "i": ["r"]})


@case
def grid_sample_of_volumes():
    x, grid = normal(2, 3, 4, 5, 6), rng().uniform(-1.2, 1.2, (2, 3, 2, 4, 3)).astype(np.float32)
    nodes = [node("GridSample", ["x", "g"], ["y"], mode="linear"),
             node("GridSample", ["x", "g"], ["z"], mode="nearest", padding_mode="border", align_corners=1)]
    return run(nodes, {"x": x, "g": grid}, ["y", "z"], opset=20)


@case
def determinants():
    """Rows that change places, a singular matrix, one element, none."""
    x = normal(4, 5, 5, dtype=np.float64)
    x[1, 0, 0] = 0
    x[2, 3] = 2 * x[2, 1]
    y = normal(2, 1, 1)
    nodes = [node("Det", ["x"], ["a"]), node("Det", ["y"], ["b"])]
    return run(nodes, {"x": x, "y": y}, ["a", "b"], [np.linalg.det(x), y[:, 0, 0]], atol=1e-6)


# --- random numbers ---

@case
def moments_of_draws():
    """Mean, deviation, extremes and independence of neighbours, of each generator; draws differ between nodes."""
    n, p = 200000, np.float32(0.3)
    nodes = [node("RandomNormal", [], ["g"], shape=[n], mean=2.0, scale=3.0), node("RandomUniform", [], ["u"], shape=[n], low=-1.0, high=3.0, seed=5.0),
             node("RandomUniformLike", ["x"], ["v"], dtype=11), node("RandomNormalLike", ["x"], ["h"]),
             node("Bernoulli", ["p"], ["b"]), node("Dropout", ["ones", "ratio", "true"], ["d", "kept"], seed=3),
             node("Multinomial", ["logits"], ["m"], sample_size=n), node("Cast", ["m"], ["mf"], to=1), node("Equal", ["m", "two"], ["is2"]),
             node("Cast", ["is2"], ["is2f"], to=1), node("Cast", ["v"], ["vf"], to=1)]
    outputs, expected = [], []
    for name, mean in (("g", 2), ("u", 1), ("vf", .5), ("h", 0), ("b", .3), ("d", 1), ("is2f", .5)):
        nodes.append(node("ReduceMean", [name], [f"{name}_mean"], keepdims=0))
        outputs.append(f"{name}_mean")
        expected.append(np.float32(mean))
    for name, mean, second in (("g", 2, 9), ("u", 1, 16 / 12), ("h", 0, 1)):
        nodes += [node("Sub", [name, f"c{name}"], [f"{name}_c"]), node("Mul", [f"{name}_c", f"{name}_c"], [f"{name}_s"]),
                  node("ReduceMean", [f"{name}_s"], [f"{name}_var"], keepdims=0), node("Slice", [f"{name}_c", "0", "n1"], [f"{name}_a"]),
                  node("Slice", [f"{name}_c", "1", "n"], [f"{name}_b"]), node("Mul", [f"{name}_a", f"{name}_b"], [f"{name}_ab"]),
                  node("ReduceMean", [f"{name}_ab"], [f"{name}_next"], keepdims=0)]
        outputs += [f"{name}_var", f"{name}_next"]
        expected += [np.float32(second), np.float32(0)]
    nodes += [node("ReduceMax", ["u"], ["largest"], keepdims=0), node("ReduceMin", ["u"], ["least"], keepdims=0)]
    weights = {"p": np.full(n, p), "ones": np.ones(n, np.float32), "ratio": np.float32(0.25), "true": np.array(True),
               "logits": np.log(np.array([[.1, .2, .5, .2]], np.float32)), "two": np.int32(2), "0": np.array([0]), "1": np.array([1]),
               "n": np.array([n]), "n1": np.array([n - 1]), "cg": np.float32(2), "cu": np.float32(1), "ch": np.float32(0)}
    return run(nodes, {"x": np.zeros(n, np.float32)}, outputs + ["largest", "least"], expected + [np.float32(3), np.float32(-1)],
               weights=weights, rtol=0.02, atol=0.02, opset=15)


# --- sequences ---

@case
def sequences_of_many_kinds():
    """Made, taken apart, changed in places, mapped, put together; parts whose sizes only the run knows; optionals of them."""
    x, sizes = normal(7, 4), np.array([2, 0, 5])
    body = helper.make_graph([node("Add", ["e", "t"], ["r"]), node("Shape", ["e"], ["s"])], "body",
                             [info("e", T.FLOAT, None), info("t", T.FLOAT, None)], [info("r", T.FLOAT, None), info("s", T.INT64, None)])
    nodes = [node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0), node("SequenceLength", ["parts"], ["n"]),
             node("SequenceMap", ["parts", "row"], ["mapped", "shapes"], body=body), node("SequenceAt", ["mapped", "last"], ["back"]),
             node("SequenceErase", ["mapped", "last"], ["two"]), node("SequenceInsert", ["two", "back", "0"], ["turned"]),
             node("Optional", ["turned"], ["maybe"]), node("OptionalHasElement", ["maybe"], ["has"]),
             node("OptionalGetElement", ["maybe"], ["got"]), node("ConcatFromSequence", ["got"], ["y"], axis=0),
             node("ConcatFromSequence", ["shapes"], ["z"], axis=1, new_axis=1), node("SplitToSequence", ["x"], ["rows"], keepdims=0),
             node("ConcatFromSequence", ["rows"], ["w"], axis=0)]
    row = np.arange(4, dtype=np.float32)
    expected = [np.array(3), np.array(True), np.concatenate([x[2:], x[:2]]) + row, np.array([[2, 0, 5], [4, 4, 4]]), x.ravel()]
    return run(nodes, {"x": x, "sizes": sizes}, ["n", "has", "y", "z", "w"], expected, opset=18,
               weights={"row": row, "last": np.array(-1), "0": np.array(0)})


@case
def positions_of_the_run():
    """Where something is put into a sequence, taken from it or read, of parts that differ in length."""
    x, y, z, p = normal(4, 2), normal(3, 2), normal(1, 2), np.array(-2)
    nodes = [node("SequenceConstruct", ["x", "y"], ["s"]), node("SequenceInsert", ["s", "z", "p"], ["t"]), node("SequenceAt", ["t", "one"], ["a"]),
             node("SequenceAt", ["t", "p"], ["b"]), node("SequenceErase", ["t", "p"], ["u"]), node("ConcatFromSequence", ["u"], ["c"], axis=0),
             node("ConcatFromSequence", ["t"], ["d"], axis=0), node("Relu", ["b"], ["e"])]
    expected = [x, x, np.concatenate([z, y]), np.concatenate([z, x, y]), np.maximum(x, 0)]
    return run(nodes, {"x": x, "y": y, "z": z, "p": p, "one": np.array(1)}, ["a", "b", "c", "d", "e"], expected)


# --- quantised recurrences and attention as ONNX Runtime's tools write them ---

def as_codes(x):
    """What x is once it went through codes of its own range."""
    low, high = min(float(x.min()), 0), max(float(x.max()), 0)
    if low == high:
        return np.zeros_like(x, dtype=np.float64)
    scale = np.float32((high - low) / 255)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


@case
def quantised_lstm():
    """Two directions; a scale for all of W, one for each column of R; the state becomes codes at each step."""
    steps, n, size, hidden, draw = 5, 2, 4, 3, rng()
    x = normal(steps, n, size)
    w, r = (draw.integers(0, 256, (2, k, 4 * hidden)).astype(np.uint8) for k in (size, hidden))
    ws, wz = np.float32([.01, .02]), np.array([120, 130], np.uint8)
    rs, rz = draw.uniform(.005, .02, (2, 4 * hidden)).astype(np.float32), np.full((2, 4 * hidden), 125, np.uint8)
    b = draw.uniform(-.3, .3, (2, 8 * hidden)).astype(np.float32)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    y, last_h, last_c = np.zeros((steps, 2, n, hidden)), [], []
    for d in range(2):
        real_w, real_r = (w[d] - float(wz[d])) * ws[d], (r[d] - rz[d].astype(float)) * rs[d]
        xw = as_codes(x) @ real_w + b[d, :4 * hidden] + b[d, 4 * hidden:]
        h, c = np.zeros((n, hidden)), np.zeros((n, hidden))
        for t in range(steps)[::-1 if d else 1]:
            i, o, f, g = np.split(xw[t] + as_codes(h) @ real_r, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            y[t, d] = h
        last_h.append(h)
        last_c.append(c)
    nodes = [node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h", "c"], domain="com.microsoft",
                  direction="bidirectional", hidden_size=hidden)]
    expected = [v.astype(np.float32) for v in (y, np.stack(last_h), np.stack(last_c))]
    return run(nodes, {"x": x}, ["y", "h", "c"], expected, weights={"w": w, "r": r, "b": b, "ws": ws, "wz": wz, "rs": rs, "rz": rz},
               domains=[("com.microsoft", 1)], atol=3e-3, shapes={"x": ["steps", n, size]})


@case
def quantised_attention():
    """Codes of input and weights, a scale for each column, a mask of lengths, causal."""
    n, t, heads, size, draw = 2, 5, 2, 4, rng()
    hidden = heads * size
    x, w = draw.integers(0, 256, (n, t, hidden)).astype(np.uint8), draw.integers(-128, 128, (hidden, 3 * hidden)).astype(np.int8)
    b, ws = normal(3 * hidden), draw.uniform(.002, .01, 3 * hidden).astype(np.float32)
    lengths = np.array([5, 3], np.int32)
    q, k, v = np.split((x - 127.0) * np.float32(.02) @ (w * ws.astype(float)) + b, 3, 2)
    q, k, v = (p.reshape(n, t, heads, size).transpose(0, 2, 1, 3) for p in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(size) + np.where(np.arange(t) < lengths[:, None], 0, -10000.0)[:, None, None]
    scores = np.where(np.arange(t) > np.arange(t)[:, None], -np.inf, scores)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    y = (p / p.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(n, t, hidden)
    nodes = [node("QAttention", ["x", "w", "b", "xs", "ws", "lengths", "xz", "wz"], ["y"], domain="com.microsoft", num_heads=heads, unidirectional=1)]
    weights = {"w": w, "b": b, "xs": np.float32(.02), "ws": ws, "xz": np.uint8(127), "wz": np.int8(0)}
    return run(nodes, {"x": x, "lengths": lengths}, ["y"], [y.astype(np.float32)], weights=weights, domains=[("com.microsoft", 1)], atol=1e-4)


# --- language models as ONNX Runtime's tools write them ---

def turned(x, positions, cosines, sines, interleaved):
    """x [b, t, heads, size]"""
    c, s = cosines[positions][:, :, None], sines[positions][:, :, None]
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    parts = a * c - b * s, a * s + b * c
    return np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)


def grouped(q, k, v, past, lengths, total, heads, kv, cosines, sines, interleaved=False, window=-1, cap=0.0):
    """As ONNX Runtime: row b has lengths[b] + 1 keys, of which the last ones are new."""
    n, t, size = q.shape[0], q.shape[1], q.shape[2] // heads
    before = np.maximum(lengths + 1 - t, 0)
    at = before[:, None] + np.arange(t)
    q, k, v = q.reshape(n, t, heads, size), k.reshape(n, t, kv, size), v.reshape(n, t, kv, size)
    q, k = turned(q, at, cosines, sines, interleaved), turned(k, at, cosines, sines, interleaved)
    keys = max(past.shape[3], total)
    y, present = np.zeros((n, t, heads, size), np.float32), np.zeros((2, n, kv, keys, size), np.float32)
    for b in range(n):
        for i, new in enumerate((k, v)):
            row = np.concatenate([past[i, b, :, :before[b]], new[b].transpose(1, 0, 2)], 1)
            present[i, b, :, :row.shape[1]] = row
        for h in range(heads):
            scores = q[b, :, h] @ present[0, b, h * kv // heads].T / np.sqrt(size)
            scores = cap * np.tanh(scores / cap) if cap else scores
            j, i = np.arange(keys), at[b][:, None]
            seen = (j <= i) & ((j > i - window) if window > 0 else True)
            e = np.where(seen, np.exp(scores), 0)
            y[b, :, h] = e / e.sum(-1, keepdims=True) @ present[1, b, h * kv // heads]
    return y.reshape(n, t, heads * size), present[0], present[1]


@case
def attention_of_grouped_queries():
    """A prompt, a token behind a cache of as many keys as the run says, several tokens through a window, a packed input."""
    heads, kv, size = 4, 2, 8
    angles = np.outer(np.arange(32), 100.0 ** (-np.arange(size // 2) / (size // 2)))
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    weights = {"cos": cosines, "sin": sines}
    nodes, inputs, outputs, expected = [], {}, [], []
    for name, n, t, cached, options in (("p", 2, 5, 0, {}), ("d", 2, 1, 6, {}), ("w", 1, 3, 4, dict(local_window_size=3, softcap=4.0)),
                                        ("i", 2, 4, 0, dict(rotary_interleaved=1))):
        r = np.random.default_rng(len(nodes))
        q, k, v = (r.standard_normal((n, t, h * size)).astype(np.float32) for h in (heads, kv, kv))
        past, lengths, total = r.standard_normal((2, n, kv, cached, size)).astype(np.float32), np.full(n, cached + t - 1, np.int32), cached + t
        lengths[-1] -= 2 * (name == "d")  # a shorter row
        names = [f"{name}q", f"{name}k", f"{name}v"]
        if name == "i":
            inputs[names[0]] = np.concatenate([q, k, v], -1)
            names[1:] = ["", ""]
        else:
            inputs |= dict(zip(names, (q, k, v)))
        caches = [f"{name}pk", f"{name}pv"] if cached else ["", ""]
        inputs |= dict(zip(caches, past)) if cached else {}
        weights |= {f"{name}l": lengths, f"{name}t": np.array(total, np.int32)}
        nodes.append(node("GroupQueryAttention", names + caches + [f"{name}l", f"{name}t", "cos", "sin"],
                          [f"{name}y", f"{name}nk", f"{name}nv"], domain="com.microsoft", num_heads=heads, kv_num_heads=kv, do_rotary=1, **options))
        outputs += [f"{name}y", f"{name}nk", f"{name}nv"]
        expected += grouped(q, k, v, past, lengths, total, heads, kv, cosines, sines, "rotary_interleaved" in options,
                            options.get("local_window_size", -1), options.get("softcap", 0))
    return run(nodes, inputs, outputs, expected, weights=weights, domains=[("com.microsoft", 1)], atol=1e-5)


@case
def embeddings_and_pools_of_tools():
    ids, segments, mask = np.array([[3, 1, 7]]), np.array([[0, 1, 1]]), np.array([[1, 1, 0]], np.int32)
    tables = {"w": normal(9, 6), "p": normal(5, 6), "s": normal(2, 6), "g": normal(6), "b": normal(6)}
    total = tables["w"][ids] + tables["p"][:3] + tables["s"][segments]
    centred = total - total.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * tables["g"] + tables["b"]
    x = rng().integers(0, 256, (1, 4, 4, 3)).astype(np.uint8)
    windows = x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(1, 2, 2, 3, 4)
    mean = ((windows.astype(np.float32) - 120) * np.float32(.1)).mean(-1)
    pooled = np.clip(np.rint(mean / np.float32(.08)) + 100, 0, 255).astype(np.uint8)
    m = dict(domain="com.microsoft")
    nodes = [node("EmbedLayerNormalization", ["i", "t", "w", "p", "s", "g", "b", "m"], ["y", "n", "sum"], epsilon=1e-5, **m),
             node("NhwcMaxPool", ["x"], ["z"], kernel_shape=[2, 2], strides=[2, 2], **m),
             node("QLinearAveragePool", ["x", "xs", "xz", "ys", "yz"], ["a"], kernel_shape=[2, 2], strides=[2, 2], channels_last=1, **m)]
    weights = tables | {"xs": np.float32(.1), "xz": np.uint8(120), "ys": np.float32(.08), "yz": np.uint8(100)}
    return run(nodes, {"i": ids.astype(np.int32), "t": segments.astype(np.int32), "m": mask, "x": x}, ["y", "n", "sum", "z", "a"],
               [y.astype(np.float32), np.array([2], np.int32), total, windows.max(-1), pooled], weights=weights,
               domains=[("com.microsoft", 1)], rtol=1e-3, atol=1e-4)


def by_bytes(x):
    """x as DynamicQuantizeLinear rounds it."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32(high - low) / np.float32(255)
    zero = np.clip(np.rint(-low / scale), 0, 255) if scale else 0
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale if scale else np.zeros_like(x)


@case
def lstm_of_bytes():
    """Input quantised once, states as they come; weights as columns of gates, a scale for each direction or for each column."""
    t, n, k, h = 5, 2, 6, 8
    x, b = normal(t, n, k), np.random.default_rng(3).standard_normal((2, 8 * h)).astype(np.float32)
    w, r = (rng().integers(-90, 90, shape).astype(np.int8) for shape in ((2, k, 4 * h), (2, h, 4 * h)))
    w_zero, r_zero = np.array([3, 0], np.int8), np.zeros((2, 4 * h), np.int8)
    w_scale, r_scale = np.array([.01, .02], np.float32), (rng().random((2, 4 * h)) / 100).astype(np.float32)
    y = np.zeros((t, 2, n, h), np.float32)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))
    for d in range(2):
        xw = by_bytes(x) @ ((w[d].astype(np.float32) - w_zero[d]) * w_scale[d]) + b[d, :4 * h] + b[d, 4 * h:]
        state, cell = np.zeros((n, h), np.float32), np.zeros((n, h), np.float32)
        for at in range(t) if d == 0 else reversed(range(t)):
            i, o, f, c = np.split(xw[at] + by_bytes(state) @ ((r[d].astype(np.float32) - r_zero[d]) * r_scale[d]), 4, 1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
            state = sigmoid(o) * np.tanh(cell)
            y[at, d] = state
    nodes = [node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y"], hidden_size=h,
                  direction="bidirectional", domain="com.microsoft")]
    weights = {"w": w, "r": r, "b": b, "ws": w_scale, "wz": w_zero, "rs": r_scale, "rz": r_zero}
    return run(nodes, {"x": x}, ["y"], [y], weights=weights, domains=[("com.microsoft", 1)], shapes={"x": ["t", "n", k]}, rtol=1e-2, atol=2e-2)


# --- control flow ---

@case
def expand_by_data_either_way():
    """Each of the sizes may be 1 for all that is known."""
    x, y = normal(3, 1, 4), normal(5, 4)
    nodes = [node("Expand", ["x", "s"], ["a"]), node("Slice", ["y", "zero", "one", "zero"], ["first"]), node("Shape", ["first"], ["n"]),
             node("Expand", ["y", "n"], ["b"])]
    return run(nodes, {"x": x, "s": np.array([1, 2, 4]), "y": y}, ["a", "b"], weights={"zero": np.array([0]), "one": np.array([1])},
               shapes={"x": ["i", "j", "k"], "y": ["m", 4]})


@case
def stft_of_plain_samples():
    """As exporters write it: a signal without an axis for the parts of its numbers."""
    x, window = normal(2, 40), np.hanning(16).astype(np.float32)
    frames = np.stack([x[:, i:i + 16] * window for i in range(0, 25, 8)], 1)
    z = np.fft.rfft(frames, axis=-1)
    return run([node("STFT", ["x", "step", "w"], ["y"])], {"x": x}, ["y"], [np.stack([z.real, z.imag], -1).astype(np.float32)],
               weights={"step": np.array(8), "w": window}, shapes={"x": ["n", "t"]}, rtol=1e-3, atol=1e-4)


@case
def squeeze_of_what_is_not_one():
    """Without axes: a dimension that only the run knows stays."""
    x = normal(1, 3, 1, 4)
    return run([node("Squeeze", ["x"], ["s"]), node("Relu", ["s"], ["y"])], {"x": x}, ["y"], shapes={"x": [1, "n", 1, 4]})


@case
def sums_of_many():
    """Of ten million terms none is lost, along the lanes, across them and over two axes, whether the run says how many or the model."""
    x = np.array([[0.1], [0.3]], np.float32)
    nodes = [node("Expand", ["x", "wide"], ["flat"]), node("ReduceSum", ["flat", "last"], ["a"], keepdims=0),
             node("Expand", ["x", "far"], ["far_x"]), node("Transpose", ["far_x"], ["tall"]), node("ReduceSum", ["tall", "first"], ["b"], keepdims=0),
             node("Expand", ["x", "three"], ["cube"]), node("ReduceMean", ["cube"], ["c"], axes=[0, 2], keepdims=0)]
    sums = x[:, 0].astype(np.float64) * 10**6 * np.array([10, 10])
    return run(nodes, {"x": x, "wide": np.array([2, 10**7]), "far": np.array([2, 10**6])}, ["a", "b", "c"],
               [sums.astype(np.float32), (sums / 10).astype(np.float32), np.array([x[0, 0], x[1, 0]])],
               weights={"three": np.array([3001, 2, 3003]), "first": np.array([0]), "last": np.array([1])}, shapes={"x": ["n", 1]}, rtol=2e-6, atol=0)


def control(built):
    nodes, inputs, weights, expected, *shapes = built
    return run(nodes, inputs, list(expected), list(expected.values()), weights=weights, shapes=shapes[0] if shapes else None)


# --- writing ---

def write(folder, built):
    proto, inputs, outputs, rtol, atol = built
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}) + "\n")
    for kind, values in (("input", inputs), ("output", outputs)):
        for j, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{j}.pb").write_bytes(numpy_helper.from_array(np.asarray(value), name).SerializeToString())


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", type=pathlib.Path)
    out = args.parse_args().out
    stamp = out / "version"
    sources = b"".join(pathlib.Path(m).read_bytes() for m in (__file__, control_cases.__file__))
    wanted = hashlib.sha256(sources).hexdigest() + onnx.__version__
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if out.exists():
        shutil.rmtree(out)
    for name, make in CASES.items():
        write(out / name, make())
    stamp.write_text(wanted)
    for name, make in control_cases.CASES.items():
        write(out / name, control(make()))
    print(f"{len(CASES) + len(control_cases.CASES)} cases in {out}")


if __name__ == "__main__":
    main()
