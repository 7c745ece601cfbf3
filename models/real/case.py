"""A real model as a test folder: the model, inputs of up to three sizes, and what ONNX Runtime makes of them.

How far a result may be off: RTOL of it and ATOL of the largest; or twice what ONNX Runtime itself is off by when its optimiser is switched
off, it has one thread and the inputs change by a millionth (a quantised recurrence amplifies a rounding to whole units).

OUT/NAME/{model.onnx, data.json, test_data_set_N/{input,output}_M.pb}, which is what `dlc test OUT` reads.
"""

import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

onnxruntime.set_default_logger_severity(4)
RTOL, ATOL = 1e-3, 2e-4  # ATOL: of the largest element of all outputs


def _session(model, is_plain=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1 if is_plain else 2
    if is_plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _write_tensor(path, value, info):
    if isinstance(value, list):
        if value and isinstance(value[0], dict):  # a map for each row: dlc gives the matrix of their values
            value = [np.array([list(row.values()) for row in value], np.float32)]
        path.write_bytes(numpy_helper.from_list([np.asarray(x) for x in value], info.name).SerializeToString())
        return
    path.write_bytes(numpy_helper.from_array(np.asarray(value), info.name).SerializeToString())


def _largest(outputs):
    floats = [x for x in outputs if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size]
    return max([float(np.nanmax(np.abs(np.where(np.isfinite(x), x, 0)))) for x in floats] or [0.0])


def _run(session, feed):
    """What the model gives, or None and why it takes no such inputs."""
    try:
        return session.run(None, feed), None
    except Exception as error:  # the runtime's own exceptions have no common base
        return None, str(error).replace("\n", " ")[:160]


def _noise(plain, feed, outputs):
    """How far the runtime is off by itself; where that changes a shape, nothing."""
    changed = {
        key: x * np.float32(1 + 1e-6) if isinstance(x, np.ndarray) and x.dtype == np.float32 else x for key, x in feed.items()
    }
    found, why = _run(plain, changed)
    pairs = (
        []
        if why
        else [
            (a, b) for a, b in zip(outputs, found) if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.shape == b.shape
        ]
    )
    return max(
        [float(np.nanmax(np.abs(np.where(np.isfinite(a) & np.isfinite(b), a - b, 0)))) for a, b in pairs if a.size] or [0.0]
    )


def write(out, name, model, feeds):
    """`model` is bytes or a path; `feeds` maps names to arrays, a map for each size. Says how many sizes were kept."""
    folder = pathlib.Path(out) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "model.onnx"
    if isinstance(model, bytes):
        path.write_bytes(model)
    else:
        shutil.copyfile(model, path)
        side = pathlib.Path(str(model) + ".data")
        if side.exists():
            shutil.copyfile(side, folder / side.name)
    try:
        session, plain = _session(str(path)), _session(str(path), is_plain=True)
    except Exception as error:
        shutil.rmtree(folder)
        print("%-44s left out: %s" % (name, str(error).replace("\n", " ")[:160]), flush=True)
        return
    largest, noise, kept = 0.0, 0.0, 0
    for feed in feeds:
        outputs, why = _run(session, feed)
        if why:
            print("%-44s a size is left out: %s" % (name, why), flush=True)
            continue
        data = folder / ("test_data_set_%d" % kept)
        data.mkdir()
        for i, info in enumerate(session.get_inputs()):
            _write_tensor(data / ("input_%d.pb" % i), feed[info.name], info)
        for i, (info, value) in enumerate(zip(session.get_outputs(), outputs)):
            _write_tensor(data / ("output_%d.pb" % i), value, info)
        largest, noise, kept = max(largest, _largest(outputs)), max(noise, _noise(plain, feed, outputs)), kept + 1
    (folder / "data.json").write_text(json.dumps({"rtol": RTOL, "atol": max(ATOL * largest, 2 * noise, 1e-6)}))
    print("%-44s %d sizes" % (name, kept), flush=True)
    if not kept:
        shutil.rmtree(folder)


def with_names(module, inputs):
    """The same with a parameter for each input: the guards that torch.export writes do not find the tensors of a `*tensors`."""
    import torch

    class Named(torch.nn.Module):
        pass

    space, names = {}, ", ".join(inputs)
    exec("def forward(self, %s):\n    return self.module(%s)" % (names, names), space)
    Named.forward = space["forward"]
    named = Named().eval()
    named.module = module
    return named


def exported(module, args, path, dynamo, opset, inputs, outputs=None, axes=None):
    """A torch module as a file. `axes`: {input: {axis: symbol}}."""
    import torch

    options = {"input_names": inputs, "output_names": outputs, "opset_version": opset}
    with torch.no_grad():
        if not dynamo:
            torch.onnx.export(module, args, str(path), dynamo=False, dynamic_axes=axes or None, **options)
            return
        shapes = None
        if axes:
            shapes = tuple({i: torch.export.Dim.AUTO for i in axes.get(name, {})} or None for name in inputs)
        named = with_names(module, inputs)
        program = torch.onnx.export(named, args, dynamo=True, dynamic_shapes=shapes, verbose=False, **options)
        program.save(str(path), external_data=False)


def feed_of(names, args):
    return {name: x.detach().numpy() for name, x in zip(names, args)}
