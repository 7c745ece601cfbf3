#!/usr/bin/env python3
"""make_node_tests.py OUT_DIR: writes the node tests of the PyPI package onnx as test folders.

They come out of onnx.backend.test.loader: OUT_DIR/test_NAME/{model.onnx, data.json, test_data_set_I/{input,output}_J.pb}.
A stamp with the package's version makes a second run a no-op.
"""
import argparse
import json
import pathlib
import shutil

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_node_model_tests


def to_bytes(value, info):
    """One input or output as the proto its declared type asks for; None (an absent optional) is an empty file."""
    if value is None:
        return b""
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name).SerializeToString()
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name).SerializeToString()
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name).SerializeToString()
    if isinstance(value, onnx.TensorProto):
        value = onnx.TensorProto.FromString(value.SerializeToString())
        value.name = info.name
        return value.SerializeToString()
    return numpy_helper.from_array(value, info.name).SerializeToString()


def write(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}) + "\n")
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir()
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for j, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{j}.pb").write_bytes(to_bytes(value, info))


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", type=pathlib.Path)
    out = args.parse_args().out
    stamp = out / "version"
    wanted = f"onnx {onnx.__version__} format 1\n"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if out.exists():
        shutil.rmtree(out)
    cases = load_node_model_tests()
    for case in cases:
        write(case, out / case.name)
    stamp.write_text(wanted)
    print(f"{len(cases)} node tests in {out}")


if __name__ == "__main__":
    main()
