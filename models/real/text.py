"""Transformer configurations of a few thousand weights each, drawn: encoders, decoders with caches, encoder-decoders, speech and vision.

ROWS   name, configuration, its small sizes, head (a class of transformers), kind of inputs, exporter (s: TorchScript, d: dynamo), opset
       kinds: tokens (ids, mask), decode (ids, mask, a cache), pair (ids, mask, decoder ids), image, audio (samples), features (mel), clip
"""

import pathlib
import tempfile

import torch
import transformers

import case

HIDDEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100}
LLAMA = {**HIDDEN, "num_key_value_heads": 2, "max_position_embeddings": 64}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100, "n_positions": 64}
T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "vocab_size": 100,
    "decoder_start_token_id": 0,
}
BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 100,
    "max_position_embeddings": 64,
}
VIT = {**{k: v for k, v in HIDDEN.items() if k != "vocab_size"}, "image_size": 32, "patch_size": 8, "num_labels": 5}
SPEECH = {
    **HIDDEN,
    "conv_dim": (32, 32),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 2,
}
ROWS = [
    ("bert", "Bert", HIDDEN, "BertModel", "tokens", "s", 11),
    ("bert-classes", "Bert", HIDDEN, "BertForSequenceClassification", "tokens", "d", 18),
    ("bert-answers", "Bert", HIDDEN, "BertForQuestionAnswering", "tokens", "s", 17),
    (
        "distilbert",
        "DistilBert",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 100},
        "DistilBertForMaskedLM",
        "tokens",
        "s",
        14,
    ),
    ("roberta", "Roberta", HIDDEN, "RobertaForTokenClassification", "tokens", "s", 13),
    ("electra", "Electra", {**HIDDEN, "embedding_size": 16}, "ElectraModel", "tokens", "d", 19),
    ("albert", "Albert", {**HIDDEN, "embedding_size": 16}, "AlbertModel", "tokens", "s", 12),
    ("mpnet", "MPNet", HIDDEN, "MPNetModel", "tokens", "s", 15),
    (
        "deberta",
        "DebertaV2",
        {**HIDDEN, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
        "DebertaV2Model",
        "tokens",
        "s",
        17,
    ),
    ("xlm-roberta", "XLMRoberta", HIDDEN, "XLMRobertaModel", "tokens", "d", 20),
    ("modernbert", "ModernBert", {**HIDDEN, "pad_token_id": 0}, "ModernBertModel", "tokens", "s", 17),
    ("squeezebert", "SqueezeBert", {**HIDDEN, "embedding_size": 32}, "SqueezeBertModel", "tokens", "s", 16),
    (
        "mobilebert",
        "MobileBert",
        {**HIDDEN, "embedding_size": 32, "true_hidden_size": 32, "intra_bottleneck_size": 32},
        "MobileBertModel",
        "tokens",
        "s",
        14,
    ),
    ("gpt2", "GPT2", GPT, "GPT2LMHeadModel", "tokens", "s", 17),
    ("gpt2-decode", "GPT2", GPT, "GPT2LMHeadModel", "decode", "s", 17),
    ("gpt2-dynamo", "GPT2", GPT, "GPT2LMHeadModel", "tokens", "d", 18),
    ("llama", "Llama", LLAMA, "LlamaForCausalLM", "tokens", "s", 17),
    ("llama-decode", "Llama", LLAMA, "LlamaForCausalLM", "decode", "s", 18),
    ("llama-dynamo", "Llama", LLAMA, "LlamaForCausalLM", "tokens", "d", 18),
    ("mistral", "Mistral", LLAMA, "MistralForCausalLM", "decode", "s", 17),
    ("qwen2", "Qwen2", LLAMA, "Qwen2ForCausalLM", "decode", "s", 20),
    ("qwen3", "Qwen3", {**LLAMA, "head_dim": 8}, "Qwen3ForCausalLM", "tokens", "d", 20),
    ("gemma", "Gemma", {**LLAMA, "head_dim": 8}, "GemmaForCausalLM", "decode", "s", 17),
    ("gemma2", "Gemma2", {**LLAMA, "head_dim": 8}, "Gemma2ForCausalLM", "tokens", "s", 17),
    ("phi", "Phi", LLAMA, "PhiForCausalLM", "decode", "s", 17),
    ("gpt-neox", "GPTNeoX", HIDDEN, "GPTNeoXForCausalLM", "decode", "s", 17),
    (
        "opt",
        "OPT",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 64,
            "vocab_size": 100,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": 32,
        },
        "OPTForCausalLM",
        "decode",
        "s",
        17,
    ),
    (
        "bloom",
        "Bloom",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100},
        "BloomForCausalLM",
        "tokens",
        "s",
        17,
    ),
    ("mixtral", "Mixtral", {**LLAMA, "num_local_experts": 4}, "MixtralForCausalLM", "tokens", "s", 17),
    (
        "mamba",
        "Mamba",
        {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8},
        "MambaForCausalLM",
        "ids",
        "s",
        17,
    ),
    ("t5-encoder", "T5", T5, "T5EncoderModel", "tokens", "s", 12),
    ("t5", "T5", T5, "T5ForConditionalGeneration", "pair", "s", 17),
    ("t5-dynamo", "T5", T5, "T5EncoderModel", "tokens", "d", 18),
    ("bart", "Bart", BART, "BartForConditionalGeneration", "pair", "s", 17),
    ("marian", "Marian", {**BART, "pad_token_id": 1, "decoder_start_token_id": 1}, "MarianMTModel", "pair", "s", 16),
    ("pegasus", "Pegasus", BART, "PegasusForConditionalGeneration", "pair", "s", 15),
    ("m2m100", "M2M100", BART, "M2M100ForConditionalGeneration", "pair", "s", 17),
    ("vit", "ViT", VIT, "ViTForImageClassification", "image", "s", 13),
    ("deit", "DeiT", VIT, "DeiTForImageClassification", "image", "d", 18),
    ("beit", "Beit", VIT, "BeitForImageClassification", "image", "s", 17),
    ("dinov2", "Dinov2", VIT, "Dinov2Model", "image", "s", 17),
    (
        "swin",
        "Swin",
        {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "image_size": 32, "patch_size": 4, "window_size": 4},
        "SwinModel",
        "image",
        "s",
        17,
    ),
    (
        "segformer",
        "Segformer",
        {
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 32,
        },
        "SegformerForSemanticSegmentation",
        "image",
        "s",
        17,
    ),
    ("yolos", "Yolos", {**VIT, "image_size": [32, 32]}, "YolosForObjectDetection", "image", "s", 17),
    (
        "dpt",
        "DPT",
        {
            **VIT,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 8, 8],
            "fusion_hidden_size": 8,
            "num_hidden_layers": 4,
            "is_hybrid": False,
        },
        "DPTForDepthEstimation",
        "image",
        "s",
        17,
    ),
    (
        "mobilevit",
        "MobileViT",
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 8, 16, 16, 16, 32]},
        "MobileViTForImageClassification",
        "image64",
        "s",
        17,
    ),
    (
        "convnextv2",
        "ConvNextV2",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
        "ConvNextV2Model",
        "image",
        "s",
        17,
    ),
    ("wav2vec2", "Wav2Vec2", SPEECH, "Wav2Vec2ForCTC", "audio", "s", 17),
    ("hubert", "Hubert", SPEECH, "HubertModel", "audio", "s", 14),
    ("wavlm", "WavLM", SPEECH, "WavLMModel", "audio", "s", 17),
    ("wav2vec2-dynamo", "Wav2Vec2", SPEECH, "Wav2Vec2ForCTC", "audio", "d", 18),
    (
        "ast",
        "AST",
        {**{k: v for k, v in HIDDEN.items() if k != "vocab_size"}, "num_mel_bins": 32, "max_length": 64},
        "ASTModel",
        "ast",
        "s",
        17,
    ),
    (
        "whisper",
        "Whisper",
        {
            **BART,
            "num_mel_bins": 16,
            "max_source_positions": 50,
            "max_target_positions": 32,
            "decoder_start_token_id": 0,
            "pad_token_id": 1,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        "WhisperForConditionalGeneration",
        "features",
        "s",
        17,
    ),
    (
        "clip",
        "CLIP",
        {"text_config": {**HIDDEN, "max_position_embeddings": 32, "eos_token_id": 2}, "vision_config": VIT},
        "CLIPModel",
        "clip",
        "s",
        17,
    ),
]


