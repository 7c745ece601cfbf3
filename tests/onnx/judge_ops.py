"""Recipes of the importer's judge: operators of numbers, views, indices. A recipe takes an Asked and gives Tries."""
from judge_try import OPS, Try, i64, ml_dtypes, np, recipe
from onnx import TensorProto as T, helper, numpy_helper

SHAPES = {"cube": (2, 3, 4), "scalar": (), "empty": (2, 0, 3), "one": (1,)}
DOMAIN = {"Acos": (-1, 1), "Asin": (-1, 1), "Atanh": (-0.9, 0.9), "Acosh": (1, 4), "Log": (0.1, 4), "Sqrt": (0, 4), "Tan": (-1.2, 1.2),
          "Reciprocal": (0.5, 3)}
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5, -2.5, 100, -100])
NO_EDGES = {"Tan", "Sin", "Cos", "Softsign", "Mish", "Swish", "Gelu", "HardSwish", "Celu", "Elu", "Selu"}
UNARY = ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Not Reciprocal Relu Round Sigmoid Sign Sin Sinh "
         "Softplus Softsign Sqrt Tan Tanh HardSwish Mish IsNaN BitwiseNot Identity")


def old(a, attributes=None):
    """Opset 1's hint on memory."""
    return {**(attributes or {}), **({"consumed_inputs": [0]} if a.has("consumed_inputs") else {})}


@recipe(UNARY)
def unary(a):
    low, high = DOMAIN.get(a.op, (-3, 3))
    for label, shape in SHAPES.items():
        x = a.x(*shape, low=low, high=high)
        yield Try(label, [x], old(a), like=(a.op, {}, [x]))
    if a.is_wide and a.op not in NO_EDGES:
        x = EDGES.astype(a.dtype)
        yield Try("edges", [x], old(a), like=(a.op, {}, [x]))


ALPHAS = {"Elu": ("alpha",), "Celu": ("alpha",), "Selu": ("alpha", "gamma"), "LeakyRelu": ("alpha",), "ThresholdedRelu": ("alpha",),
          "HardSigmoid": ("alpha", "beta"), "Shrink": ("lambd", "bias"), "Swish": ("alpha",)}


@recipe(" ".join(ALPHAS))
def with_alpha(a):
    x = a.x(2, 3, 4)
    given = {name: 0.75 if i == 0 else 1.25 for i, name in enumerate(ALPHAS[a.op])}
    for label, attributes in (("plain", {}), ("given", given)):
        defaults = {"Selu": {"alpha": 1.6732, "gamma": 1.0507}} if a.version == 1 else {}
        yield Try(label, [x], old(a, attributes), like=(a.op, {**defaults.get(a.op, {}), **attributes}, [x]))
    yield Try("scalar", [a.x()], old(a))
    yield Try("empty", [a.x(0, 2)], old(a))


@recipe("Gelu")
def gelu(a):
    for mode in ("none", "tanh"):
        yield Try(mode, [a.x(2, 3)], {"approximate": mode})


@recipe("IsInf")
def is_inf(a):
    x = EDGES.astype(a.dtype) if a.is_wide else a.x(7)
    for negative in (0, 1):
        for positive in (0, 1):
            y = (np.isneginf(x.astype(np.float64)) & bool(negative)) | (np.isposinf(x.astype(np.float64)) & bool(positive))
            yield Try(f"{negative}{positive}", [x], {"detect_negative": negative, "detect_positive": positive}, expected=[y])


def softened(x, axis, how):
    x = x.astype(np.float64)
    shifted = x - x.max(axis, keepdims=True)
    if how == "Hardmax":
        y = np.zeros_like(x)
        np.put_along_axis(y, np.expand_dims(x.argmax(axis), axis), 1, axis)
        return y
    total = np.exp(shifted).sum(axis, keepdims=True)
    return shifted - np.log(total) if how == "LogSoftmax" else np.exp(shifted) / total


@recipe("Softmax LogSoftmax Hardmax")
def softmax(a):
    """Before opset 13 the dimensions from the axis on are one."""
    for shape in ((2, 3, 4), (5,), (3, 4)):
        for axis in (None, 0, len(shape) - 1, -1):
            if a.version < 11 and axis == -1:
                continue
            x = a.x(*shape)
            at = (1 if a.version < 13 else -1) if axis is None else axis
            if at >= len(shape):
                continue
            if a.version < 13:
                flat = x.reshape(int(np.prod(shape[:at % len(shape)])), -1)
                y = softened(flat, 1, a.op).reshape(shape)
            else:
                y = softened(x, at, a.op)
            yield Try(f"r{len(shape)}-axis{axis}", [x], {} if axis is None else {"axis": axis}, expected=[y.astype(a.dtype)])


