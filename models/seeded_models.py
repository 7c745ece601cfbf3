#!/usr/bin/env python3
"""seeded_models.py OUT_DIR [NAME[:BATCH] …]: the networks of nets.py as ONNX files with weights drawn by a counter.

OUT_DIR/NAME.onnx, NAME.in.npz; batch 1 unless said, else the files are called NAME_bBATCH. Without names: all but bert_base.
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import nets

DTYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64}


class OnnxOps:
    """Every operation adds nodes and returns the name of the value it made."""

    def __init__(self, batch):
        self.batch, self.nodes, self.initializers = batch, [], []

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def param(self, name, shape, fan_in, gain=1.0):
        return self.constant(name, nets.weight(name, shape, fan_in, gain))

    def shape(self, *dims):
        return self.constant(f"shape_{len(self.initializers)}", np.array(dims, np.int64))

    def conv(self, x, name, ic, oc, k, stride, pad, groups=1, gain=1.0):
        fan_in = ic // groups * k * k
        inputs = [x, self.param(name + ".w", (oc, ic // groups, k, k), fan_in, gain), self.param(name + ".b", (oc,), 100)]
        return self.node("Conv", inputs, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=groups)

    def linear(self, x, name, m, n):
        y = self.node("MatMul", [x, self.param(name + ".w", (m, n), m)])
        return self.node("Add", [y, self.param(name + ".b", (n,), 100)])

    def relu(self, x):
        return self.node("Relu", [x])

    def relu6(self, x):
        name = f"limits_{len(self.initializers)}"
        return self.node("Clip", [x, self.constant(name + "a", np.float32(0)), self.constant(name + "b", np.float32(6))])

    def gelu(self, x):
        return self.node("Gelu", [x])

    def add(self, x, y):
        return self.node("Add", [x, y])

    def concat(self, parts, axis):
        return self.node("Concat", parts, axis=axis)

    def max_pool(self, x, k, stride, pad):
        return self.node("MaxPool", [x], kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4)

    def global_average(self, x):
        return self.node("Flatten", [self.node("GlobalAveragePool", [x])])

    def layer_norm(self, x, name, n):
        inputs = [x, self.constant(name + ".w", np.ones(n, np.float32)), self.param(name + ".b", (n,), 100)]
        return self.node("LayerNormalization", inputs, epsilon=1e-6)

    def embed(self, ids, name, n, width):
        return self.node("Gather", [self.param(name, (n, width), 4), ids])

    def tokens(self, x, name, n, width):
        """Patches [b,width,h,w] to [b,1+n,width]: a class token before them, places added."""
        x = self.node("Transpose", [self.node("Reshape", [x, self.shape(self.batch, width, n)])], perm=[0, 2, 1])
        first = self.node("Expand", [self.param(name + ".class", (1, 1, width), 4), self.shape(self.batch, 1, width)])
        return self.add(self.concat([first, x], 1), self.param(name + ".places", (1, 1 + n, width), 4))

    def first_token(self, x):
        return self.node("Gather", [x, self.constant(f"first_{len(self.nodes)}", np.int64(0))], axis=1)

    def attention(self, x, name, width, heads):
        def part(which, perm):
            y = self.node("Reshape", [self.linear(x, name + which, width, width), self.shape(self.batch, -1, heads, width // heads)])
            return self.node("Transpose", [y], perm=perm)
        scores = self.node("MatMul", [part("q", [0, 2, 1, 3]), part("k", [0, 2, 3, 1])])
        scale = self.constant(name + ".scale", np.float32((width // heads) ** -0.5))
        weights = self.node("Softmax", [self.node("Mul", [scores, scale])], axis=-1)
        y = self.node("Transpose", [self.node("MatMul", [weights, part("v", [0, 2, 1, 3])])], perm=[0, 2, 1, 3])
        return self.linear(self.node("Reshape", [y, self.shape(self.batch, -1, width)]), name + "o", width, width)


def model(name, batch):
    net, (dtype, dims) = nets.NETS[name]
    ops = OnnxOps(batch)
    out = net(ops, "x")
    graph = helper.make_graph(ops.nodes, name, [helper.make_tensor_value_info("x", DTYPES[dtype], [batch, *dims])],
                              [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)], ops.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def write(out, name, batch):
    stem = name if batch == 1 else f"{name}_b{batch}"
    onnx.save(model(name, batch), out / f"{stem}.onnx")
    np.savez(out / f"{stem}.in.npz", x=nets.random_input(nets.NETS[name][1], batch))
    return stem


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", type=pathlib.Path)
    args.add_argument("names", nargs="*", default=[n for n in nets.NETS if n != "bert_base"])
    args = args.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for entry in args.names:
        name, _, batch = entry.partition(":")
        print(args.out / f"{write(args.out, name, int(batch or 1))}.onnx")


if __name__ == "__main__":
    main()