class Head(torch.nn.Module):
    """Named inputs in a row, tensors out."""

    def __init__(self, net, names, layers):
        super().__init__()
        self.net, self.names, self.layers = net, names, layers

    def forward(self, *tensors):
        given = dict(zip(self.names, tensors))
        if self.layers:
            flat = tensors[len(self.names) :]
            cache = transformers.DynamicCache()
            for i in range(self.layers):
                cache.update(flat[2 * i], flat[2 * i + 1], i)
            given["past_key_values"] = cache
        result = self.net(**given, **({"use_cache": bool(self.layers)} if self.layers or self.causal() else {}))
        if torch.is_tensor(result):
            return result
        outputs = [x for key, x in result.items() if torch.is_tensor(x)]
        if self.layers:
            for layer in result["past_key_values"].layers:
                outputs += [layer.keys, layer.values]
        return tuple(outputs)

    def causal(self):
        return getattr(self.net.config, "use_cache", None) is not None


def drawn(shape, seed, high=None):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, high, shape, generator=generator) if high else torch.randn(shape, generator=generator)


def words(b, n, i):
    return drawn((b, n), i, 99), {0: "batch", 1: "length"}


def ones(b, n):
    return torch.ones(b, n, dtype=torch.int64), {0: "batch", 1: "length"}