@recipe("Add Sub Mul Div And Or Xor Equal Greater Less Pow GreaterOrEqual LessOrEqual PRelu BitwiseAnd BitwiseOr BitwiseXor")
def binary(a):
    if a.version < 7:
        yield from binary_by_attributes(a)
        return
    pairs = {"same": ((2, 3), (2, 3)), "row": ((2, 3), (3,)), "scalar": ((2, 3), ()), "scalars": ((), ()), "empty": ((2, 0), (1, 1))}
    if a.op != "PRelu":
        pairs |= {"both": ((2, 1, 4), (3, 1)), "left": ((3,), (2, 3))}
    for label, (left, right) in pairs.items():
        yield Try(label, list(operands(a, left, right)))
    if a.op == "Div" and a.kind == "i":
        yield Try("signs", [np.array([7, -7, 7, -7]).astype(a.dtype), np.array([2, 2, -2, -2]).astype(a.dtype)],
                  expected=[np.array([3, -3, -3, 3]).astype(a.dtype)])
    if a.is_wide and a.op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        e = EDGES.astype(a.dtype)
        yield Try("edges", [e[:, None], e[None, :]])
    if a.op == "Pow" and a.version >= 12:
        for dtype in a.types(1):
            x, e = a.x(6, low=1, high=3), a.x(6, low=0, high=3, dtype=dtype)
            y = np.power(x.astype(np.float64), e.astype(np.float64))
            yield Try(f"by-{dtype}", [x, e], expected=[np.trunc(y).astype(a.dtype) if a.kind in "iu" else y.astype(a.dtype)])


def operands(a, left, right):
    if a.op == "Div":
        y = a.x(*right, low=1, high=3)
        return a.x(*left), np.where(y == 0, a.like_scalar(1), y).astype(a.dtype).reshape(right)
    if a.op == "Pow":
        return a.x(*left, low=0.5, high=3), a.x(*right, low=0, high=2)
    return a.x(*left), a.x(*right)


FUNCTIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
             "Equal": np.equal, "Greater": np.greater, "Less": np.less, "Pow": np.power,
             "Div": lambda x, y: np.trunc(x / y).astype(x.dtype) if x.dtype.kind in "iu" else x / y,
             "PRelu": lambda x, s: np.where(x < 0, x * s, x)}


def binary_by_attributes(a):
    if a.op == "PRelu":
        x = a.x(2, 3, 4)
        for label, slope, placed in (("channel", a.x(3), (3, 1)), ("one", a.x(1), (1,))):
            yield Try(label, [x, slope], old(a), expected=[FUNCTIONS["PRelu"](x, slope.reshape(placed))])
        return
    for label, left, right, attributes, placed in (
            ("same", (2, 3), (2, 3), {}, (2, 3)), ("last", (2, 3, 4), (3, 4), {"broadcast": 1}, (3, 4)),
            ("middle", (2, 3, 4), (3,), {"broadcast": 1, "axis": 1}, (3, 1)), ("first", (2, 3, 4), (2,), {"broadcast": 1, "axis": 0}, (2, 1, 1)),
            ("scalar", (2, 3), (), {"broadcast": 1}, ()), ("one", (2, 3), (1,), {"broadcast": 1}, (1,)), ("empty", (0, 3), (3,), {"broadcast": 1}, (3,))):
        x, y = operands(a, left, right)
        yield Try(label, [x, y], old(a, attributes), expected=[FUNCTIONS[a.op](x, y.reshape(placed))])


@recipe("Mod")
def mod(a):
    x, y = a.x(4, 3), a.x(3, low=1, high=3)
    if a.kind in "iu":
        y = np.where(y == 0, a.like_scalar(1), y).astype(a.dtype)
        z = -y if a.kind == "i" else y
        yield Try("floor", [x, z], expected=[np.mod(x, z)])
    yield Try("fmod", [x, y], {"fmod": 1}, expected=[np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(a.dtype)])


@recipe("BitShift")
def bit_shift(a):
    for direction in ("LEFT", "RIGHT"):
        x, by = a.x(5, low=0), a.x(5, low=0, high=4)
        yield Try(direction.lower(), [x, by], {"direction": direction})


@recipe("Sum Mean Max Min")
def variadic(a):
    for n in (1, 2, 3):
        yield Try(f"of{n}", [a.x(2, 3) for _ in range(n)], old(a) if n == 1 else {}, like=(a.op, {}, None))
    if a.version >= 8:
        yield Try("broadcast", [a.x(2, 1), a.x(3), a.x()])
    yield Try("empty", [a.x(0, 2), a.x(0, 2)], like=(a.op, {}, None))


@recipe("Clip")
def clip(a):
    x = a.x(3, 4)
    lo, hi = a.like_scalar(1 if a.kind == "u" else -1), a.like_scalar(2)
    if a.version < 11:
        for label, attributes in (("both", {"min": -1.0, "max": 2.0}), ("low", {"min": -1.0}), ("high", {"max": 2.0}), ("none", {})):
            low, high = attributes.get("min"), attributes.get("max")
            y = x if low is None and high is None else np.clip(x, low, high).astype(a.dtype)
            yield Try(label, [x], old(a, attributes), expected=[y])
        return
    for label, bounds in (("both", [lo, hi]), ("low", [lo]), ("high", [None, hi]), ("none", [])):
        low, high = (bounds + [None, None])[:2]
        yield Try(label, [x, *bounds], expected=[x if not bounds else np.clip(x.astype(np.float64), low, high).astype(a.dtype)])
    yield Try("crossed", [x, hi, lo], expected=[np.full_like(x, lo)])


