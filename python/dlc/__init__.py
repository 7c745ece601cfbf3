"""dlc: ahead-of-time compiler for ONNX models.

    import dlc
    session = dlc.InferenceSession("model.onnx")          # as with onnxruntime; compiled at the first start, cached for the next
    logits, = session.run(None, {"image": image})

    dlc.compile("model.onnx", "model.so", target="x86-64-v3")    # one file, for dlc.InferenceSession("model.so") or libdlcrt
"""

from __future__ import annotations

import sys as _sys

from ._compile import Edge, Executable, compile, passes, strategies, targets
from ._errors import (CancelledError, DeviceError, Error, FileError, InternalError, InvalidError, LimitError, MismatchError,
                      UnsupportedError, UsageError)
from ._library import runtime as _runtime
from ._library import text as _text
from ._options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions, disable_telemetry_events,
                       enable_telemetry_events, preload_dlls, set_default_logger_severity, set_default_logger_verbosity, set_seed)
from ._options import WaysOut as _WaysOut
from ._options import way_out as _way_out
from ._session import (InferenceSession, IOBinding, ModelMetadata, NodeArg, OrtValue, counters, get_all_providers, get_available_providers,
                       get_device)

__version__ = _text(_runtime.dlcrt_version())

SessionIOBinding = IOBinding


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return f"dlc {__version__}"


_sys.meta_path.append(_WaysOut)  # behind the finders of what is there


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"dlc has no {name}{_way_out(name)}")


__all__ = [
    "CancelledError", "DeviceError", "Edge", "Error", "Executable", "ExecutionMode", "ExecutionOrder", "FileError",
    "GraphOptimizationLevel", "IOBinding", "InferenceSession", "InternalError", "InvalidError", "LimitError", "MismatchError",
    "ModelMetadata", "NodeArg", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "UnsupportedError",
    "UsageError", "compile", "counters", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers",
    "get_available_providers", "get_build_info", "get_device", "get_version_string", "passes", "preload_dlls",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_seed", "strategies", "targets"]