def square(b, i, channels=3, side=32):
    return drawn((b, channels, side, side), i), {0: "batch"}


def corners(b, n, i):
    """Of words on a page, in thousandths: left, top, right, bottom."""
    at = drawn((b, n, 2), i, 500)
    return torch.cat([at, at + drawn((b, n, 2), i + 9, 400)], -1), {0: "batch", 1: "length"}


def past_and_future(b, i):
    def row(shape, seed):
        return drawn(shape, seed), {0: "batch"}

    return {
        "past_values": row((b, 18), i),
        "past_time_features": row((b, 18, 1), i + 10),
        "past_observed_mask": (torch.ones(b, 18), {0: "batch"}),
        "future_values": row((b, 4), i + 20),
        "future_time_features": row((b, 4, 1), i + 30),
    }


# Inputs that one family or two take: of batch, length and size.
OTHERS = {
    "samples": lambda b, n, i: {"input_values": (drawn((b, 1, 160 * n), i), {0: "batch", 2: "samples"})},
    "frames": lambda b, n, i: {
        "input_features": (drawn((b, 4 * n, 16), i), {0: "batch", 1: "frames"}),
        "decoder_input_ids": (drawn((b, 4 + i), 9, 99), {0: "batch", 1: "written"}),
    },
    "inputs": lambda b, n, i: {"inputs": words(b, n, i)},
    "video": lambda b, n, i: {"pixel_values": (drawn((b, 4, 3, 32, 32), i), {0: "batch"})},
    "frames-of-video": lambda b, n, i: {"pixel_values_videos": (drawn((b, 4, 3, 32, 32), i), {0: "batch"})},
    "spectrogram": lambda b, n, i: {"spectrogram": (drawn((b, n, 8), i), {0: "batch", 1: "frames"})},
    "choices": lambda b, n, i: {"input_ids": (drawn((b, 3, n), i, 99), {0: "batch", 1: "choices", 2: "length"})},
    "table": lambda b, n, i: {
        "input_ids": words(b, n, i),
        "attention_mask": ones(b, n),
        "token_type_ids": (drawn((b, n, 7), i, 4) // 4, {0: "batch", 1: "length"}),
    },
    "page": lambda b, n, i: {"input_ids": words(b, n, i), "bbox": tuple(corners(b, n, i)), "attention_mask": ones(b, n)},
    "floats-page": lambda b, n, i: {
        "input_ids": words(b, n, i),
        "bbox": (corners(b, n, i)[0] / 1000.0, {0: "batch", 1: "length"}),
        "attention_mask": ones(b, n),
    },
    "spoken": lambda b, n, i: {
        "input_features": (drawn((b, n, 32), i), {0: "batch", 1: "frames"}),
        "decoder_input_ids": (drawn((b, 4 + i), 9, 99), {0: "batch", 1: "written"}),
    },
    "noised": lambda b, n, i: {"pixel_values": square(b, i), "noise": (drawn((b, 16), i + 5), {0: "batch"})},
    "matte": lambda b, n, i: {"pixel_values": square(b, i, 4)},
    "patches": lambda b, n, i: {
        "pixel_values": (drawn((b, 16, 192), i), {0: "batch"}),
        "pixel_attention_mask": (torch.ones(b, 16, dtype=torch.int64), {0: "batch"}),
        "spatial_shapes": (torch.tensor([[4, 4]] * b), {0: "batch"}),
    },
    "seen": lambda b, n, i: {
        "input_ids": words(b, n, i),
        "attention_mask": ones(b, n),
        "pixel_values": square(b, i),
        "pixel_mask": (torch.ones(b, 32, 32, dtype=torch.int64), {0: "batch"}),
    },
    "seen-plain": lambda b, n, i: {"input_ids": words(b, n, i), "pixel_values": square(b, i), "attention_mask": ones(b, n)},
    "regions": lambda b, n, i: {
        "input_ids": words(b, n, i),
        "visual_feats": (drawn((b, 5, 16), i), {0: "batch"}),
        "visual_pos": (drawn((b, 5, 4), i + 3), {0: "batch"}),
    },
    "mel-frames": lambda b, n, i: {"input_features": (drawn((b, 4 * n, 16), i), {0: "batch", 1: "frames"})},
    "speech": lambda b, n, i: {
        "input_values": (drawn((b, 1000 + 100 * n), i), {0: "batch", 1: "samples"}),
        "decoder_input_ids": words(b, 4, i),
    },
    "mel-noise": lambda b, n, i: {
        "input_features": (drawn((b, n, 8), i), {0: "batch", 1: "frames"}),
        "noise_sequence": (drawn((b, n, 8), i + 7), {0: "batch", 1: "frames"}),
    },
    "mel-image": lambda b, n, i: {"input_features": (drawn((b, 1, 256, 16), i), {0: "batch"})},
    "series": lambda b, n, i: past_and_future(b, i),
    "past": lambda b, n, i: {"past_values": (drawn((b, 32, 2), i), {0: "batch"})},
    "padded-series": lambda b, n, i: {
        "past_values": (drawn((b, 32), i), {0: "batch"}),
        "past_values_padding": (torch.zeros(b, 32, dtype=torch.int64), {0: "batch"}),
        "freq": (torch.zeros(b, 1, dtype=torch.int64), {0: "batch"}),
    },
    "states": lambda b, n, i: {
        "states": (drawn((b, n, 6), i), {0: "batch", 1: "length"}),
        "actions": (drawn((b, n, 2), i + 1), {0: "batch", 1: "length"}),
        "returns_to_go": (drawn((b, n, 1), i + 2), {0: "batch", 1: "length"}),
        "timesteps": (torch.arange(n).repeat(b, 1), {0: "batch", 1: "length"}),
        "attention_mask": ones(b, n),
    },
}


def inputs_of(kind, config, size):
    """Names, axes and the tensors of one of three sizes."""
    b, n = ((2, 7), (1, 12), (3, 5))[size]
    axes, text = {0: "batch", 1: "length"}, drawn((b, n), size, 99)
    mask = torch.ones(b, n, dtype=torch.int64)
    if kind == "ids":
        return {"input_ids": (text, axes)}
    if kind == "tokens":
        mask[-1, -2:] = 0 if b > 1 else 1
        return {"input_ids": (text, axes), "attention_mask": (mask, axes)}
    if kind == "pair":
        return {
            "input_ids": (text, axes),
            "attention_mask": (mask, axes),
            "decoder_input_ids": (drawn((b, 4 + size), 9, 99), {0: "batch", 1: "written"}),
        }
    if kind in ("image", "image64"):
        side = 64 if kind == "image64" else 32
        return {"pixel_values": (drawn((b, 3, side, side), size), {0: "batch"})}
    if kind in OTHERS:
        return OTHERS[kind](b, n, size)
    if kind == "audio":
        return {"input_values": (drawn((b, 400 + 60 * n), size), {0: "batch", 1: "samples"})}
    if kind == "ast":
        return {"input_values": (drawn((b, 64, 32), size), {0: "batch"})}
    if kind == "features":
        return {
            "input_features": (drawn((b, 16, 100), size), {0: "batch"}),
            "decoder_input_ids": (text, {0: "batch", 1: "written"}),
        }
    if kind == "clip":
        return {
            "input_ids": (text, {0: "texts", 1: "length"}),
            "attention_mask": (mask, {0: "texts", 1: "length"}),
            "pixel_values": (drawn((b + 1, 3, 32, 32), size), {0: "images"}),
        }
    return decode_inputs(config, size)


def decode_inputs(config, size):
    b, past = ((2, 6), (1, 11), (3, 4))[size]
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    wide = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    result = {
        "input_ids": (drawn((b, 1), size, 99), {0: "batch"}),
        "attention_mask": (torch.ones(b, past + 1, dtype=torch.int64), {0: "batch", 1: "total"}),
    }
    for i in range(config.num_hidden_layers):
        for j, what in enumerate(("key", "value")):
            result["past_%s_%d" % (what, i)] = (drawn((b, heads, past, wide), 10 * i + j), {0: "batch", 2: "past"})
    return result


def make_all(out, wanted, rows):
    for row in rows:
        if not wanted(row[0]):
            continue
        try:
            make(out, *row)
        except Exception as error:
            why = str(error).replace("\n", " ")[:200]
            print("%-44s cannot be exported: %s: %s" % (row[0], type(error).__name__, why), flush=True)


def collect(out, wanted, _cache):
    make_all(out, wanted, ROWS)


def make(out, name, configuration, options, head, kind, exporter, opset):
    torch.manual_seed(0)
    config = getattr(transformers, configuration + "Config")(**options)
    config._attn_implementation = "eager" if opset < 14 else "sdpa"
    try:
        net = getattr(transformers, head)(config).eval()
    except ValueError:
        config._attn_implementation = "eager"
        net = getattr(transformers, head)(config).eval()
    first = inputs_of(kind, config, 0)
    plain = [x for x in first if kind != "decode" or not x.startswith("past_")]
    module = Head(net, plain, config.num_hidden_layers if kind == "decode" else 0).eval()
    axes = {key: value[1] for key, value in first.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        case.exported(module, tuple(x for x, _ in first.values()), path, exporter == "d", opset, list(first), axes=axes)
        feeds = [{key: x.numpy() for key, (x, _) in inputs_of(kind, config, size).items()} for size in range(3)]
        case.write(out, "text-%s-%s%d" % (name, exporter, opset), path, feeds)