# --- reductions ---

def reduced(op, x, axes, keep):
    wide = x.astype(np.float64) if x.dtype.kind not in "iub" else x.astype(np.int64) if x.dtype != np.uint64 else x
    if op in ("ReduceMax", "ReduceMin"):
        return (np.max if op == "ReduceMax" else np.min)(x, axis=axes, keepdims=keep)
    f = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMean": np.mean,
         "ReduceL1": lambda v, **k: np.abs(v).sum(**k), "ReduceL2": lambda v, **k: np.sqrt(np.square(v).sum(**k)),
         "ReduceLogSum": lambda v, **k: np.log(v.sum(**k)), "ReduceLogSumExp": lambda v, **k: np.log(np.exp(v.astype(np.float64)).sum(**k)),
         "ReduceSumSquare": lambda v, **k: np.square(v).sum(**k)}[op]
    with np.errstate(all="ignore"):
        return np.asarray(f(wide, axis=axes, keepdims=keep)).astype(x.dtype)


@recipe("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare")
def reduce(a):
    is_input = a.version >= (13 if a.op == "ReduceSum" else 18)
    for label, shape, axes in (("all", (2, 3, 4), None), ("last", (2, 3), (-1 if a.version >= 11 else 1,)), ("two", (2, 3, 4), (0, 2)),
                               ("scalar", (), None), ("empty", (0, 3), (1,)), ("of-none", (0, 3), (0,))):
        if label == "of-none" and (a.op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceLogSum") or a.kind == "b"):
            continue
        for keep in (1, 0):
            x = a.x(*shape, low=0.5, high=3)
            attributes = {} if keep else {"keepdims": 0}
            inputs = [x] if axes is None or not is_input else [x, i64(*axes)]
            if axes is not None and not is_input:
                attributes["axes"] = list(axes)
            yield Try(f"{label}{keep}", inputs, attributes, expected=[reduced(a.op, x, axes, bool(keep))])
    if is_input:
        x = a.x(2, 3, low=0.5, high=3)
        yield Try("none", [x, i64()], expected=[reduced(a.op, x, None, True)])
        as_is = {"ReduceSumSquare": x * x, "ReduceL1": np.abs(x), "ReduceL2": np.abs(x), "ReduceLogSum": np.log(x.astype(np.float64)).astype(a.dtype)}
        yield Try("noop", [x, i64()], {"noop_with_empty_axes": 1}, expected=[as_is.get(a.op, x).astype(a.dtype)])


@recipe("ArgMax ArgMin")
def arg_max(a):
    f = np.argmax if a.op == "ArgMax" else np.argmin
    for label, shape, axis in (("first", (3, 4), None), ("middle", (2, 3, 4), 1), ("last", (2, 5), 1 if a.version < 11 else -1), ("line", (6,), 0)):
        for keep in (1, 0):
            x = a.x(*shape)
            y = np.asarray(f(x, axis or 0))
            y = np.expand_dims(y, axis or 0) if keep else y
            yield Try(f"{label}{keep}", [x], {**({} if axis is None else {"axis": axis}), **({} if keep else {"keepdims": 0})}, expected=[y])
    if a.has("select_last_index"):
        x = np.array([[1, 3, 3, 1]]).astype(a.dtype)
        yield Try("ties", [x], {"axis": 1, "select_last_index": 1}, expected=[i64(2 if a.op == "ArgMax" else 3)[None]])


@recipe("CumSum CumProd")
def cumulated(a):
    f = np.cumsum if a.op == "CumSum" else np.cumprod
    start = 0 if a.op == "CumSum" else 1
    for label, axis, attributes in (("first", 0, {}), ("last", -1, {}), ("exclusive", 1, {"exclusive": 1}), ("reverse", 1, {"reverse": 1}),
                                    ("both", 0, {"exclusive": 1, "reverse": 1})):
        x = a.x(2, 4, low=0.5, high=2)
        y = np.flip(x, axis) if "reverse" in attributes else x
        y = f(y, axis=axis).astype(a.dtype)
        if "exclusive" in attributes:
            y = np.concatenate([np.full_like(y.take([0], axis), start), y.take(range(y.shape[axis] - 1), axis)], axis)
        yield Try(label, [x, np.array(axis, a.types(1)[0])], attributes, expected=[np.flip(y, axis) if "reverse" in attributes else y])


# --- views ---

@recipe("Reshape")
def reshape(a):
    for label, shape, to in (("infer", (2, 3, 4), (4, -1)), ("copy", (2, 3, 4), (0, -1)), ("scalar", (1, 1), ()), ("up", (), (1, 1)), ("empty", (0, 3), (3, 0))):
        x = a.x(*shape)
        if label == "empty":
            if not a.has("allowzero"):
                continue
            yield Try(label, [x, i64(*to)], {"allowzero": 1}, expected=[x.reshape(to)])
            continue
        real = [shape[i] if d == 0 else d for i, d in enumerate(to)]
        if a.version < 5:
            yield Try(label, [x], old(a, {"shape": list(to)}), expected=[x.reshape(real)])
        else:
            yield Try(label, [x, i64(*to)], expected=[x.reshape(real)])


@recipe("Flatten")
def flatten(a):
    for shape, axis in (((2, 3, 4), None), ((2, 3, 4), 0), ((2, 3, 4), 2), ((2, 3, 4), 3), ((2, 3, 4), -1), ((0, 4), 1), ((), 0)):
        if a.version < 11 and (axis or 0) < 0 or (a.version < 9 and shape == ()):
            continue
        at = 1 if axis is None else axis % (len(shape) + 1) if axis >= 0 else axis + len(shape)
        x = a.x(*shape)
        y = x.reshape(int(np.prod(shape[:at])), int(np.prod(shape[at:])))
        yield Try(f"r{len(shape)}-axis{axis}", [x], {} if axis is None else {"axis": axis}, expected=[y])


@recipe("Squeeze Unsqueeze")
def squeeze(a):
    f = np.squeeze if a.op == "Squeeze" else np.expand_dims
    cases = {"Squeeze": (((1, 3, 1), (0, 2)), ((1, 3, 1), (-1,)), ((1, 3, 1), None), ((1, 0), (0,))),
             "Unsqueeze": (((3, 4), (0, 2)), ((3, 4), (-1,)), ((), (0,)), ((0, 2), (1,)))}[a.op]
    for shape, axes in cases:
        if axes and min(axes) < 0 and a.version < 11:
            continue
        x = a.x(*shape)
        y = f(x, axes)
        label = f"r{len(shape)}-{'none' if axes is None else '_'.join(map(str, axes))}"
        if axes is None:
            yield Try(label, [x], expected=[y])
        elif a.version < 13:
            yield Try(label, [x], {"axes": list(axes)}, expected=[y])
        else:
            yield Try(label, [x, i64(*axes)], expected=[y])


@recipe("Transpose")
def transpose(a):
    for label, shape, perm in (("plain", (2, 3, 4), None), ("given", (2, 3, 4), (1, 2, 0)), ("scalar", (), None), ("empty", (0, 3), (1, 0))):
        x = a.x(*shape)
        yield Try(label, [x], {} if perm is None else {"perm": list(perm)}, expected=[x.transpose(perm)])


@recipe("Expand")
def expand(a):
    for label, shape, to in (("rows", (3, 1), (2, 1, 4)), ("fewer", (2, 3), (3,)), ("scalar", (), (2, 2)), ("same", (2,), ()), ("empty", (1, 3), (0, 3))):
        x = a.x(*shape)
        yield Try(label, [x, i64(*to)], expected=[np.broadcast_to(x, np.broadcast_shapes(shape, to))])


@recipe("Tile")
def tile(a):
    if a.version < 6:
        x = a.x(2, 3)
        for axis in (0, 1):
            reps = [1, 1]
            reps[axis] = 3
            yield Try(f"axis{axis}", [x, a.like_scalar(3)[None], a.like_scalar(axis)[None]], expected=[np.tile(x, reps)])
        return
    for label, shape, by in (("two", (2, 3), (2, 1)), ("none", (2, 3), (0, 2)), ("line", (4,), (3,)), ("scalar", (), ())):
        x = a.x(*shape)
        yield Try(label, [x, i64(*by)], expected=[np.tile(x, by)])


@recipe("Slice")
def slices(a):
    for label, shape, starts, ends, axes, steps in (
            ("plain", (4, 5), (1, 0), (3, 4), None, None), ("axis", (4, 5), (1,), (-1,), (1,), None), ("far", (4, 5), (-100, 2), (100, 2 ** 60), (0, 1), None),
            ("empty", (4, 5), (3,), (1,), (0,), None), ("back", (4, 5), (-1,), (-100,), (1,), (-2,)), ("negative", (4, 5), (1,), (3,), (-1,), (2,))):
        if a.version < 10 and (steps or (axes and min(axes) < 0)) or (a.version < 11 and axes and min(axes) < 0):
            continue
        x = a.x(*shape)
        at = [slice(None)] * len(shape)
        for i, axis in enumerate(axes or range(len(starts))):
            step = steps[i] if steps else 1
            end = None if step < 0 and ends[i] < -shape[axis] else ends[i]
            at[axis] = slice(starts[i], end, step)
        y = x[tuple(at)]
        if a.version < 10:
            yield Try(label, [x], {"starts": list(starts), "ends": list(ends), **({"axes": list(axes)} if axes else {})}, expected=[y])
        else:
            more = [i64(*axes) if axes else None] + ([i64(*steps)] if steps else [])
            yield Try(label, [x, i64(*starts), i64(*ends), *(more if axes else [])], expected=[y])


@recipe("Split")
def split(a):
    x = a.x(6, 4)
    halves = {"num_outputs": 2} if a.version >= 18 else {}
    if a.version > 1:
        yield Try("equal", [x], halves, 2, np.split(x, 2))
    for label, axis, parts in (("parts", 0, (1, 5)), ("axis", 1, (2, 0, 2)), ("back", -1, (3, 1))):
        if axis < 0 and a.version < 11:
            continue
        y = np.split(x, np.cumsum(parts)[:-1], axis)
        if a.version < 13:
            yield Try(label, [x], {"axis": axis, "split": list(parts)}, len(parts), y)
        else:
            yield Try(label, [x, i64(*parts)], {"axis": axis}, len(parts), y)
    if a.version >= 18:
        yield Try("uneven", [a.x(7, 2)], {"num_outputs": 3}, 3)
    if a.version == 1:
        yield Try("as-input", [x, np.array([2, 4]).astype(a.dtype)], {"axis": 0}, 2, np.split(x, [2]))


@recipe("Concat")
def concat(a):
    for label, shapes, axis in (("two", ((2, 3), (2, 1)), 1), ("one", ((2, 3),), 0), ("back", ((1, 2), (3, 2), (0, 2)), -2)):
        if axis < 0 and a.version < 11:
            continue
        parts = [a.x(*s) for s in shapes]
        yield Try(label, parts, {"axis": axis}, expected=[np.concatenate(parts, axis)])
    if a.version == 1:
        parts = [a.x(2, 3), a.x(2, 1)]
        yield Try("default", parts, expected=[np.concatenate(parts, 1)])


@recipe("Pad")
def pad(a):
    name = {1: "paddings", 2: "pads"}.get(a.version)
    modes = ["constant", "edge", "reflect"] + (["wrap"] if a.version >= 19 else [])
    for mode in modes:
        x, fill = a.x(3, 4), a.x()
        pads = (1, 0, 2, 1)
        pairs = ((1, 2), (0, 1))
        if mode == "constant":
            for label, value in (("zero", None), ("value", fill)):
                y = np.pad(x, pairs, constant_values=a.like_scalar("" if a.dtype == object else 0) if value is None else value)
                if name:
                    yield Try(label, [x], {name: list(pads), **({} if value is None else {"value": float(value)})}, expected=[y])
                else:
                    yield Try(label, [x, i64(*pads)] + ([] if value is None else [value]), expected=[y])
        else:
            y = np.pad(x, pairs, mode=mode)
            yield Try(mode, [x] if name else [x, i64(*pads)], {"mode": mode, **({name: list(pads)} if name else {})}, expected=[y])
    if not name:
        x = a.x(3, 4)
        yield Try("crop", [x, i64(-1, 0, 0, -2)], expected=[x[1:, :-2]])
    if a.version >= 18:
        x = a.x(3, 4)
        yield Try("axes", [x, i64(1, 2), a.x(), i64(-1)])


@recipe("Shape Size")
def shape_of(a):
    for label, shape in SHAPES.items():
        x = a.x(*shape)
        yield Try(label, [x], expected=[i64(*shape) if a.op == "Shape" else np.int64(x.size)])
    if a.has("start"):
        for start, end in ((1, None), (-2, None), (0, -1), (-10, 10), (2, 1)):
            yield Try(f"from{start}to{end}", [a.x(2, 3, 4)], {"start": start, **({} if end is None else {"end": end})},
                      expected=[i64(*(2, 3, 4)[start:end])])


@recipe("DepthToSpace SpaceToDepth")
def depth(a):
    x = a.x(1, 8, 2, 4)
    for label, mode in (("plain", None),) + ((("dcr", "DCR"), ("crd", "CRD")) if a.has("mode") else ()):
        n, c, h, w = x.shape
        if a.op == "DepthToSpace":
            y = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3) if mode == "CRD" else \
                x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
            y = y.reshape(n, c // 4, 2 * h, 2 * w)
        else:
            y = x.reshape(n, c, h // 2, 2, w // 2, 2)
            y = y.transpose(0, 1, 3, 5, 2, 4) if mode == "CRD" else y.transpose(0, 3, 5, 1, 2, 4)
            y = y.reshape(n, 4 * c, h // 2, w // 2)
        yield Try(label, [x], {"blocksize": 2, **({"mode": mode} if mode else {})}, expected=[y])


@recipe("Where")
def where(a):
    for label, shapes in (("same", ((2, 3), (2, 3), (2, 3))), ("broadcast", ((2, 1), (3,), ())), ("scalar", ((), (2,), (2,))), ("empty", ((0, 1), (1, 2), (2,)))):
        c, x, y = a.x(*shapes[0], dtype=np.bool_), a.x(*shapes[1], dtype=a.second), a.x(*shapes[2], dtype=a.second)
        yield Try(label, [c, x, y], expected=[np.where(c, x, y)])


@recipe("CenterCropPad")
def crop(a):
    yield Try("crop", [a.x(4, 5), i64(2, 3)])
    yield Try("pad", [a.x(2, 3), i64(5, 4)])
    yield Try("axes", [a.x(2, 3), i64(2)], {"axes": [1]})


# --- indices ---

@recipe("Gather")
def gather(a):
    for dtype in a.types(1):
        for label, shape, at, axis in (("rows", (4, 3), (2, 0), 0), ("scalar", (4, 3), 1, 1), ("grid", (4,), ((0, 1), (3, 3)), 0), ("none", (4, 2), (), 0), ("back", (4, 3), (-1, -4), 0)):
            if a.version < 11 and label == "back":
                continue
            x, i = a.x(*shape), np.array(at, dtype)
            yield Try(f"{label}-{dtype}", [x, i], {"axis": axis}, expected=[np.take(x, i, axis)])


@recipe("GatherElements")
def gather_elements(a):
    for dtype in a.types(1):
        x, i = a.x(3, 4), a.rng.integers(-3, 3, (2, 4)).astype(dtype)
        yield Try(f"rows-{dtype}", [x, i], expected=[np.take_along_axis(x, i.astype(np.int64), 0)])
        yield Try(f"back-{dtype}", [x, i[:, :2]], {"axis": -1})


@recipe("GatherND")
def gather_nd(a):
    yield Try("rows", [a.x(3, 4), i64(2, 0).reshape(2, 1)])
    yield Try("points", [a.x(3, 4), i64(2, 0, -1, 3).reshape(2, 2)])
    if a.has("batch_dims"):
        yield Try("batch", [a.x(2, 3, 4), i64(2, 0).reshape(2, 1)], {"batch_dims": 1})


@recipe("Scatter ScatterElements")
def scatter(a):
    for label, axis in (("first", 0), ("last", 1), ("back", -1)):
        if axis < 0 and a.version < 11 and a.op == "Scatter":
            continue
        x, i, u = a.x(3, 4), np.stack([a.rng.permutation(3)[:2] for _ in range(4)], 1), a.x(2, 4)
        if axis:
            x, i, u = x.T.copy(), i.T.copy(), u.T.copy()
        y = x.copy()
        np.put_along_axis(y, i, u, axis)
        yield Try(label, [x, i.astype(np.int64), u], {"axis": axis}, expected=[y])
    if a.has("reduction") and a.kind in "fiu":
        for how in ("add", "mul") + (("min", "max") if a.version >= 18 else ()):
            yield Try(how, [a.x(4, low=1, high=2), i64(1, 1, 3), a.x(3, low=1, high=2)], {"reduction": how})


@recipe("ScatterND")
def scatter_nd(a):
    yield Try("rows", [a.x(4, 3), i64(2, 0).reshape(2, 1), a.x(2, 3)])
    yield Try("points", [a.x(4, 3), i64(2, 0, -1, 1).reshape(2, 2), a.x(2)])
    if a.has("reduction") and a.kind in "fiu":
        for how in ("add", "mul") + (("min", "max") if a.version >= 18 else ()):
            yield Try(how, [a.x(4, low=1, high=2), i64(1, 1, 3).reshape(3, 1), a.x(3, low=1, high=2)], {"reduction": how})


@recipe("Compress")
def compress(a):
    x = a.x(3, 4)
    yield Try("flat", [x, np.array([0, 1, 1, 0, 1], bool)], expected=[np.compress([0, 1, 1, 0, 1], x)])
    yield Try("rows", [x, np.array([1, 0, 1], bool)], {"axis": 0}, expected=[x[[0, 2]]])
    yield Try("none", [x, np.zeros(4, bool)], {"axis": 1}, expected=[x[:, :0]])


@recipe("NonZero")
def nonzero(a):
    for label, shape in (("grid", (3, 4)), ("line", (5,)), ("empty", (0, 2))):
        x = a.x(*shape, low=0, high=1) if a.kind in "iu" else a.x(*shape)
        if a.dtype == object:
            x = np.where(a.x(*shape, dtype=np.bool_), "", "a").astype(object)
            yield Try(label, [x], expected=[np.array(np.nonzero(x != ""))])
        else:
            yield Try(label, [x], expected=[np.array(np.nonzero(x))])


@recipe("OneHot")
def one_hot(a):
    depth, values = np.array(4).astype(a.types(1)[0]), np.array([0, 1]).astype(a.types(2)[-1] if a.types(2)[-1] != object else np.float32)
    for axis in (None, 0, -1):
        i = np.array([[0, 3, -1], [2, 7, 1]]) if a.kind != "u" else np.array([[0, 3, 3], [2, 7, 1]])
        yield Try(f"axis{axis}", [i.astype(a.dtype), depth, values], {} if axis is None else {"axis": axis}, expected=[hot(i, 4, axis, values)])


def hot(i, depth, axis, values):
    at = i.ndim if axis in (None, -1) else axis
    y = np.full(i.shape + (depth,), values[0])
    for where in np.ndindex(i.shape):
        if -depth <= i[where] < depth:
            y[where + (int(i[where]) % depth,)] = values[1]
    return np.moveaxis(y, -1, at)


@recipe("TopK")
def top_k(a):
    x = a.x(3, 5) if a.kind == "f" else np.stack([a.rng.permutation(5) for _ in range(3)]).astype(a.dtype)
    for label, axis, more in (("last", 1 if a.version < 11 else -1, {}), ("first", 0, {})) + ((("least", 1, {"largest": 0}),) if a.has("largest") else ()):
        k = 2
        order = np.argsort(x if "largest" in more else -x.astype(np.float64), axis=axis, kind="stable").take(range(k), axis)
        y = [np.take_along_axis(x, order, axis), order.astype(np.int64)]
        yield Try(label, [x] if a.version < 10 else [x, i64(k)], {"axis": axis, **more, **({"k": k} if a.version < 10 else {})}, 2, y)


@recipe("Unique")
def unique(a):
    x = np.array([2, 1, 1, 3, 4, 3]).astype(a.dtype) if a.dtype != object else np.array(["b", "a", "a", "c", "d", "c"], object)
    for label, attributes in (("sorted", {}), ("as-found", {"sorted": 0})):
        yield Try(label, [x], attributes, 4)
    yield Try("axis", [np.stack([x, x])], {"axis": 0}, 4)


@recipe("ReverseSequence")
def reverse_sequence(a):
    x, n = a.x(4, 3), i64(4, 2, 1)
    yield Try("time", [x, n], {"time_axis": 0, "batch_axis": 1})
    yield Try("batch", [x, i64(3, 1, 2, 3)], {"time_axis": 1, "batch_axis": 0})


@recipe("Trilu")
def trilu(a):
    x = a.x(2, 3, 4)
    for label, upper, k in (("upper", 1, None), ("lower", 0, None), ("above", 1, 1), ("below", 0, -1), ("far", 1, 9)):
        f = np.triu if upper else np.tril
        yield Try(label, [x] + ([] if k is None else [np.int64(k)]), {"upper": upper}, expected=[f(x, k or 0)])


@recipe("EyeLike")
def eye(a):
    x = a.x(3, 4)
    for label, attributes in (("plain", {}), ("k", {"k": 1}), ("dtype", {"dtype": int(T.INT32)})):
        dtype = np.int32 if label == "dtype" else a.dtype
        yield Try(label, [x], attributes, expected=[np.eye(3, 4, k=attributes.get("k", 0)).astype(dtype)])


@recipe("Range")
def ranged(a):
    for label, (start, limit, step) in (("up", (1, 7, 2)), ("down", (5, -2, -2)), ("none", (3, 1, 1))):
        args = [a.like_scalar(v) for v in (start, limit, step)]
        yield Try(label, args, expected=[np.arange(start, limit, step).astype(a.dtype)])


@recipe("ConstantOfShape")
def constant_of_shape(a):
    yield Try("zeros", [i64(2, 3)], expected=[np.zeros((2, 3), np.float32)])
    yield Try("scalar", [i64()], expected=[np.float32(0)])
    yield Try("empty", [i64(0, 2)], expected=[np.zeros((0, 2), np.float32)])
    for name in sorted(next(c for c in a.schema.type_constraints if c.type_param_str == "T2").allowed_type_strs):
        number = getattr(T, name[7:-1].upper())
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(number))
        value = np.array([1]).astype(dtype)
        yield Try(name[7:-1], [i64(3)], {"value": numpy_helper.from_array(value)}, expected=[np.full(3, value[0])])


@recipe("Constant")
def constant(a):
    value = a.f(2, 3)
    yield Try("value", [], {"value": numpy_helper.from_array(value)}, expected=[value])
    for name, given, y in (("value_float", 1.5, np.float32(1.5)), ("value_int", 3, np.int64(3)), ("value_floats", [1.0, 2.5], np.float32([1, 2.5])),
                           ("value_ints", [4, 5], i64(4, 5)), ("value_string", "ab", np.array("ab", object)), ("value_strings", ["a", "b"], np.array(["a", "b"], object))):
        if a.has(name):
            yield Try(name, [], {name: given}, expected=[y])


@recipe("Cast CastLike")
def cast(a):
    index = 1 if a.op == "CastLike" else 0
    texts = a.schema.outputs[0].type_str
    for name in sorted(next(c for c in a.schema.type_constraints if c.type_param_str == texts).allowed_type_strs):
        number = T.DataType.Value(name[7:-1].upper())
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(number))
        if "string" in name and a.dtype.itemsize == 1 and a.kind == "f":
            continue
        x = a.x(2, 3, low=0, high=3)
        x = np.abs(x) if a.kind == "f" else x
        if a.dtype == object:
            x = np.array([["1", "2.5", "-3"], ["0", "7", "1e2"]] if "int" not in name and "bool" not in name else [["1", "2", "3"], ["0", "1", "3"]], object)
        if index:
            yield Try(name[7:-1], [x, np.zeros(1, dtype) if dtype != object else np.array([""], object)], exact=True)
        elif a.version == 1:
            yield Try(name[7:-1], [x], {"to": name[7:-1].upper()}, like=("Cast", {"to": number}, [x]), exact=True)
        else:
            yield Try(name[7:-1], [x], {"to": number}, exact=True)


@recipe("BitCast")
def bit_cast(a):
    for number in (T.FLOAT, T.INT32, T.UINT8, T.FLOAT16, T.INT64):
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(number))
        if dtype.itemsize == a.dtype.itemsize and "int4" not in str(a.dtype) and "int2" not in str(a.dtype) and "float4" not in str(a.dtype):
            x = a.x(2, 3)
            yield Try(str(dtype), [x], {"to": number}, expected=[x.view(dtype)])


