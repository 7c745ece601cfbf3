"""Cases of com.microsoft, for make_cases.py: what ONNX Runtime's optimiser, its quantiser and its builders of models write."""
import numpy as np

from case import case, node, normal, rng, run

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
def normalization_before_its_opset():
    """ONNX Runtime's optimiser writes it into models of older opsets."""
    x, g, b = normal(2, 3, 8), normal(8), normal(1, 8)[0] + 1
    norm = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
    return run([node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1, epsilon=1e-5)], {"x": x}, ["y"], [norm * g + b],
               weights={"g": g, "b": b}, opset=11, shapes={"x": ["n", "m", 8]})


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


def few_bits(bits, is_weight):
    g = rng()
    n, x, codes, scales = 8 // bits, normal(3, 32), g.integers(0, 1 << bits, (6, 32)), g.random((6, 2)).astype(np.float32)
    w = ((codes.reshape(6, 2, 16) - (1 << bits - 1)) * scales[..., None]).reshape(6, 32).astype(np.float32)
    packed = sum(codes[:, i::n] << bits * i for i in range(n)).astype(np.uint8).reshape(6, 2, 16 // n)
    weights = {"s": scales.ravel(), **({"w": packed} if is_weight else {})}
    nodes = [ms("MatMulNBits", ["x", "w", "s"], ["y"], K=32, N=6, bits=bits, block_size=16)]
    return run(nodes, {"x": x, **({} if is_weight else {"w": packed})}, ["y"], [x @ w.T], weights=weights, domains=MS, atol=1e-4)


@case
def weights_of_two_bits():
    return few_bits(2, True)


@case
def weights_of_four_bits_given():
    """They are no constant of the model."""
    return few_bits(4, False)


@case
def weights_of_two_bits_given():
    return few_bits(2, False)


def rows_as_bytes(x, block):
    """What accuracy_level 4 allows: rows by blocks, each block's largest magnitude being 127."""
    blocks = np.pad(x, ((0, 0), (0, -x.shape[1] % block))).reshape(x.shape[0], -1, block)
    most = np.abs(blocks).max(-1, keepdims=True)
    codes = np.rint(blocks * np.where(most == 0, 0, 127 / np.where(most == 0, 1, most)).astype(np.float32))
    return (codes * (most / 127)).reshape(x.shape[0], -1)[:, :x.shape[1]]


def weights_in_blocks(m, k, n, bits, block, level, zeros=False, dtype=np.float32, **options):
    g = rng()
    nblocks, parts = -(-k // block), 8 // bits
    codes, scales = g.integers(0, 1 << bits, (n, nblocks, block)), (g.random((n, nblocks, 1)) / 8 + 0.01).astype(dtype)
    zero = g.integers(0, 1 << bits, (n, -(-nblocks // parts) * parts)) if zeros else np.full((n, nblocks), 1 << bits - 1)
    w = ((codes - zero[:, :nblocks, None]) * scales.astype(np.float32)).reshape(n, -1)[:, :k]
    x = normal(m, k).astype(dtype)
    x[-1, :block] = 0
    y = (rows_as_bytes(x.astype(np.float32), block) if level == 4 else x.astype(np.float32)) @ w.T
    pack = lambda c: sum(c[..., i::parts] << bits * i for i in range(parts)).astype(np.uint8)
    weights = {"w": pack(codes), "s": scales.reshape(n, -1), **({"z": pack(zero).ravel()} if zeros else {})}
    nodes = [ms("MatMulNBits", ["x", *weights], ["y"], K=k, N=n, bits=bits, block_size=block, accuracy_level=level)]
    return run(nodes, {"x": x}, ["y"], [y.astype(dtype)], weights=weights, domains=MS, atol=4e-3 if dtype == np.float16 else 1e-4, **options)


@case
def weights_of_four_bits_for_a_row():
    return weights_in_blocks(1, 160, 200, 4, 32, 0, zeros=True)


@case
def weights_of_two_bits_for_few_rows():
    return weights_in_blocks(5, 96, 72, 2, 32, 0, dtype=np.float16)


@case
def weights_of_eight_bits_for_many_rows():
    return weights_in_blocks(33, 90, 80, 8, 16, 0)


@case
def weights_of_four_bits_for_many_rows():
    return weights_in_blocks(33, 128, 96, 4, 32, 0, zeros=True)


@case
def bytes_by_weights_of_four_bits():
    return weights_in_blocks(1, 160, 200, 4, 32, 4)


@case
def bytes_by_weights_of_four_bits_with_zeros():
    return weights_in_blocks(21, 150, 72, 4, 16, 4, zeros=True)


@case
def bytes_by_weights_of_two_bits():
    return weights_in_blocks(3, 128, 65, 2, 64, 4, zeros=True)


@case
def bytes_by_weights_of_eight_bits():
    return weights_in_blocks(4, 64, 64, 8, 32, 4, dtype=np.float16)


@case
def bytes_by_weights_of_any_rows():
    return weights_in_blocks(7, 96, 80, 4, 32, 4, shapes={"x": ["n", 96]})


@case
def rows_of_four_bits_looked_up():
    g = rng()
    codes, zeros, scales = g.integers(0, 16, (9, 48)), g.integers(0, 16, (9, 4)), g.random((9, 3)).astype(np.float32) + 0.1
    i = np.array([[3, -1, 0], [8, 3, 5]], np.int64)
    w = ((codes.reshape(9, 3, 16) - zeros[:, :3, None]) * scales[..., None]).reshape(9, 48).astype(np.float32)
    pack = lambda c: (c[:, 0::2] | c[:, 1::2] << 4).astype(np.uint8)
    nodes = [ms("GatherBlockQuantized", ["w", "i", "s", "z"], ["y"], block_size=16)]
    return run(nodes, {"i": i}, ["y"], [w[i]], weights={"w": pack(codes), "s": scales, "z": pack(zeros)}, domains=MS)


@case
def rows_of_bytes_looked_up():
    g = rng()
    codes, scales = g.integers(0, 256, (9, 32)), g.random((9, 2)).astype(np.float16) + np.float16(0.1)
    i = np.array([7, 0], np.int32)
    w = ((codes.reshape(9, 2, 16) - 128) * scales[..., None].astype(np.float32)).reshape(9, 32).astype(np.float16)
    nodes = [ms("GatherBlockQuantized", ["w", "i", "s"], ["y"], bits=8, block_size=16)]
    return run(nodes, {"i": i}, ["y"], [w[i]], weights={"w": codes.astype(np.uint8), "s": scales}, domains=MS, opset=21)


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
