#!/usr/bin/env python3
"""make_cases.py OUT_DIR: writes dlc's own cases as test folders, like onnx's: what its node tests leave out.

A case is a function of this file, or of one named for its family beside it: it builds a small model, and says what must come out, by
numpy or by onnx's reference evaluator. OUT_DIR/NAME/{model.onnx, data.json, test_data_set_0/{input,output}_J.pb}.
"""
import argparse
import hashlib
import json
import pathlib
import shutil

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

import contrib_cases  # these two put their cases into CASES
import control_cases
import ml_cases
from case import CASES, case, info, node, normal, rng, run


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


def narrow_lanes(channels, height, width):
    """Codes of an image, a pixel's side by side: lanes of a byte, as many elements apart as there are channels."""
    nodes = [node("QuantizeLinear", ["x", "scale", "zero"], ["q"]), node("Transpose", ["q"], ["y"], perm=[0, 2, 3, 1]),
             node("Cast", ["x"], ["h"], to=T.FLOAT16), node("Transpose", ["h"], ["z"], perm=[0, 2, 3, 1])]
    x = normal(1, channels, height, width)
    q = np.clip(np.rint(x / np.float32(.03125)) + 128, 0, 255).astype(np.uint8)
    expected = [q.transpose(0, 2, 3, 1), x.astype(np.float16).transpose(0, 2, 3, 1)]
    return run(nodes, {"x": x}, ["y", "z"], expected, weights={"scale": np.float32(.03125), "zero": np.uint8(128)})


@case
def codes_of_pairs():
    return narrow_lanes(2, 17, 16)


@case
def codes_of_three():
    return narrow_lanes(3, 24, 32)


@case
def codes_of_four():
    return narrow_lanes(4, 9, 37)


# --- dimensions of inputs that turn out to be 1 ---

@case
def codes_of_all_magnitudes():
    """Floats of every exponent, halves between codes and what no integer holds, around three zero points: they saturate."""
    patterns = np.arange(0, 2**32, 2**16 + 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.array([2.0**31, 2.0**31 - 128, -(2.0**31), np.inf, -np.inf, -0.0], np.float32)
    x = np.concatenate([patterns[~np.isnan(patterns)], np.arange(-600, 600, .5, dtype=np.float32), edges])
    zeros = {"none": np.uint8(0), "middle": np.uint8(128), "most": np.uint8(255), "signed": np.int8(-3)}
    nodes = [node("QuantizeLinear", ["x", "one", name], ["to_" + name]) for name in zeros]
    expected = [np.clip(np.rint(x.astype(np.float64)) + zero, np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max).astype(zero.dtype)
                for zero in zeros.values()]
    return run(nodes, {"x": x}, ["to_" + name for name in zeros], expected, weights={"one": np.float32(1), **zeros})


def either(x, y, nodes=(node("Add", ["x", "y"], ["s"]), node("Mul", ["s", "x"], ["z"])), weights=None):
    """Every dimension is known at run time only, each by a name of its own."""
    shapes = {name: [f"{name}{d}" for d in range(value.ndim)] for name, value in (("x", x), ("y", y))}
    return run(list(nodes), {"x": x, "y": y}, ["z"], weights=weights, shapes=shapes, atol=1e-5)


@case
def broadcast_rows_at_run_time():
    return either(normal(1, 37), normal(5, 37))


@case
def broadcast_lanes_at_run_time():
    return either(normal(5, 37), normal(5, 1))


@case
def broadcast_both_ways_at_run_time():
    return either(normal(1, 37), normal(5, 1))


@case
def broadcast_nothing_at_run_time():
    return either(normal(5, 37), normal(5, 37))


@case
def broadcast_to_nothing_at_run_time():
    return either(normal(1, 37), normal(0, 37))


@case
def broadcast_batches_at_run_time():
    return either(normal(3, 1, 9, 16), normal(1, 4, 16, 33), [node("MatMul", ["x", "y"], ["p"]), node("Relu", ["p"], ["z"])])


@case
def broadcast_to_weights_at_run_time():
    nodes = [node("Sub", ["x", "mean"], ["c"]), node("Softmax", ["c"], ["p"]), node("Where", ["m", "p", "y"], ["z"])]
    return either(normal(2, 1, 20), normal(2, 3, 20), nodes, {"mean": normal(1, 3, 1), "m": rng().random((3, 20)) < .5})


@case
def expand_to_another_at_run_time():
    return either(normal(4, 1), normal(1, 21), [node("Shape", ["y"], ["n"]), node("Expand", ["x", "n"], ["e"]), node("Neg", ["e"], ["z"])])


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


def channels_first(images, channels, height, width, taps, pad, symbols):
    """A convolution whose results stay channels first: rows of a tile are turned as they are stored, of one image or of two."""
    nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=[pad] * 4), node("Relu", ["c"], ["y"])]
    weights = {"w": normal(40, channels, taps, taps), "b": normal(40)}
    return run(nodes, {"x": normal(images, channels, height, width)}, ["y"], weights=weights, shapes={"x": symbols}, atol=1e-4)