@recipe("TensorScatter")
def tensor_scatter(a):
    yield Try("plain", [a.x(2, 5, 3), a.x(2, 2, 3), i64(1, 3)], {"axis": 1})
    yield Try("start", [a.x(2, 5, 3), a.x(2, 2, 3)], {"axis": 1})
    yield Try("circular", [a.x(2, 5, 3), a.x(2, 2, 3), i64(4, 0)], {"axis": 1, "mode": "circular"})


# --- products ---

@recipe("MatMul")
def matmul(a):
    for label, left, right in (("plain", (2, 3), (3, 4)), ("batch", (2, 1, 2, 3), (3, 3, 4)), ("vector", (3,), (3, 4)), ("dot", (3,), (3,)), ("empty", (0, 3), (3, 2)), ("none", (2, 0), (0, 2))):
        x, y = a.x(*left), a.x(*right)
        yield Try(label, [x, y], expected=[np.asarray(np.matmul(x.astype(np.float64), y.astype(np.float64))).astype(a.dtype)], atol=1e-5)


@recipe("Gemm")
def gemm(a):
    for label, left, right, c, attributes in (
            ("plain", (2, 3), (3, 4), (2, 4), {}), ("row", (2, 3), (3, 4), (4,), {}), ("scaled", (3, 2), (4, 3), (1, 4), {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
            ("scalar", (2, 3), (3, 4), (), {}), ("without", (2, 3), (3, 4), None, {})):
        if c is None and a.version < 11:
            continue
        x, y = a.x(*left), a.x(*right)
        inputs = [x, y] + ([] if c is None else [a.x(*c)])
        more = {"broadcast": 1} if a.version < 7 and c is not None and len(c) < 2 or (a.version < 7 and label == "scaled") else {}
        x, y = (v.astype(np.float64) for v in (x, y))
        z = attributes.get("alpha", 1.0) * (x.T if "transA" in attributes else x) @ (y.T if "transB" in attributes else y)
        z = z if c is None else z + attributes.get("beta", 1.0) * inputs[2].astype(np.float64)
        if a.kind != "f" and "alpha" in attributes:
            continue
        yield Try(label, inputs, {**attributes, **more}, expected=[z.astype(a.dtype)], atol=1e-5)


@recipe("MatMulInteger")
def matmul_integer(a):
    for dtype in a.types(1):
        x, y = a.x(2, 3), a.x(3, 4, dtype=dtype)
        zx, zy = a.like_scalar(2), np.array([1, 2, 0, 1]).astype(dtype)
        wide = [v.astype(np.int32) for v in (x, y, zx, zy)]
        yield Try(f"plain-{dtype}", [x, y], expected=[wide[0] @ wide[1]])
        yield Try(f"zeros-{dtype}", [x, y, zx, zy], expected=[(wide[0] - wide[2]) @ (wide[1] - wide[3])])
        yield Try(f"right-{dtype}", [x, y, None, zy[:1].reshape(())], expected=[wide[0] @ (wide[1] - wide[3][0])])


@recipe("Einsum")
def einsum(a):
    for label, equation, shapes in (("product", "ij,jk->ik", ((2, 3), (3, 4))), ("trace", "ii", ((3, 3),)), ("implicit", "ba", ((2, 3),)), ("ellipsis", "...ij, ...jk -> ...ik", ((2, 2, 3), (2, 3, 2))), ("three", "a,b,c->abc", ((2,), (3,), (2,)))):
        parts = [a.x(*s) for s in shapes]
        y = np.einsum(equation.replace(" ", ""), *[p.astype(np.float64 if a.kind == "f" else np.int64) for p in parts])
        yield Try(label, parts, {"equation": equation}, expected=[np.asarray(y).astype(a.dtype)], atol=1e-5)


@recipe("Det")
def det(a):
    for label, shape in (("one", (3, 3)), ("batch", (2, 2, 2))):
        x = a.x(*shape)
        yield Try(label, [x], expected=[np.asarray(np.linalg.det(x.astype(np.float64))).astype(a.dtype)], atol=1e-4)


assert OPS and ml_dtypes
