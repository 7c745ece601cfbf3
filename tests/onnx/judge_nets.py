"""Recipes of the importer's judge: windows, norms, codes, recurrences, subgraphs, sequences, ai.onnx.ml."""
from judge_ops import old
from judge_try import Try, i64, np, recipe
from onnx import TensorProto as T, helper, numpy_helper

node, info = helper.make_node, helper.make_tensor_value_info


def wide(*values):
    return [np.asarray(v).astype(np.float64) for v in values]


# --- windows ---

def windows(x, kernel, strides, pads, dilations, fill):
    """x padded, as [n, c, places…, kernel…]; the mask says what is no padding. 2-D."""
    before, behind = pads[:2], pads[2:]
    width = ((0, 0), (0, 0), *zip(before, behind))
    p, m = np.pad(x, width, constant_values=fill), np.pad(np.ones_like(x, bool), width)
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    at = [range(0, p.shape[2 + i] - span[i] + 1, strides[i]) for i in range(2)]
    cut = lambda v, i, j: v[:, :, i:i + span[0]:dilations[0], j:j + span[1]:dilations[1]]
    return [np.stack([np.stack([cut(v, i, j) for j in at[1]], 2) for i in at[0]], 2) for v in (p, m)]


POOLS = (("plain", (2, 2), (1, 1), (0, 0, 0, 0)), ("strides", (3, 2), (2, 1), (0, 0, 0, 0)), ("pads", (3, 3), (2, 2), (1, 0, 1, 1)))


def pooled(op, x, kernel, strides, pads, p=2, with_padding=False, dilations=(1, 1)):
    x = x.astype(np.float64)
    v, m = windows(x, kernel, strides, pads, dilations, -np.inf if op == "MaxPool" else 0)
    if op == "MaxPool":
        return v.max((-2, -1))
    if op == "LpPool":
        return (np.abs(v) ** p).sum((-2, -1)) ** (1 / p)
    return v.sum((-2, -1)) / (v.shape[-1] * v.shape[-2] if with_padding else m.sum((-2, -1)))


