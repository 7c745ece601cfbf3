"""Options that scripts written for ONNX Runtime set. What decides here is intra_op_num_threads; dlc compiles every model to the full."""

from __future__ import annotations

import difflib
import enum
import threading
from typing import Any

from ._bindings import ffi
from ._errors import UnsupportedError, UsageError, error_of
from ._library import compiler, runtime, text


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Options:
    """Options under another name than those there are would be lost silently."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            raise AttributeError(self._unknown(name)) from None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, [row for row in dir(type(self)) if not row.startswith("_")], 1)
        return f"{type(self).__name__} has no {name}" + (f"; {near[0]} is near it" if near else way_out(name))


class SessionOptions(_Options):
    """intra_op_num_threads: threads of a run; 0: all cores. enable_profiling: see InferenceSession.end_profiling. The rest is taken and
    changes nothing: overrides of free dimensions too, since an executable serves every size (`shapes` of InferenceSession fixes them)."""

    __slots__ = ("intra_op_num_threads", "inter_op_num_threads", "graph_optimization_level", "execution_mode", "log_severity_level",
                 "logid", "enable_mem_pattern", "enable_cpu_mem_arena", "enable_mem_reuse", "use_deterministic_compute", "enable_profiling",
                 "profile_file_prefix", "log_verbosity_level", "execution_order", "use_per_session_threads", "optimized_model_filepath",
                 "_entries", "_overrides")

    def __init__(self) -> None:
        self.execution_order = ExecutionOrder.DEFAULT
        self.use_per_session_threads = True
        self.optimized_model_filepath = ""
        self._overrides: dict[str, int] = {}
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.log_severity_level = 2
        self.logid = ""
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = True
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.log_verbosity_level = 0
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return _entry(self._entries, key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self._overrides[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        self._overrides[denotation] = size

    def has_providers(self) -> bool:
        return False

    def register_custom_ops_library(self, path: str) -> None:
        raise UnsupportedError(f"{path}: operators of ONNX Runtime's libraries do not run in dlc; docs/add-an-operator.md has its own")

    def add_initializer(self, name: str, value: Any) -> None:
        raise UnsupportedError(f"initializer '{name}': weights are compiled into the executable; put them into the ModelProto that is given")

    def add_external_initializers(self, names: Any, values: Any) -> None:
        raise UnsupportedError("weights are compiled into the executable; put external ones beside the model's file or into the ModelProto")

    def _check(self) -> None:
        if self.optimized_model_filepath:
            raise UsageError("optimized_model_filepath: dlc optimises no ONNX file; dlc.compile(model, path) writes the executable")


def _entry(entries: dict[str, str], key: str) -> str:
    if key not in entries:
        raise UsageError(f"there is no config entry '{key}'" + (f"; there are {', '.join(entries)}" if entries else ""))
    return entries[key]


# Whether a context is cancelled follows from two sides, its session and the options of its run: they are asked and the context
# is told in one piece. A handler of a signal may end runs while the thread it interrupts holds it.
cancelling = threading.RLock()


def tell_cancelled(slot: Any, session: Any) -> None:
    """With `cancelling` held: the context of a slot learns what holds for it now."""
    runtime.dlcrt_context_cancel(slot.context, session._is_cancelled or (slot.run_options is not None and slot.run_options._terminate))


class RunOptions(_Options):
    """terminate: ends the runs that were given this object, and those that begin. The rest is taken and changes nothing."""

    __slots__ = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "_entries", "_terminate", "_running")

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}
        self._terminate = False
        self._running: list[tuple[Any, Any]] = []  # slots and their sessions

    @property
    def terminate(self) -> bool:
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        with cancelling:
            self._terminate = bool(value)
            for slot, session in self._running:
                tell_cancelled(slot, session)

    def _begin(self, slot: Any, session: Any) -> None:
        with cancelling:
            slot.run_options = self
            self._running.append((slot, session))
            tell_cancelled(slot, session)

    def _end(self, slot: Any, session: Any) -> None:
        with cancelling:
            slot.run_options = None
            self._running.remove((slot, session))
            tell_cancelled(slot, session)

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return _entry(self._entries, key)


def set_default_logger_severity(severity: int) -> None:
    """dlc's notes go to logging.getLogger("dlc"); ONNX Runtime's severities 0 to 4 are its levels."""
    import logging
    logging.getLogger("dlc").setLevel(10 * (severity + 1))


def disable_telemetry_events() -> None:
    """There are none."""


def enable_telemetry_events() -> None:
    """There are none."""


def set_default_logger_verbosity(level: int) -> None:
    """See set_default_logger_severity."""


def set_seed(seed: int) -> None:
    """Nothing of a compiled model is drawn anew: random operators have the seed of their attribute."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Loads the compiler and LLVM into this process, so that each of many models to come is compiled some 15 ms sooner. Libraries
    of CUDA's are none of dlc's: the driver is opened when an executable needs it."""
    why = ffi.new("const char **")
    status = compiler().dlc_preload(why)
    if status:
        raise error_of(status, text(why[0]))


# Names of ONNX Runtime's that dlc has not, and what to do instead.
_WAYS_OUT = {
    **dict.fromkeys(("capi", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "Fail", "NoSuchFile", "NoModel", "NotImplemented",
                     "RuntimeException", "EPFail"), "every failure is a dlc.Error: InvalidError (a ValueError), UnsupportedError, FileError, …"),
    "SparseTensor": "tensors are dense; numpy arrays are taken",
    "LoraAdapter": "merge the adapter into the weights before the model is exported",
    "ModelCompiler": "dlc.compile(model, path) writes the executable",
    "quantization": "`dlc quantize model.onnx --data inputs.npz -o small.onnx` makes an int8 model",
    "training": "dlc runs models and trains none",
    "transformers": "dlc fuses attention and norms by itself, in any ONNX model",
    "tools": "`dlc opt` and `dlc inspect` show what is made of a model",
    "OrtDevice": "InferenceSession(…, device=\"cpu\" or \"cuda:0\") says where; device memory comes through DLPack",
    "OrtMemoryInfo": "memory of inputs and outputs is the caller's: numpy's, or a device's through DLPack",
    "register_execution_provider_library": "a back end outside the tree is a plug-in of the compiler: docs/add-a-target.md",
    "set_global_thread_pool_sizes": "runs under way at once share the cores; DLC_NUM_THREADS limits them",
    "create_and_register_allocator": "a context has one block of memory, and no run allocates",
    "get_tuning_results": "`dlc compile --tune` measures schedules and keeps the fastest",
    "set_tuning_results": "`dlc compile --tuned FILE` takes schedules that were measured",
    "run_with_ortvaluevector": "run_with_ort_values takes names with their OrtValue, as a mapping, and gives a list of OrtValue",
    "ort_value_from_sparse_tensor": "tensors are dense; numpy arrays are taken",
    "enable_ort_custom_ops": "operators of ONNX Runtime's libraries do not run in dlc; docs/add-an-operator.md has its own",
    "create_ortvalue_from_shape_and_type": "OrtValue.ortvalue_from_shape_and_type makes one",
}


class WaysOut:
    """For `from dlc import SparseTensor` and `import dlc.quantization` Python looks for a module of that name; found by nobody else, it
    is refused with the way out. What __getattr__ of a module says would be lost there."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        package, _, rest = name.partition(".")
        if package == "dlc" and rest in _WAYS_OUT:
            raise ImportError(f"dlc has no {rest}{way_out(rest)}", name=name)


def way_out(name: str) -> str:
    return f": {_WAYS_OUT[name]}" if name in _WAYS_OUT else "; help(dlc.InferenceSession) lists what there is"