@case
def rows_of_several_images():
    return channels_first(3, 32, 5, 7, 1, 0, ["n", 32, "h", "w"])


@case
def rows_of_one_image():
    return channels_first(1, 32, 9, 19, 3, 1, ["n", 32, "h", "w"])


@case
def rows_of_known_images():
    return channels_first(2, 32, 16, 16, 3, 0, [2, 32, 16, 16])


@case
def rows_of_small_images():
    return channels_first(5, 32, 1, 3, 1, 0, ["n", 32, "h", "w"])


@case
def products_transposed():
    nodes = [node("MatMul", ["x", "z"], ["m"]), node("Transpose", ["m"], ["y"], perm=[0, 2, 1])]
    return run(nodes, {"x": normal(3, 50, 24), "z": normal(3, 24, 37)}, ["y"], atol=1e-4)


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


@case
def optimisers_without_epsilon():
    """What divides is never 0: epsilon is 1e-6 where the file does not say."""
    x, zero = np.array([2.0, -1.0], np.float32), np.zeros(2, np.float32)
    nodes = [node("Adagrad", ["r", "t", "x", "zero", "zero"], ["a", "b"], domain="ai.onnx.preview.training"),
             node("Adam", ["r", "t", "x", "zero", "zero", "zero"], ["c", "d", "e"], domain="ai.onnx.preview.training")]
    inputs = {"r": np.float32(0.1), "t": np.int64(0), "x": x, "zero": zero}
    return run(nodes, inputs, ["a", "b", "c", "d", "e"], [x, zero, x, zero, zero], domains=[("ai.onnx.preview.training", 1)])


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


# --- codes below a byte ---

