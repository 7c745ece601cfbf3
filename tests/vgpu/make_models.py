#!/usr/bin/env python3
"""make_models.py OUT_DIR [MINILM.onnx]: small networks for the virtual GPU, each NAME.onnx with NAME.in.npz and NAME.odd.npz.

lstm, a decoder's step with caches, a transformer's layer, half precision, int8 (quantised, and dequantised around f32), maps. The odd
inputs have NaN, infinities, ±100 and subnormal numbers among their floats. With MINILM.onnx: its first two layers, too.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ODD = np.array([np.nan, np.inf, -np.inf, 100, -100, 1e-40, -1e-40, -0.0, 1e4])


class Net:
    """Nodes are added by the operator's name; constants are drawn by the network's own generator."""

    def __init__(self, name):
        self.name, self.nodes, self.weights, self.inputs, self.outputs = name, [], [], [], []
        self.random, self.data = np.random.default_rng(len(name) * 7919), {}

    def draw(self, shape, dtype):
        if np.issubdtype(dtype, np.floating):
            return self.random.standard_normal(shape).astype(dtype)
        return self.random.integers(0, 100, shape).astype(dtype)

    def input(self, name, shape, dtype=np.float32, data=None):
        self.data[name] = self.draw(shape, dtype) if data is None else data
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        return name

    def const(self, value, dtype=np.float32):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape, dtype=np.float32):
        return self.const(self.random.standard_normal(shape) / np.sqrt(shape[-2] if len(shape) > 1 else 4), dtype)

    def __call__(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, value, dtype=np.float32):
        self.outputs.append(helper.make_tensor_value_info(value, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None))

    def write(self, folder):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, folder / f"{self.name}.onnx")
        np.savez(folder / f"{self.name}.in.npz", **self.data)
        for name, data in self.data.items():
            if np.issubdtype(data.dtype, np.floating):
                flat = data.reshape(-1)
                flat[3::53] = np.resize(ODD, flat[3::53].shape).astype(data.dtype)
        np.savez(folder / f"{self.name}.odd.npz", **self.data)


def lstm():
    n = Net("lstm")
    x = n.input("x", [5, 1, 32])
    y = n("LSTM", x, n.weight(1, 192, 32), n.weight(1, 192, 48), n.weight(1, 384), hidden_size=48, outputs=3)
    n.output(n("Relu", n("MatMul", n("Squeeze", y[1], n.const([0], np.int64)), n.weight(48, 10))))
    return n


def attention(n, q, k, v, width):
    scores = n("Mul", n("MatMul", q, n("Transpose", k, perm=[0, 1, 3, 2])), n.const(width ** -0.5))
    return n("MatMul", n("Softmax", scores, axis=-1), v)


def heads(n, x, count, width):
    return n("Transpose", n("Reshape", x, n.const([1, -1, count, width], np.int64)), perm=[0, 2, 1, 3])


def normed(n, x, size):
    return n("LayerNormalization", x, n.weight(size), n.weight(size), axis=-1)


def feed_forward(n, x, size):
    h = n("Add", n("MatMul", x, n.weight(size, 4 * size)), n.weight(4 * size))
    gelu = n("Mul", n("Mul", h, n.const(0.5)), n("Add", n("Erf", n("Mul", h, n.const(2 ** -0.5))), n.const(1.0)))
    return n("Add", x, n("MatMul", gelu, n.weight(4 * size, size)))


def decode():
    n = Net("decode")
    ids = n.input("ids", [1, 1], np.int64)
    x = n("Gather", n.weight(100, 64), ids)
    h = normed(n, x, 64)
    q, k, v = (heads(n, n("MatMul", h, n.weight(64, 64)), 2, 32) for _ in range(3))
    k = n("Concat", n.input("past_k", [1, 2, 70, 32]), k, axis=2)
    v = n("Concat", n.input("past_v", [1, 2, 70, 32]), v, axis=2)
    a = n("Reshape", n("Transpose", attention(n, q, k, v, 32), perm=[0, 2, 1, 3]), n.const([1, 1, 64], np.int64))
    x = n("Add", x, n("MatMul", a, n.weight(64, 64)))
    n.output(n("MatMul", normed(n, feed_forward(n, x, 64), 64), n.weight(64, 100)))
    n.output(k)
    n.output(v)
    return n


def layer():
    n = Net("layer")
    x = n.input("x", [1, 24, 64])
    h = normed(n, x, 64)
    q, k, v = (heads(n, n("MatMul", h, n.weight(64, 64)), 2, 32) for _ in range(3))
    a = n("Reshape", n("Transpose", attention(n, q, k, v, 32), perm=[0, 2, 1, 3]), n.const([1, 24, 64], np.int64))
    n.output(feed_forward(n, n("Add", x, n("MatMul", a, n.weight(64, 64))), 64))
    return n


def half():
    n = Net("half")
    x = n.input("x", [1, 8, 14, 14], np.float16)
    c = n("Relu", n("Conv", x, n.weight(16, 8, 3, 3, dtype=np.float16), n.weight(16, dtype=np.float16), pads=[1, 1, 1, 1]))
    d = n("Conv", c, n.weight(16, 1, 3, 3, dtype=np.float16), group=16, strides=[2, 2])
    p = n("Flatten", n("GlobalAveragePool", n("Clip", d, n.const(0, np.float16), n.const(6, np.float16))))
    n.output(n("Softmax", n("MatMul", p, n.weight(16, 12, dtype=np.float16)), axis=-1), np.float16)
    return n


def matrices():
    n = Net("matrices")
    x = n.input("x", [2, 70, 40], np.float16)
    y = n("Relu", n("Add", n("MatMul", x, n.weight(40, 72, dtype=np.float16)), n.weight(72, dtype=np.float16)))
    z = n("MatMul", y, n("Transpose", n.input("z", [2, 50, 72], np.float16), perm=[0, 2, 1]))
    n.output(n("Softmax", z, axis=-1), np.float16)
    return n


def quantised():
    n = Net("int8")
    x = n.input("x", [1, 8, 12, 12])
    scale, zero = n.const(0.05), n.const(128, np.uint8)
    q = n("QuantizeLinear", x, scale, zero)
    w = n.const(n.random.integers(-90, 90, (16, 8, 3, 3)), np.int8)
    c = n("QLinearConv", q, scale, zero, w, n.const(0.01), n.const(0, np.int8), n.const(0.1), n.const(100, np.uint8),
          n.const(n.random.integers(-500, 500, 16), np.int32), pads=[1, 1, 1, 1])
    d = n("DequantizeLinear", c, n.const(0.1), n.const(100, np.uint8))
    f = n("Reshape", n("MaxPool", d, kernel_shape=[2, 2], strides=[2, 2]), n.const([16, 36], np.int64))
    b = n("DynamicQuantizeLinear", f, outputs=3)
    m = n("MatMulInteger", b[0], n.const(n.random.integers(-90, 90, (36, 20)), np.int8), b[2])
    n.output(n("Mul", n("Cast", m, to=TensorProto.FLOAT), b[1]))
    n.output(c, np.uint8)
    return n


def maps():
    n = Net("maps")
    x, y = n.input("x", [37, 130]), n.input("y", [130])
    for kind in ("Exp", "Tanh", "Sigmoid", "Erf", "Sin", "Sqrt", "Log", "Floor", "Softplus"):
        n.output(n(kind, n("Add", x, y)))
    n.output(n("Max", x, y))
    n.output(n("ReduceMax", x, axes=[1]))
    n.output(n("ReduceMin", x, axes=[0]))
    n.output(n("Cast", n("Div", x, y), to=TensorProto.INT32), np.int32)
    return n


def two_layers(path, folder):
    """The first two layers of MiniLM, whole: what the third would read."""
    model = onnx.load(path)
    graph = model.graph
    end = max(i for i, node in enumerate(graph.node) if node.name.startswith("layer1/"))
    nodes = list(graph.node)[:end + 1]
    used = {name for node in nodes for name in node.input}
    weights = [w for w in graph.initializer if w.name in used]
    inputs = [i for i in graph.input if i.name in used]
    output = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    model.graph.CopyFrom(helper.make_graph(nodes, "minilm2", inputs, [output], weights))
    onnx.save(model, folder / "minilm2.onnx")
    with np.load(path.with_suffix("").with_suffix(".in.npz")) as data:
        np.savez(folder / "minilm2.in.npz", **{i.name: data[i.name] for i in inputs})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for net in (lstm(), decode(), layer(), half(), matrices(), quantised(), maps()):
        net.write(folder)
    if len(sys.argv) > 2:
        two_layers(pathlib.Path(sys.argv[2]), folder)


if __name__ == "__main__":
    main()
