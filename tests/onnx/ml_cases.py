"""Cases of ai.onnx.ml, for make_cases.py: trees, linear models, encoders and support vectors, computed by numpy."""
import numpy as np

from case import case, node, normal, rng, run

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


def chain(generator, tree, depth, nfeatures):
    """A tree whose every no is a leaf but the last."""
    rows = [(tree, n, int(generator.integers(nfeatures)) if n % 2 == 0 else 0, float(np.float32(generator.standard_normal())),
             "LEAF" if n % 2 or n == 2 * depth else "BRANCH_LT", n + 2 if n % 2 == 0 else 0, n + 1 if n % 2 == 0 else 0, 0)
            for n in range(2 * depth + 1)]
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    leaves = [(tree, row[1], 0, float(np.float32(generator.standard_normal()))) for row in rows if row[4] == "LEAF"]
    return {**{"nodes_" + k: [row[i] for row in rows] for i, k in enumerate(names)},
            **{"target_" + k: [leaf[i] for leaf in leaves] for i, k in enumerate(("treeids", "nodeids", "ids", "weights"))}}


@case
def trees_of_many_depths():
    """A leaf by itself, many shallow trees, and two that are deeper than what is written out."""
    generator = rng()
    x = (normal(19, 6) - 1.5).astype(np.float32)
    x[3, 2] = np.nan
    trees = grow(generator, 60, 3, 6, (0,), "target", ("BRANCH_LT",))
    for tree, depth in ((60, 0), (61, 9), (62, 57), (63, 40)):
        for k, v in chain(generator, tree, depth, 6).items():
            trees[k] += v
    y = go_down(trees, x, "target", 1).sum(1)
    return run([ml("TreeEnsembleRegressor", ["x"], ["y"], **trees)], {"x": x}, ["y"], [y.astype(np.float32)], domains=ML,
               shapes={"x": ["n", 6]})


@case
def trees_of_many_features():
    """More than a word of a record can number, and nodes in no order."""
    x, most = np.float32([[3]]), 1 << 24
    tree = {"nodes_treeids": [4] * 3, "nodes_nodeids": [2, 0, 1], "nodes_featureids": [0, most, 0], "nodes_values": [0.0, 2.5, 0.0],
            "nodes_modes": ["LEAF", "BRANCH_LEQ", "LEAF"], "nodes_truenodeids": [0, 1, 0], "nodes_falsenodeids": [0, 2, 0],
            "target_treeids": [4] * 2, "target_nodeids": [1, 2], "target_ids": [0] * 2, "target_weights": [1.0, 2.0]}
    nodes = [node("Constant", [], ["s"], value_ints=[1, most + 1]), node("Expand", ["x", "s"], ["w"]), ml("TreeEnsembleRegressor", ["w"], ["y"], **tree)]
    return run(nodes, {"x": x}, ["y"], [np.float32([[2]])], domains=ML)


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