@recipe("AveragePool MaxPool LpPool")
def pool(a):
    for label, kernel, strides, pads in POOLS:
        x = a.x(1, 2, 5, 6)
        attributes = {"kernel_shape": list(kernel), "strides": list(strides), "pads": list(pads)}
        if a.op == "LpPool":
            for p in (None, 1) if a.version > 1 else (None, 3.0):
                yield Try(f"{label}-p{p}", [x], {**attributes, **({} if p is None else {"p": p})},
                          expected=[pooled(a.op, x, kernel, strides, pads, p or 2).astype(a.dtype)])
            continue
        yield Try(label, [x], attributes, expected=[pooled(a.op, x, kernel, strides, pads).astype(a.dtype)])
        if a.has("count_include_pad"):
            yield Try(label + "-counted", [x], {**attributes, "count_include_pad": 1},
                      expected=[pooled(a.op, x, kernel, strides, pads, with_padding=True).astype(a.dtype)])
    x = a.x(1, 1, 5, 5)
    for auto, pads in (("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0)), ("VALID", (0, 0, 0, 0))):
        yield Try(auto.lower(), [x], {"kernel_shape": [2, 2], "auto_pad": auto}, expected=[pooled(a.op, x, (2, 2), (1, 1), pads).astype(a.dtype)])
    if a.has("dilations"):
        yield Try("dilated", [x], {"kernel_shape": [2, 2], "dilations": [2, 2]},
                  expected=[pooled(a.op, x, (2, 2), (1, 1), (0, 0, 0, 0), dilations=(2, 2)).astype(a.dtype)])
    if a.has("ceil_mode"):
        y = pooled(a.op, np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-99 if a.op == "MaxPool" and a.kind == "f" else 0)
                   if a.op != "AveragePool" else x, (2, 2), (2, 2), (0, 0, 1, 1) if a.op == "AveragePool" else (0, 0, 0, 0))
        if a.kind == "f":
            yield Try("ceil", [x], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, expected=[y.astype(a.dtype)])


@recipe("GlobalAveragePool GlobalMaxPool GlobalLpPool")
def global_pool(a):
    for shape in ((2, 3, 4), (1, 2, 3, 4)):
        x = a.x(*shape)
        axes = tuple(range(2, len(shape)))
        if a.op == "GlobalLpPool":
            for p in (2, 1) if a.version > 1 else (2, 3):
                y = (np.abs(x.astype(np.float64)) ** p).sum(axes, keepdims=True) ** (1 / p)
                p_as = float(p) if a.version == 1 else p
                yield Try(f"r{len(shape)}-p{p}", [x], {"p": p_as} if p != 2 else {}, expected=[y.astype(a.dtype)])
        else:
            f = np.mean if a.op == "GlobalAveragePool" else np.max
            yield Try(f"r{len(shape)}", [x], expected=[f(x.astype(np.float64), axes, keepdims=True).astype(a.dtype)])


def convolved(x, w, b, strides, pads, dilations, group):
    x, w = wide(x, w)
    v, _ = windows(x, w.shape[2:], strides, pads, dilations, 0)
    c, o = x.shape[1] // group, w.shape[0] // group
    parts = [np.einsum("ncijkl,ockl->noij", v[:, g * c:(g + 1) * c], w[g * o:(g + 1) * o]) for g in range(group)]
    y = np.concatenate(parts, 1)
    return y if b is None else y + np.asarray(b).astype(np.float64)[:, None, None]


CONVS = (("plain", (2, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1), ("strided", (3, 2), (2, 1), (1, 0, 0, 1), (1, 1), 1), ("dilated", (2, 2), (1, 1), (1, 1, 1, 1), (2, 2), 1),
         ("groups", (2, 2), (1, 1), (0, 0, 0, 0), (1, 1), 2))


@recipe("Conv")
def conv(a):
    for label, kernel, strides, pads, dilations, group in CONVS:
        x, w, b = a.x(1, 4, 5, 6), a.x(2, 4 // group, *kernel), a.x(2)
        attributes = {"kernel_shape": list(kernel), "strides": list(strides), "pads": list(pads), "dilations": list(dilations), "group": group}
        for name, bias in (("", None), ("-bias", b)):
            y = convolved(x, w, bias, strides, pads, dilations, group)
            yield Try(label + name, [x, w] + ([] if bias is None else [bias]), attributes, expected=[y.astype(a.dtype)], atol=1e-4)
    x, w = a.x(1, 2, 5, 5), a.x(2, 2, 2, 2)
    for auto, pads in (("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0)), ("VALID", (0, 0, 0, 0))):
        yield Try(auto.lower(), [x, w], {"auto_pad": auto}, expected=[convolved(x, w, None, (1, 1), pads, (1, 1), 1).astype(a.dtype)], atol=1e-4)


@recipe("ConvTranspose")
def conv_transpose(a):
    for label, kernel, strides, pads, dilations, group in CONVS:
        x, w, b = a.x(1, 4, 3, 4), a.x(4, 2 // group, *kernel), a.x(2)
        size = [s * (n - 1) + (k - 1) * d + 1 - p - q for n, k, s, p, q, d in zip(x.shape[2:], kernel, strides, pads[:2], pads[2:], dilations)]
        y = np.zeros((1, 2, *[n + p + q for n, p, q in zip(size, pads[:2], pads[2:])]))
        per = 2 // group
        for c, i, j, o, k, m in np.ndindex(4, 3, 4, per, *kernel):
            g = c // (4 // group)
            y[0, g * per + o, i * strides[0] + k * dilations[0], j * strides[1] + m * dilations[1]] += float(x[0, c, i, j]) * float(w[c, o, k, m])
        y = y[:, :, pads[0]:y.shape[2] - pads[2], pads[1]:y.shape[3] - pads[3]]
        attributes = {"strides": list(strides), "pads": list(pads), "dilations": list(dilations), "group": group}
        yield Try(label, [x, w], attributes, expected=[y.astype(a.dtype)], atol=1e-4)
        yield Try(label + "-bias", [x, w, b], attributes, expected=[(y + b.astype(np.float64)[:, None, None]).astype(a.dtype)], atol=1e-4)


@recipe("ConvInteger")
def conv_integer(a):
    for label, zeros in (("plain", ()), ("zeros", (2, 1)), ("right", (None, 1))):
        x, w = a.x(1, 2, 4, 4), a.x(2, 2, 2, 2, dtype=a.types(1)[0])
        given = [None if z is None else np.array(z).astype(v.dtype) for z, v in zip(zeros, (x, w))]
        shifted = [v.astype(np.float64) - (z or 0) for v, z in zip((x, w), list(zeros) + [0, 0])]
        y = convolved(*shifted, None, (1, 1), (0, 0, 0, 0), (1, 1), 1)
        yield Try(label, [x, w, *given], expected=[y.astype(np.int32)])


@recipe("MaxRoiPool")
def max_roi_pool(a):
    """As Caffe defined it: bins of whole pixels, ends rounded and included."""
    x = a.x(2, 2, 6, 8)
    rois = np.array([[0, 0, 0, 7, 5], [1, 2, 1, 5, 4], [0, 3, 3, 3, 3]]).astype(a.dtype)
    for label, scale in (("plain", None), ("scaled", 0.5)):
        y = np.zeros((3, 2, 2, 3))
        for r, (batch, *box) in enumerate(rois.astype(np.float64)):
            x0, y0, x1, y1 = (int(np.floor(v * (scale or 1) + 0.5)) for v in box)
            h, w = max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)
            for c, i, j in np.ndindex(2, 2, 3):
                rows = np.clip([y0 + int(np.floor(i * h / 2)), y0 + int(np.ceil((i + 1) * h / 2))], 0, 6)
                columns = np.clip([x0 + int(np.floor(j * w / 3)), x0 + int(np.ceil((j + 1) * w / 3))], 0, 8)
                part = x[int(batch), c, rows[0]:rows[1], columns[0]:columns[1]]
                y[r, c, i, j] = part.max() if part.size else 0
        yield Try(label, [x, rois], {"pooled_shape": [2, 3], **({} if scale is None else {"spatial_scale": scale})}, expected=[y.astype(a.dtype)])


@recipe("Upsample")
def upsample(a):
    x = a.x(1, 2, 3, 4)
    y = x.repeat(2, 2).repeat(3, 3)
    if a.version == 1:
        yield Try("nearest", [x], {"height_scale": 2.0, "width_scale": 3.0}, expected=[y])
    elif a.version == 7:
        yield Try("nearest", [x], {"scales": [1.0, 1.0, 2.0, 3.0]}, expected=[y])
    else:
        yield Try("nearest", [x, np.float32([1, 1, 2, 3])], expected=[y])


@recipe("Resize")
def resize(a):
    x = a.x(1, 1, 4, 4)
    scales, sizes = np.float32([1, 1, 2, 0.5]), i64(1, 1, 7, 3)
    if a.version == 10:
        yield Try("nearest", [x, np.float32([1, 1, 2, 2])], expected=[x.repeat(2, 2).repeat(2, 3)])
        return
    for mode in ("nearest", "linear", "cubic"):
        if a.kind != "f" and mode != "nearest":
            continue
        for where in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            attributes = {"mode": mode, "coordinate_transformation_mode": where}
            like = (a.op, attributes, [x, None, scales])
            yield Try(f"{mode}-{where}-scales", [x, np.zeros(0, np.float32) if a.version < 13 else None, scales], attributes, like=like)
            like = (a.op, attributes, [x, None, None, sizes])
            empty = np.zeros(0, np.float32) if a.version < 13 else None
            yield Try(f"{mode}-{where}-sizes", [x, empty, empty, sizes], attributes, like=like)


@recipe("RoiAlign")
def roi_align(a):
    x, rois, batch = a.x(2, 2, 6, 6), np.array([[0, 0, 4, 4], [1, 1.5, 5, 4.5]]).astype(a.dtype), i64(0, 1)
    for mode in ("avg", "max"):
        where = {} if a.version == 10 else {"coordinate_transformation_mode": "output_half_pixel"}
        given = {"mode": mode, "output_height": 2, "output_width": 2, "sampling_ratio": 2}
        like = ("RoiAlign", {**given, "coordinate_transformation_mode": "output_half_pixel"}, None)
        if mode == "avg":
            yield Try(mode, [x, rois, batch], {**given, **where}, like=like)


# --- norms ---

@recipe("BatchNormalization")
def batch_normalization(a):
    for label, shape in (("image", (2, 3, 2, 2)), ("rows", (4, 3))):
        x, s, b, m, v = a.x(*shape), a.x(3, dtype=a.types(1)[-1]), a.x(3, dtype=a.types(1)[-1]), *(a.x(3, low=0.5, dtype=a.types(3)[-1]) for _ in "mv")
        if a.types(1)[-1] == a.dtype or a.version < 14:
            s, b, m, v = (t.astype(a.dtype) for t in (s, b, m, v))
        p = [t.reshape(3, *[1] * (len(shape) - 2)) for t in wide(s, b, m, v)]
        y = (x.astype(np.float64) - p[2]) / np.sqrt(p[3] + 1e-5) * p[0] + p[1]
        attributes = {"is_test": 1} if a.version < 7 else {}
        yield Try(label, [x, s, b, m, v], old(a, attributes) if a.version > 1 else {**attributes, "consumed_inputs": [0, 0, 0, 1, 1]},
                  expected=[y.astype(a.dtype)], atol=1e-5)
    if a.version in (7,):
        yield Try("spatial", [x, s, b, m, v], {"spatial": 1}, expected=[y.astype(a.dtype)])


@recipe("InstanceNormalization")
def instance_normalization(a):
    x, s, b = a.x(2, 3, 4, 2), a.x(3), a.x(3)
    w = x.astype(np.float64)
    y = (w - w.mean((2, 3), keepdims=True)) / np.sqrt(w.var((2, 3), keepdims=True) + 1e-5) * s.astype(float)[:, None, None] + b.astype(float)[:, None, None]
    yield Try("plain", [x, s, b], old(a), expected=[y.astype(a.dtype)], atol=1e-4)


@recipe("LRN")
def lrn(a):
    for label, more in (("defaults", {}), ("given", {"alpha": 0.5, "beta": 0.6, "bias": 2.0})):
        for size in (3, 4):
            x = a.x(1, 5, 2, 2)
            w, at = x.astype(np.float64) ** 2, lambda n: (n - 1) // 2
            sums = np.stack([w[:, max(0, c - at(size)):c + size - at(size)].sum(1) for c in range(5)], 1)
            y = x / (more.get("bias", 1.0) + more.get("alpha", 1e-4) / size * sums) ** more.get("beta", 0.75)
            yield Try(f"{label}{size}", [x], {"size": size, **more}, expected=[y.astype(a.dtype)])


@recipe("LpNormalization")
def lp_normalization(a):
    for p in (1, 2):
        for axis in (0, -1):
            x = a.x(2, 3)
            w = x.astype(np.float64)
            y = w / (np.abs(w) ** p).sum(axis, keepdims=True) ** (1 / p)
            yield Try(f"p{p}axis{axis}", [x], {"p": p, "axis": axis}, expected=[y.astype(a.dtype)])


@recipe("MeanVarianceNormalization")
def mvn(a):
    x = a.x(2, 3, 2, 2)
    for label, axes in (("default", None), ("one", (1,))):
        w, at = x.astype(np.float64), axes or (0, 2, 3)
        y = (w - w.mean(at, keepdims=True)) / (w.std(at, keepdims=True) + 1e-9)
        yield Try(label, [x], {} if axes is None else {"axes": list(axes)}, expected=[y.astype(a.dtype)], atol=1e-4)


@recipe("LayerNormalization RMSNormalization GroupNormalization")
def layer_normalization(a):
    if a.op == "GroupNormalization":
        n = 4 if a.version >= 21 else 2
        yield Try("plain", [a.x(2, 4, 3), a.x(n), a.x(n)], {"num_groups": 2}, like=(a.op, {"num_groups": 2}, None), atol=1e-3)
        return
    for axis in (-1, 1):
        shape = (2, 3, 4)
        x, s, b = a.x(*shape), a.x(*shape[axis:]), a.x(*shape[axis:])
        yield Try(f"axis{axis}", [x, s], {"axis": axis}, atol=1e-4)
        if a.op == "LayerNormalization":
            yield Try(f"axis{axis}-bias", [x, s, b], {"axis": axis}, atol=1e-4)


@recipe("Dropout")
def dropout(a):
    x = a.x(2, 3)
    test = {"is_test": 1} if a.version < 7 else {}
    yield Try("plain", [x], old(a, test), expected=[x])
    if a.version < 12:
        yield Try("ratio", [x], old(a, {**test, "ratio": 0.3}), expected=[x])
    else:
        yield Try("ratio", [x, np.float32(0.3).astype(a.types(1)[-1])], expected=[x])
        yield Try("training-none", [x, np.float32(0).astype(a.types(1)[-1]), np.array(True)], expected=[x])
        yield Try("not-training", [x, None, np.array(False)], expected=[x])
    if a.version >= 10:
        yield Try("mask", [x], outputs=2, expected=[x, np.ones((2, 3), bool)])


@recipe("RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial")
def random(a):
    """Numbers that leave chance no room."""
    if a.op == "Bernoulli":
        x = np.array([0, 1, 1, 0]).astype(a.dtype)
        yield Try("sure", [x], expected=[x])
        yield Try("dtype", [x], {"dtype": int(T.INT32)}, expected=[x.astype(np.int32)])
    elif a.op == "Multinomial":
        x = np.array([[-1e4, 0, -1e4], [0, -1e4, -1e4]]).astype(a.dtype)
        yield Try("sure", [x], {"sample_size": 4}, expected=[np.array([[1] * 4, [0] * 4], np.int32)])
    else:
        sure = {"mean": 2.0, "scale": 0.0} if "Normal" in a.op else {"low": 2.0, "high": 2.0}
        if a.op.endswith("Like"):
            yield Try("sure", [a.x(2, 3)], {**sure, "dtype": int(T.FLOAT)}, expected=[np.full((2, 3), 2, np.float32)])
        else:
            yield Try("sure", [], {**sure, "shape": [2, 3]}, expected=[np.full((2, 3), 2, np.float32)])


# --- codes ---

@recipe("QuantizeLinear DequantizeLinear")
def quantize(a):
    is_q = a.op == "QuantizeLinear"
    codes = a.types(2) if is_q else [a.dtype]
    scale_types = a.types(1)
    for code in codes:
        if code.itemsize == 1 and "float" in str(code) and is_q and a.dtype == np.int32:
            continue
        scale = a.dtype if is_q and a.dtype in scale_types and a.dtype != np.int32 else np.dtype(np.float32)
        x = a.x(3, 4, low=-3, high=3) if is_q else a.x(3, 4)
        zero = np.array(0 if "float" in str(code) or code == np.int32 else 1).astype(code)
        s = np.array(0.5).astype(scale)
        name = str(code)
        if not is_q:
            yield from dequantized(a, x, scale)
            return
        if code != np.int32:
            yield Try(f"all-{name}", [x, s, zero], exact=True)
        if code in (np.uint8, np.int32):
            yield Try(f"no-zero-{name}", [x, s], exact=True)
        if a.version >= 13 and code != np.int32:
            s, zero = np.array([0.5, 1, 0.25]).astype(scale), np.array([zero] * 3).astype(code)
            yield Try(f"axis-{name}", [x, s, zero], {"axis": 0}, exact=True)


def dequantized(a, x, scale):
    zero = a.like_scalar(0 if a.kind == "f" or a.dtype == np.int32 else 1)
    one, three = np.array(0.5), np.array([0.5, 1, 0.25])
    w = x.astype(np.float64)
    yield Try("all", [x, one.astype(scale), zero], expected=[((w - float(zero)) * one).astype(scale)])
    yield Try("no-zero", [x, one.astype(scale)], expected=[(w * one).astype(scale)])
    if a.version >= 13:
        y = (w - float(zero)) * three[:, None]
        yield Try("axis", [x, three.astype(scale), np.array([zero] * 3).astype(a.dtype)], {"axis": 0}, expected=[y.astype(scale)])


@recipe("GridSample")
def grid_sample(a):
    x, grid = a.x(1, 2, 3, 4), a.x(1, 2, 3, 2, low=-1.2, high=1.2, dtype=a.types(1)[-1] if a.dtype not in a.types(1) else a.dtype)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            named = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode) if a.version >= 20 else mode
            newest = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
            if a.kind == "f":
                yield Try(f"{mode}-{padding}", [x, grid], {"mode": named, "padding_mode": padding}, like=(a.op, {"mode": newest, "padding_mode": padding}, None), atol=1e-4)


@recipe("QLinearMatMul QLinearConv")
def quantized_product(a):
    scale = a.types(1)[-1]
    y_zero = np.array(3).astype(a.types(7)[0])
    scalars = lambda v: np.array(v).astype(scale)
    if a.op == "QLinearMatMul":
        x, w = a.x(2, 3), a.x(3, 4, dtype=a.types(3)[0])
        z = np.array(1).astype(x.dtype), np.array(2).astype(w.dtype)
        real = (x.astype(float) - 1) @ (w.astype(float) - 2) * 0.25 * 0.5
    else:
        x, w = a.x(1, 2, 4, 4), a.x(2, 2, 2, 2, dtype=a.types(3)[0])
        z = np.array(1).astype(x.dtype), np.array(2).astype(w.dtype)
        real = convolved(x.astype(float) - 1, w.astype(float) - 2, None, (1, 1), (0, 0, 0, 0), (1, 1), 1) * 0.25 * 0.5
    limits = np.iinfo(y_zero.dtype) if "float" not in str(y_zero.dtype) else None
    y = np.rint(real / 0.75) + 3
    if limits:
        yield Try("plain", [x, scalars(0.25), z[0], w, scalars(0.5), z[1], scalars(0.75), y_zero],
                  expected=[np.clip(y, limits.min, limits.max).astype(y_zero.dtype)], exact=True)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(a):
    for label, x in (("both", a.x(3, 4)), ("positive", a.x(5, low=1)), ("zero", np.zeros(3, np.float32))):
        if label != "zero":
            yield Try(label, [x], outputs=3)


# --- recurrences ---

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent_reference(op, x, w, r, b, h, c, lens, reverse, linear, clip):
    """One direction: Y [s, n, h] and the last states. As the standard's formulas say, sequence by sequence."""
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[1]
    gates = w.shape[0] // hidden
    y, last_h, last_c = np.zeros((steps, batch, hidden)), h.copy(), c.copy()
    cut = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    wb, rb = b[:gates * hidden], b[gates * hidden:]
    for n in range(batch):
        hs, cs = h[n], c[n]
        order = range(lens[n] - 1, -1, -1) if reverse else range(lens[n])
        for t in order:
            from_x, from_h = np.split(w @ x[t, n] + wb, gates), np.split(r @ hs + rb, gates)
            if op == "RNN":
                hs = np.tanh(cut(from_x[0] + from_h[0]))
            elif op == "GRU":
                z, k = (sigmoid(cut(from_x[i] + from_h[i])) for i in (0, 1))
                rh, bh = r[2 * hidden:], rb[2 * hidden:]
                inner = k * from_h[2] if linear else rh @ (k * hs) + bh
                hs = (1 - z) * np.tanh(cut(from_x[2] + inner)) + z * hs
            else:
                i, o, f = (sigmoid(cut(from_x[g] + from_h[g])) for g in range(3))
                cs = f * cs + i * np.tanh(cut(from_x[3] + from_h[3]))
                hs = o * np.tanh(cs)
            y[t, n] = hs
        last_h[n], last_c[n] = hs, cs
    return y, last_h, last_c


@recipe("RNN GRU LSTM")
def recurrent(a):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[a.op]
    steps, batch, size, hidden = 4, 2, 3, 2
    for label, direction, given, more in (("plain", "forward", (), {}), ("bias", "forward", ("b",), {}), ("reverse", "reverse", ("b", "lens"), {}),
                                          ("both", "bidirectional", ("b", "lens", "h"), {}), ("clip", "forward", ("b",), {"clip": 0.3}), ("linear", "forward", ("b",), {"linear_before_reset": 1})):
        n = 2 if direction == "bidirectional" else 1
        if "linear_before_reset" in more and not a.has("linear_before_reset"):
            continue
        x, w, r = a.x(steps, batch, size), a.x(n, gates * hidden, size, low=-1, high=1), a.x(n, gates * hidden, hidden, low=-1, high=1)
        b, h = a.x(n, 2 * gates * hidden, low=-1, high=1), a.x(n, batch, hidden, low=-1, high=1)
        lens = np.array([4, 2], np.int32)
        zero = np.zeros((n, batch, hidden))
        parts = []
        for d in range(n):
            parts.append(recurrent_reference(a.op, x.astype(float), w[d].astype(float), r[d].astype(float), b[d].astype(float) if "b" in given else np.zeros(b.shape[1]),
                                             h[d].astype(float) if "h" in given else zero[d], zero[d], lens if "lens" in given else [steps] * batch,
                                             direction == "reverse" or d == 1, more.get("linear_before_reset", 0), more.get("clip", 0)))
        y = [np.stack([p[0] for p in parts], 1), np.stack([p[1] for p in parts]), np.stack([p[2] for p in parts])][:3 if a.op == "LSTM" else 2]
        inputs = [x, w, r, b if "b" in given else None, lens if "lens" in given else None, h if "h" in given else None]
        while inputs[-1] is None:
            inputs.pop()
        form = {"output_sequence": 1} if a.has("output_sequence") else {}
        yield Try(label, inputs, {"hidden_size": hidden, "direction": direction, **more, **form}, len(y), [v.astype(a.dtype) for v in y], atol=1e-5)


# --- subgraphs ---

def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", [info(n, t, s) for n, t, s in inputs], [info(n, t, s) for n, t, s in outputs])


@recipe("If")
def if_(a):
    for value in (True, False):
        yes, no = (graph([node(op, ["in1"], [o])], [], [(o, T.FLOAT, [2, 3])]) for op, o in (("Neg", "yes"), ("Relu", "no")))
        x = a.f(2, 3)
        yield Try(str(value).lower(), [np.array(value), x], nodes=[node("If", ["in0"], ["out0"], then_branch=yes, else_branch=no)],
                  expected=[-x if value else np.maximum(x, 0)])


@recipe("Loop")
def loop(a):
    nodes = [node("Add", ["s", "s"], ["t"]), node("Identity", ["t"], ["row"]), node("Identity", ["on"], ["go"])]
    body = graph(nodes, [("i", T.INT64, []), ("on", T.BOOL, []), ("s", T.FLOAT, [2])], [("go", T.BOOL, []), ("t", T.FLOAT, [2]), ("row", T.FLOAT, [2])])
    for trips in (0, 3):
        x = a.f(2)
        rows = np.stack([x * 2.0 ** (i + 1) for i in range(trips)]) if trips else np.zeros((0, 2))
        yield Try(f"trips{trips}", [np.int64(trips), np.array(True), x], nodes=[node("Loop", ["in0", "in1", "in2"], ["out0", "out1"], body=body)],
                  expected=[x * np.float32(2 ** trips), rows.astype(np.float32)])


@recipe("Scan")
def scan(a):
    body = graph([node("Add", ["s", "x"], ["t"]), node("Identity", ["t"], ["row"])], [("s", T.FLOAT, [2]), ("x", T.FLOAT, [2])],
                 [("t", T.FLOAT, [2]), ("row", T.FLOAT, [2])])
    if a.version == 8:
        s, x = a.f(3, 2), a.f(3, 4, 2)
        rows = s[:, None] + np.cumsum(x, 1)
        yield Try("batches", [None, s, x], nodes=[node("Scan", ["", "in1", "in2"], ["out0", "out1"], body=body, num_scan_inputs=1)], expected=[rows[:, -1], rows], atol=1e-5)
        yield Try("reverse", [None, s, x], nodes=[node("Scan", ["", "in1", "in2"], ["out0", "out1"], body=body, num_scan_inputs=1, directions=[1])],
                  expected=[s + x.sum(1), s[:, None] + np.cumsum(x[:, ::-1], 1)], atol=1e-5)
        lens = np.array([2, 4, 1], np.int64)
        rows = np.where(np.arange(4)[None, :, None] < lens[:, None, None], rows, 0)
        yield Try("lengths", [lens, s, x], nodes=[node("Scan", ["in0", "in1", "in2"], ["out0", "out1"], body=body, num_scan_inputs=1)],
                  expected=[np.stack([rows[i, n - 1] for i, n in enumerate(lens)]), rows], atol=1e-5)
        return
    s, x = a.f(2), a.f(4, 2)
    rows = s + np.cumsum(x, 0)
    yield Try("plain", [s, x], nodes=[node("Scan", ["in0", "in1"], ["out0", "out1"], body=body, num_scan_inputs=1)], expected=[rows[-1], rows], atol=1e-5)


# --- sequences and optionals: between tensors ---

@recipe("SequenceConstruct SequenceAt SequenceInsert SequenceErase SequenceLength SequenceEmpty ConcatFromSequence Identity@list")
def sequence(a):
    x, y = a.f(2, 3), a.f(2, 3)
    made = node("SequenceConstruct", ["in0", "in1"], ["s"])
    ways = {"at": ([made, node("SequenceAt", ["s", "k"], ["out0"])], [y]),
            "insert": ([made, node("SequenceInsert", ["s", "in0", "k"], ["t"]), node("ConcatFromSequence", ["t"], ["out0"], axis=0)], [np.concatenate([x, x, y])]),
            "append": ([node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "in1"], ["t"]), node("SequenceInsert", ["t", "in0"], ["u"]),
                        node("ConcatFromSequence", ["u"], ["out0"], axis=1, new_axis=1)], [np.stack([y, x], 1)]),
            "erase": ([made, node("SequenceErase", ["s", "k"], ["t"]), node("SequenceAt", ["t", "z"], ["out0"])], [x]),
            "length": ([made, node("SequenceLength", ["s"], ["out0"])], [np.int64(2)])}
    constants = [node("Constant", [], [n], value=numpy_helper.from_array(np.int64(v))) for n, v in (("k", 1), ("z", 0))]
    for label, (nodes, expected) in ways.items():
        if any(n.op_type == a.op for n in nodes):
            yield Try(label, [x, y], nodes=constants + nodes, expected=expected)


@recipe("Optional OptionalGetElement OptionalHasElement")
def optional(a):
    x = a.f(2, 3)
    made = node("Optional", ["in0"], ["o"])
    if a.op != "OptionalHasElement":
        yield Try("get", [x], nodes=[made, node("OptionalGetElement", ["o"], ["out0"])], expected=[x])
    if a.op != "OptionalGetElement":
        yield Try("has", [x], nodes=[made, node("OptionalHasElement", ["o"], ["out0"])], expected=[np.array(True)])
        kind = helper.make_tensor_type_proto(T.FLOAT, [2])
        yield Try("has-none", [], nodes=[node("Optional", [], ["o"], type=kind), node("OptionalHasElement", ["o"], ["out0"])], expected=[np.array(False)])


@recipe("SplitToSequence")
def split_to_sequence(a):
    x = a.x(4, 3)
    k = node("Constant", [], ["k"], value=numpy_helper.from_array(np.int64(1)))
    for label, more, expected in (("each", {}, x[1:2]), ("dropped", {"keepdims": 0}, x[1])):
        yield Try(label, [x], nodes=[k, node("SplitToSequence", ["in0"], ["s"], **more), node("SequenceAt", ["s", "k"], ["out0"])], expected=[expected])
    parts = node("Constant", [], ["p"], value=numpy_helper.from_array(i64(1, 3)))
    yield Try("parts", [x], nodes=[k, parts, node("SplitToSequence", ["in0", "p"], ["s"]), node("SequenceAt", ["s", "k"], ["out0"])], expected=[x[1:]])


@recipe("SequenceMap")
def sequence_map(a):
    x, y = a.f(2), a.f(3)
    body = graph([node("Neg", ["e"], ["f"])], [("e", T.FLOAT, ["n"])], [("f", T.FLOAT, ["n"])])
    nodes = [node("SequenceConstruct", ["in0", "in1"], ["s"]), node("SequenceMap", ["s"], ["t"], body=body), node("ConcatFromSequence", ["t"], ["out0"], axis=0)]
    yield Try("neg", [x, y], nodes=nodes, expected=[-np.concatenate([x, y])])


# --- ai.onnx.ml ---

@recipe("LabelEncoder")
def label_encoder(a):
    words, numbers = ["b", "a", "c"], [3, 1, 7]
    x, w = np.array([[1, 3], [7, 8]]), np.array([["a", "b"], ["c", "d"]], object)
    forward, back = dict(zip(numbers, words)), dict(zip(words, numbers))
    lookup = lambda table, v, d, dtype: np.vectorize(lambda e: table.get(e, d), otypes=[dtype])(v)
    if a.version == 1:
        if a.dtype == object:
            yield Try("words", [w], {"classes_strings": words, "default_int64": -1}, expected=[lookup({s: i for i, s in enumerate(words)}, w, -1, np.int64)])
        else:
            yield Try("numbers", [np.array([[1, 0], [2, 5]])], {"classes_strings": words, "default_string": "?"}, expected=[lookup(dict(enumerate(words)), np.array([[1, 0], [2, 5]]), "?", object)])
    elif a.dtype == object:
        yield Try("words", [w], {"keys_strings": words, "values_int64s": numbers, "default_int64": -5}, expected=[lookup(back, w, -5, np.int64)])
        yield Try("words-floats", [w], {"keys_strings": words, "values_floats": [1.5, 2.5, 3.5], "default_float": 0.5},
                  expected=[lookup(dict(zip(words, [1.5, 2.5, 3.5])), w, 0.5, np.float32)])
        yield Try("words-words", [w], {"keys_strings": words, "values_strings": ["x", "y", "z"], "default_string": "?"}, expected=[lookup(dict(zip(words, "xyz")), w, "?", object)])
    elif a.dtype == np.int64:
        yield Try("numbers-words", [x], {"keys_int64s": numbers, "values_strings": words, "default_string": "?"}, expected=[lookup(forward, x, "?", object)])
        yield Try("numbers-floats", [x], {"keys_int64s": numbers, "values_floats": [1.5, 2.5, 3.5]}, expected=[lookup(dict(zip(numbers, [1.5, 2.5, 3.5])), x, -0.0, np.float32)])
        yield Try("numbers", [x], {"keys_int64s": numbers, "values_int64s": [10, 20, 30]}, expected=[lookup(dict(zip(numbers, [10, 20, 30])), x, -1, np.int64)])
    elif a.dtype == np.float32:
        yield Try("floats", [x.astype(np.float32)], {"keys_floats": [3.0, 1.0, 7.0], "values_int64s": numbers}, expected=[lookup(dict(zip([3, 1, 7], numbers)), x, -1, np.int64)])


@recipe("CategoryMapper")
def category_mapper(a):
    cats = {"cats_int64s": [3, 1, 7], "cats_strings": ["b", "a", "c"]}
    if a.dtype == object:
        yield Try("words", [np.array(["a", "b", "d"], object)], {**cats, "default_int64": -5}, expected=[i64(1, 3, -5)])
    else:
        yield Try("numbers", [i64(7, 3, 2)], {**cats, "default_string": "?"}, expected=[np.array(["c", "b", "?"], object)])


@recipe("LinearRegressor")
def linear_regressor(a):
    x, w, b = a.x(3, 4), a.f(2, 4), a.f(2)
    y = x.astype(np.float64) @ w.T.astype(np.float64)
    yield Try("plain", [x], {"coefficients": w.reshape(-1).tolist(), "targets": 2}, expected=[y.astype(np.float32)], atol=1e-5)
    yield Try("intercepts", [x], {"coefficients": w.reshape(-1).tolist(), "intercepts": b.tolist(), "targets": 2}, expected=[(y + b).astype(np.float32)], atol=1e-5)
