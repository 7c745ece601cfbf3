"""Known networks, each written once over a set of operations: seeded_models.py makes ONNX files of them, scripts/gpu_steps.py runs
them in PyTorch. All weights are plus or minus one scale per tensor, the signs drawn by a counter: as demanding for numerics as
trained ones, equal on both sides, and a compressed executable carries a bit per weight.

An `ops` object has the operations used below. Its weight(name, shape, fan_in, gain) makes a tensor of signs(name, n) * gain /
sqrt(fan_in).
"""
import zlib

import numpy as np


def signs(name, n):
    """n times +1 or -1: bits of a counter hashed as in splitmix64."""
    z = np.arange(n, dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()) << 32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return np.where(z >> np.uint64(63), np.float32(1), np.float32(-1))


def weight(name, shape, fan_in, gain=1.0):
    scale = np.float32(gain / np.sqrt(fan_in))
    return (signs(name, int(np.prod(shape))) * scale).reshape(shape)


# ---- convolutional

def resnet50(ops, x):
    x = ops.relu(ops.conv(x, "stem", 3, 64, 7, 2, 3))
    x = ops.max_pool(x, 3, 2, 1)
    width_in = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            y = ops.relu(ops.conv(x, name + "c1", width_in, width, 1, 1, 0))
            y = ops.relu(ops.conv(y, name + "c2", width, width, 3, stride, 1))
            y = ops.conv(y, name + "c3", width, 4 * width, 1, 1, 0, gain=0.5)
            x = x if block else ops.conv(x, name + "skip", width_in, 4 * width, 1, stride, 0)
            x, width_in = ops.relu(ops.add(y, x)), 4 * width
    return ops.linear(ops.global_average(x), "fc", 2048, 1000)


def mobilenet_v2(ops, x):
    x = ops.relu6(ops.conv(x, "stem", 3, 32, 3, 2, 1, gain=1.4))
    width_in, at = 32, 0
    for expand, width, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            name, hidden, at = f"b{at}", width_in * expand, at + 1
            y = ops.relu6(ops.conv(x, name + "up", width_in, hidden, 1, 1, 0, gain=1.4)) if expand > 1 else x
            y = ops.relu6(ops.conv(y, name + "dw", hidden, hidden, 3, 1 if block else stride, 1, hidden, gain=1.4))
            y = ops.conv(y, name + "down", hidden, width, 1, 1, 0)
            x, width_in = (ops.add(y, x) if block else y), width
    x = ops.relu6(ops.conv(x, "head", 320, 1280, 1, 1, 0, gain=1.4))
    return ops.linear(ops.global_average(x), "fc", 1280, 1000)


def squeezenet(ops, x):
    x = ops.max_pool(ops.relu(ops.conv(x, "stem", 3, 64, 3, 2, 0, gain=1.4)), 3, 2, 0)
    width_in = 64
    for at, (squeeze, expand) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))):
        name = f"fire{at}"
        y = ops.relu(ops.conv(x, name + "s", width_in, squeeze, 1, 1, 0, gain=1.4))
        parts = [ops.relu(ops.conv(y, f"{name}e{k}", squeeze, expand, k, 1, k // 2, gain=1.4)) for k in (1, 3)]
        x, width_in = ops.concat(parts, 1), 2 * expand
        x = ops.max_pool(x, 3, 2, 0) if at in (1, 3) else x
    return ops.global_average(ops.relu(ops.conv(x, "head", 512, 1000, 1, 1, 0)))


# ---- transformers

def block(ops, x, name, width, heads, hidden, norm_first):
    """One encoder layer, with the norms before the two halves (ViT) or after them (BERT)."""
    norm = lambda y, part: ops.layer_norm(y, name + part, width)
    y = ops.attention(norm(x, "n1") if norm_first else x, name + "att", width, heads)
    x = ops.add(x, y) if norm_first else norm(ops.add(x, y), "n1")
    y = ops.gelu(ops.linear(norm(x, "n2") if norm_first else x, name + "up", width, hidden))
    y = ops.linear(y, name + "down", hidden, width)
    return ops.add(x, y) if norm_first else norm(ops.add(x, y), "n2")


def vit_b_16(ops, x):
    x = ops.tokens(ops.conv(x, "patch", 3, 768, 16, 16, 0), "tokens", 196, 768)
    for layer in range(12):
        x = block(ops, x, f"l{layer}", 768, 12, 3072, True)
    return ops.linear(ops.first_token(ops.layer_norm(x, "n", 768)), "fc", 768, 1000)


def bert(ops, ids, layers, width, heads, words):
    x = ops.add(ops.embed(ids, "words", words, width), ops.param("places", (1, 128, width), 4))
    x = ops.layer_norm(x, "n", width)
    for layer in range(layers):
        x = block(ops, x, f"l{layer}", width, heads, 4 * width, False)
    return x


def minilm(ops, ids):
    return bert(ops, ids, 6, 384, 12, 30522)


def bert_base(ops, ids):
    return bert(ops, ids, 12, 768, 12, 30522)


IMAGE, TEXT = ("f32", (3, 224, 224)), ("i64", (128,))
# name: network, its input without the batch
NETS = {"resnet50": (resnet50, IMAGE), "mobilenet_v2": (mobilenet_v2, IMAGE), "squeezenet": (squeezenet, IMAGE),
        "vit_b_16": (vit_b_16, IMAGE), "minilm": (minilm, TEXT), "bert_base": (bert_base, TEXT)}


def random_input(kind, batch):
    dtype, dims = kind
    shape = (batch, *dims)
    if dtype == "i64":
        return (np.arange(int(np.prod(shape)), dtype=np.int64) * 7919 % 30522).reshape(shape)
    places = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    return np.sin(places * 0.7391 + np.sin(places * 0.0113)).astype(np.float32)
