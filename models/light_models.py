#!/usr/bin/env python3
"""light_models.py OUT_DIR: the nine light_* graphs of the PyPI package onnx as test folders.

Their weights are ConstantOfShape nodes, so the graphs of AlexNet, DenseNet-121, Inception v1 and v2, ResNet-50, ShuffleNet,
SqueezeNet, VGG-19 and ZFNet-512 take a few kilobytes each. The input is arange(n) / n, the expected output ships beside the graph.
OUT_DIR/light_NAME/{model.onnx, data.json, test_data_set_0/{input,output}_0.pb}
A stamp with the package's version makes a second run a no-op.
"""
import argparse
import json
import pathlib
import shutil

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

SOURCE = pathlib.Path(onnx.backend.test.__file__).parent / "data" / "light"
# onnx's own tolerances, and where they cannot hold: SqueezeNet's logits are all equal up to rounding.
TOLERANCE = {"light_densenet121": (2e-3, 1e-7), "light_squeezenet": (1e-3, 1e-5)}


def first_input(graph):
    """The input that is no weight."""
    weights = {i.name for i in graph.initializer}
    return next(i for i in graph.input if i.name not in weights)


def ramp(value_info):
    shape = [d.dim_value for d in value_info.type.tensor_type.shape.dim]
    n = int(np.prod(shape))
    return (np.arange(n).reshape(shape) / n).astype(np.float32)


def write(source, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    graph = onnx.load(source).graph
    info = first_input(graph)
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(ramp(info), info.name).SerializeToString())
    shutil.copyfile(source.with_name(source.stem + "_output_0.pb"), data / "output_0.pb")
    shutil.copyfile(source, folder / "model.onnx")
    rtol, atol = TOLERANCE.get(source.stem, (1e-3, 1e-7))
    (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}) + "\n")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", type=pathlib.Path)
    out = args.parse_args().out
    stamp, wanted = out / "version", f"onnx {onnx.__version__}\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    for source in sorted(SOURCE.glob("light_*.onnx")):
        write(source, out / source.stem)
        print(out / source.stem)
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
