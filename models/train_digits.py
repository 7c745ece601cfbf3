#!/usr/bin/env python3
"""train_digits.py [OUT_DIR]: trains the digits model and writes digits.onnx and digits_test.npz (default: beside this file).

A small convolutional network on the 8x8 digits that ship inside scikit-learn, trained with plain numpy: convolution as a matrix
product over shifted views, Adam, images moved by up to one pixel as augmentation. The seed is fixed.
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED, EPOCHS, BATCH, RATE = 7, 120, 64, 2e-3
CHANNELS = (16, 32)


def load():
    """Images f32[n,1,8,8] in [0,1] and labels, the last fifth (stratified) kept for the test."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    return train_test_split(images, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target)


# ---- layers: forward returns the result and what backward needs

def patches(x):
    """f32[n,c,h,w] -> f32[n,h,w,c*9]: the 3x3 neighbourhoods of a zero-padded image."""
    n, c, h, w = x.shape
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    win = np.lib.stride_tricks.sliding_window_view(p, (3, 3), axis=(2, 3))
    return win.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def conv(x, w, b):
    cols = patches(x)
    return (cols @ w.reshape(len(w), -1).T + b).transpose(0, 3, 1, 2), cols


def conv_back(dy, cols, w, x_shape):
    d = dy.transpose(0, 2, 3, 1)
    dw = (d.reshape(-1, d.shape[-1]).T @ cols.reshape(-1, cols.shape[-1])).reshape(w.shape)
    n, c, h, wd = x_shape
    dcols = (d @ w.reshape(len(w), -1)).reshape(n, h, wd, c, 3, 3)
    dp = np.zeros((n, c, h + 2, wd + 2), np.float32)
    for kh in range(3):
        for kw in range(3):
            dp[:, :, kh:kh + h, kw:kw + wd] += dcols[..., kh, kw].transpose(0, 3, 1, 2)
    return dp[:, :, 1:-1, 1:-1], dw, d.sum((0, 1, 2))


def pool(x):
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2)
    y = cells.max((3, 5))
    hit = cells == y[:, :, :, None, :, None]
    return y, hit / hit.sum((3, 5), keepdims=True, dtype=np.float32)


def pool_back(dy, share):
    d = dy[:, :, :, None, :, None] * share
    n, c, h, _, w, _ = d.shape
    return d.reshape(n, c, 2 * h, 2 * w)


# ---- the network

def start(rng):
    c1, c2 = CHANNELS
    def draw(*shape):
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
    zeros = lambda n: np.zeros(n, np.float32)
    return {"conv1.weight": draw(c1, 1, 3, 3), "conv1.bias": zeros(c1), "conv2.weight": draw(c2, c1, 3, 3),
            "conv2.bias": zeros(c2), "fc.weight": draw(10, c2 * 4), "fc.bias": zeros(10)}


def forward(p, x):
    a1, cols1 = conv(x, p["conv1.weight"], p["conv1.bias"])
    p1, share1 = pool(np.maximum(a1, 0))
    a2, cols2 = conv(p1, p["conv2.weight"], p["conv2.bias"])
    p2, share2 = pool(np.maximum(a2, 0))
    flat = p2.reshape(len(x), -1)
    return flat @ p["fc.weight"].T + p["fc.bias"], (x, a1, cols1, p1, share1, a2, cols2, p2, share2, flat)


def gradients(p, x, labels):
    logits, (x, a1, cols1, p1, share1, a2, cols2, p2, share2, flat) = forward(p, x)
    e = np.exp(logits - logits.max(1, keepdims=True))
    d = e / e.sum(1, keepdims=True)
    d[np.arange(len(x)), labels] -= 1
    d /= len(x)
    g = {"fc.weight": d.T @ flat, "fc.bias": d.sum(0)}
    d2 = pool_back((d @ p["fc.weight"]).reshape(p2.shape), share2) * (a2 > 0)
    d1, g["conv2.weight"], g["conv2.bias"] = conv_back(d2, cols2, p["conv2.weight"], p1.shape)
    d1 = pool_back(d1, share1) * (a1 > 0)
    _, g["conv1.weight"], g["conv1.bias"] = conv_back(d1, cols1, p["conv1.weight"], x.shape)
    return g


def moved(x, rng):
    """Each image moved by -1, 0 or 1 pixel both ways, zeros coming in."""
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    dy, dx = rng.integers(0, 3, (2, len(x)))
    return np.stack([p[i, :, a:a + 8, b:b + 8] for i, (a, b) in enumerate(zip(dy, dx))])


def train(images, labels):
    rng = np.random.default_rng(SEED)
    p = start(rng)
    m, v = ({k: np.zeros_like(w) for k, w in p.items()} for _ in range(2))
    step = 0
    total = EPOCHS * (-(-len(images) // BATCH))
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for first in range(0, len(order), BATCH):
            pick = order[first:first + BATCH]
            g = gradients(p, moved(images[pick], rng), labels[pick])
            step += 1
            rate = RATE * (1 - step / (total + 1))
            for k in p:
                m[k] = 0.9 * m[k] + 0.1 * g[k]
                v[k] = 0.999 * v[k] + 0.001 * g[k] ** 2
                p[k] -= rate * (m[k] / (1 - 0.9 ** step)) / (np.sqrt(v[k] / (1 - 0.999 ** step)) + 1e-8)
    return p


def to_onnx(p):
    node = helper.make_node
    c = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    pooled = dict(kernel_shape=[2, 2], strides=[2, 2])
    nodes = [
        node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], "conv1", **c),
        node("Relu", ["c1"], ["r1"], "relu1"),
        node("MaxPool", ["r1"], ["p1"], "pool1", **pooled),
        node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", **c),
        node("Relu", ["c2"], ["r2"], "relu2"),
        node("MaxPool", ["r2"], ["p2"], "pool2", **pooled),
        node("Flatten", ["p2"], ["flat"], "flatten", axis=1),
        node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], "fc", transB=1)]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(w), k) for k, w in p.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="train_digits.py")
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    out = args.parse_args().out
    x, x_test, y, y_test = load()
    p = train(x, y)
    logits = forward({k: w.astype(np.float64) for k, w in p.items()}, x_test)[0].astype(np.float32)
    accuracy = (logits.argmax(1) == y_test).mean()
    onnx.save(to_onnx(p), out / "digits.onnx")
    np.savez_compressed(out / "digits_test.npz", image=x_test, labels=y_test.astype(np.int64), logits=logits)
    print(f"{len(x)} images to train, {len(x_test)} to test, {100 * accuracy:.2f} % right")


if __name__ == "__main__":
    main()
