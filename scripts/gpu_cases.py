"""The kernels that gpu_check measures by themselves, one row each: gpu_static.py makes an ONNX file of a row, gpu_steps.py runs it
in PyTorch. Every operand is an input, so nothing is carried but code, and the reference is computed on the GPU in float64."""

# name: (operation, shapes of the inputs, attributes)
KERNELS = {
    "matmul_512": ("matmul", [(512, 512), (512, 512)], {}),
    "matmul_1024": ("matmul", [(1024, 1024), (1024, 1024)], {}),
    "matmul_4096": ("matmul", [(4096, 4096), (4096, 4096)], {}),
    "matmul_128x384x1536_bias_gelu": ("linear_gelu", [(128, 384), (384, 1536), (1536,)], {}),
    "matmul_1x2048x1000_bias": ("linear", [(1, 2048), (2048, 1000), (1000,)], {}),
    "matmul_odd_509x1021x127": ("matmul", [(509, 127), (127, 1021)], {}),
    "attention_scores_12x128x128x32": ("matmul", [(12, 128, 32), (12, 32, 128)], {}),
    "conv_3x3_64_56": ("conv_relu", [(1, 64, 56, 56), (64, 64, 3, 3), (64,)], {"pad": 1, "stride": 1, "groups": 1}),
    "conv_3x3_256_14_b32": ("conv_relu", [(32, 256, 14, 14), (256, 256, 3, 3), (256,)], {"pad": 1, "stride": 1, "groups": 1}),
    "conv_1x1_256_64_56": ("conv_relu", [(1, 256, 56, 56), (64, 256, 1, 1), (64,)], {"pad": 0, "stride": 1, "groups": 1}),
    "conv_7x7_3_64_224": ("conv_relu", [(1, 3, 224, 224), (64, 3, 7, 7), (64,)], {"pad": 3, "stride": 2, "groups": 1}),
    "conv_depthwise_96_112": ("conv_relu", [(1, 96, 112, 112), (96, 1, 3, 3), (96,)], {"pad": 1, "stride": 2, "groups": 96}),
    "softmax_4096x1024": ("softmax", [(4096, 1024)], {}),
    "softmax_1536x128": ("softmax", [(1536, 128)], {}),
    "layer_norm_4096x768": ("layer_norm", [(4096, 768), (768,), (768,)], {}),
    "add_gelu_16m": ("add_gelu", [(4096, 4096), (4096, 4096)], {}),
    "transpose_4096": ("transpose", [(4096, 4096)], {}),
    "sum_rows_4096": ("sum_rows", [(4096, 4096)], {}),
    "sum_columns_4096": ("sum_columns", [(4096, 4096)], {}),
    "max_pool_64_112": ("max_pool", [(8, 64, 112, 112)], {}),
    "attention_12x128x32": ("attention", [(12, 128, 32)] * 3, {}),
    "attention_96x197x64": ("attention", [(96, 197, 64)] * 3, {}),
    "matmul_1024_f16": ("matmul", [(1024, 1024), (1024, 1024)], {"dtype": "f16"}),
    "matmul_4096_f16": ("matmul", [(4096, 4096), (4096, 4096)], {"dtype": "f16"}),
    "attention_96x197x64_f16": ("attention", [(96, 197, 64)] * 3, {"dtype": "f16"}),
    "softmax_4096x1024_f16": ("softmax", [(4096, 1024)], {"dtype": "f16"}),
}
# what a profiler looks at
PROFILED = ("matmul_512", "matmul_1024", "matmul_4096", "matmul_128x384x1536_bias_gelu", "matmul_1x2048x1000_bias", "conv_3x3_64_56",
            "conv_3x3_256_14_b32", "conv_1x1_256_64_56", "conv_depthwise_96_112", "softmax_4096x1024", "layer_norm_4096x768",
            "transpose_4096", "sum_columns_4096", "attention_96x197x64", "matmul_4096_f16")
# for a quick look
FEW_KERNELS = ("matmul_512", "conv_3x3_64_56", "softmax_1536x128")


def work(row):
    """FLOP and bytes of one run, counting every operand once."""
    kind, shapes, attributes = row
    size = lambda dims: 1 if not dims else dims[0] * size(dims[1:])
    each = 2 if attributes.get("dtype") == "f16" else 4
    read = sum(size(s) for s in shapes)
    if kind in ("matmul", "linear", "linear_gelu"):
        out = size(shapes[0][:-1]) * shapes[1][-1]
        return 2 * out * shapes[0][-1], each * (read + out)
    if kind == "conv_relu":
        n, _, h, w = shapes[0]
        oc, ic, kh, kw = shapes[1]
        at = lambda d, k: (d + 2 * attributes["pad"] - k) // attributes["stride"] + 1
        out = n * oc * at(h, kh) * at(w, kw)
        return 2 * out * ic * kh * kw, each * (read + out)
    first = size(shapes[0])
    if kind == "attention":
        return 4 * first * shapes[0][1], each * (read + first)
    out = {"sum_rows": shapes[0][0], "sum_columns": shapes[0][-1], "max_pool": first // 4}.get(kind, first)
    return 0, each * (read + out)