def codes_in_blocks(dtype, axis, zeros):
    """A model's codes of 4 bits with a scale, and a zero point, for each block along an axis: rows that are multiplied, or filters."""
    g, dims, block, low = rng(), [64, 48], 16, -8 if dtype == ml_dtypes.int4 else 0
    codes = g.integers(low, low + 16, dims)
    blocks = [d // block if i == axis else d for i, d in enumerate(dims)]
    scales, zero = g.random(blocks).astype(np.float32), g.integers(low, low + 16, blocks)
    spread = lambda v: v.repeat(block, axis)
    w = ((codes - (spread(zero) if zeros else 0)) * spread(scales)).astype(np.float32)
    x = normal(3, dims[axis])
    weights = {"w": codes.astype(dtype), "s": scales, **({"z": zero.astype(dtype)} if zeros else {})}
    nodes = [node("DequantizeLinear", list(weights), ["d"], axis=axis, block_size=block),
             node("Gemm", ["x", "d"], ["y"], transB=axis)]
    return run(nodes, {"x": x}, ["y", "d"], [x @ (w.T if axis else w), w], weights=weights, opset=21, atol=1e-4)


@case
def signed_codes_of_four_bits_in_blocks():
    return codes_in_blocks(ml_dtypes.int4, 0, False)


@case
def codes_of_four_bits_in_blocks():
    return codes_in_blocks(ml_dtypes.uint4, 0, True)


@case
def signed_codes_with_zero_points_in_blocks():
    return codes_in_blocks(ml_dtypes.int4, 0, True)


@case
def codes_of_four_bits_in_blocks_along_rows():
    return codes_in_blocks(ml_dtypes.uint4, 1, True)


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
def boxes_of_a_crowd():
    """More than are compared at once, most of them kept."""
    g = rng()
    corner = g.random((1, 330, 2))
    boxes = np.concatenate([corner, corner + 0.01 + 0.05 * g.random((1, 330, 2))], 2).astype(np.float32)
    scores = g.permutation(330).reshape(1, 1, 330).astype(np.float32)
    limits = {"m": np.array([320]), "t": np.array([0.2], np.float32), "s": np.array([2], np.float32)}
    return run([node("NonMaxSuppression", ["boxes", "scores", *limits], ["y"])], {"boxes": boxes, "scores": scores, **limits}, ["y"],
               [keep_boxes(boxes, scores, 320, 0.2, np.float32(2))])


@case
def boxes_none_wanted():
    inputs = {"boxes": normal(1, 50, 4), "scores": normal(1, 2, 50)}
    return run([node("NonMaxSuppression", ["boxes", "scores"], ["y"])], inputs, ["y"], [np.zeros((0, 3), np.int64)])


@case
def boxes_that_nothing_limits():
    corner = np.arange(6, dtype=np.float32).reshape(1, 6, 1) * 10 + np.zeros((1, 6, 2), np.float32)
    inputs = {"boxes": np.concatenate([corner, corner + 5], 2), "scores": np.array([[[1, -np.inf, 2, -3e38, np.inf, -np.inf]]], np.float32),
              "m": np.array([6])}
    kept = np.array([[0, 0, i] for i in (4, 2, 0, 3, 1, 5)], np.int64)
    return run([node("NonMaxSuppression", ["boxes", "scores", "m"], ["y"])], inputs, ["y"], [kept])


@case
def nothing_of_one_place():
    """An axis of no point or one has index 0, and where there is none nothing may be loaded."""
    nodes = [node("NonZero", ["x"], ["i"]), node("Squeeze", ["i", "first"], ["q"]), node("Gather", ["d", "q"], ["g"]), node("Div", ["g", "e"], ["y"])]
    inputs = {"x": np.zeros(1, np.float32), "d": np.arange(7), "e": np.array(3)}
    return run(nodes, inputs, ["q", "y"], [np.zeros(0, np.int64)] * 2, weights={"first": np.array([0])})


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
def squeeze_to_the_declared_rank():
    """Without axes: a dimension that only the run knows is 1 where the model's output is declared without it."""
    x = normal(1, 1)
    nodes = [node("Squeeze", ["x"], ["s"]), node("Sigmoid", ["s"], ["p"]), node("Mul", ["p", "four"], ["y"])]
    built, *rest = run(nodes, {"x": x}, ["y"], weights={"four": np.float32(4)}, shapes={"x": ["n", 1]})
    built.graph.output[0].type.tensor_type.shape.SetInParent()
    return built, *rest


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


@case
def sums_beyond_the_largest():
    """Finite terms whose sum is infinite: along the lanes and across them, by parts."""
    x = np.full((2000, 24), 1e36, np.float32)
    nodes = [node("ReduceSum", ["x", "first"], ["a"], keepdims=0), node("Transpose", ["x"], ["t"]), node("Neg", ["t"], ["n"]),
             node("ReduceSum", ["n", "last"], ["b"], keepdims=0)]
    infinite = np.full(24, np.inf, np.float32)
    return run(nodes, {"x": x}, ["a", "b"], [infinite, -infinite], weights={"first": np.array([0]), "last": np.array([1])})


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
    here = pathlib.Path(__file__).resolve()
    sources = b"".join(p.read_bytes() for p in [here, *sorted(here.parent.glob("*case*.py"))])
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
