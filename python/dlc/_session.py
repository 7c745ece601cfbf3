"""InferenceSession, with ONNX Runtime's names.

A context of the runtime belongs to one thread at a time, so a session keeps a stack of them: a run takes one, or makes one
when all are taken, and puts it back. Inputs and outputs are numpy's own memory; nothing is copied unless it has to be
(strides, or an output whose shape only the run finds out).

Python's lock is given away while a model runs, except for runs so short that taking turns costs more than waiting.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns, time_ns
from typing import Any, NamedTuple

import numpy as np

from . import _dlpack, _options, _starts, _strings
from ._bindings import ffi
from ._compile import Executable, Options, Source, Strategy, compile, find_in_cache, open_executable
from ._dtypes import IS_VIEWED, NAMES, NUMPY, OF_NUMPY, OF_ONNX, STR, number_of, onnx_name
from ._errors import DeviceError, Error, FileError, InvalidError, UnsupportedError, UsageError
from ._library import check, runtime, text
from ._options import RunOptions, SessionOptions

_from_buffer = ffi.from_buffer
_ndarray = np.ndarray
_VIEWED = frozenset(dtype for dtype, viewed in zip(NUMPY, IS_VIEWED) if viewed)
_UNSIGNED = {1: np.uint8, 2: np.uint16}
_SHORT_NS = 20000  # waking a thread takes about as long
_PAGE_BYTES, _LARGE_BYTES = 4096, 1 << 16


class NodeArg(NamedTuple):
    """An input or output: `type` as ONNX Runtime spells it, `shape` of numbers, names of symbols and None."""

    name: str
    type: str
    shape: list[int | str | None]
    dtype: Any
    text: str


class ModelMetadata(NamedTuple):
    """What the ONNX file says of itself, with ONNX Runtime's names; and who made the executable of it, for what."""

    graph_name: str
    producer_name: str
    producer_version: str
    domain: str
    version: int
    description: str
    graph_description: str
    custom_metadata_map: dict[str, str]
    compiler: str
    target: str
    device: str
    kernels: int
    constants_bytes: int


def _describe(call: Any, handle: Any, count: int) -> list[NodeArg]:
    info, result = ffi.new("dlcrt_tensor_info *"), []
    for i in range(count):
        call(handle, i, info)
        dims: list[int | str | None] = [
            info.dims[d] if info.dims[d] >= 0 else text(info.dim_names[d]) or None for d in range(info.rank)]
        result.append(NodeArg(text(info.name), onnx_name(info.dtype), dims, NUMPY[info.dtype], text(info.type)))
    return result


def _buffer(array: Any) -> Any:
    """numpy knows no buffers of the types that ml_dtypes adds."""
    return _from_buffer(array.view(_UNSIGNED[array.dtype.itemsize]) if array.dtype in _VIEWED else array)


def _empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """As np.empty, but what is large begins in the middle of a page (passes/plan_memory.c says why); numpy's own begins 16 bytes behind one."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE_BYTES or dtype.kind == "O":
        return np.empty(shape, dtype)
    room = np.empty(size + _PAGE_BYTES, np.uint8)
    begin = (_PAGE_BYTES // 2 - room.ctypes.data) % _PAGE_BYTES
    return room[begin : begin + size].view(dtype).reshape(shape)


@functools.cache
def _run_holding() -> Any:
    """dlcrt_context_run as a function that keeps Python's lock; cffi's gives it away."""
    address = int(ffi.cast("uintptr_t", ffi.addressof(runtime, "dlcrt_context_run")))
    return ctypes.PYFUNCTYPE(ctypes.c_int)(address)


def _address(pointer: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(int(ffi.cast("uintptr_t", pointer)))


class _Slot:
    """A context and the tensors of its calls, filled in anew only where something changed."""

    def __init__(self, session: InferenceSession) -> None:
        pointer = ffi.new("dlcrt_context **")
        check(runtime.dlcrt_context_create(session._executable, session._context_options, pointer))
        self.context = ffi.gc(pointer[0], runtime.dlcrt_context_destroy)
        self.run_options: RunOptions | None = None  # of the run under way
        with _options.cancelling:
            session._made.append(self)
            _options.tell_cancelled(self, session)
        self.ninputs, self.noutputs = len(session._inputs), len(session._outputs)
        self.inputs = ffi.new("dlcrt_tensor[]", self.ninputs)
        self.outputs = ffi.new("dlcrt_tensor[]", self.noutputs)
        # a list of the elements: indexing an array of structures makes a new object each time
        self.rows = [(session._inputs[i].name, self.inputs[i], i) for i in range(self.ninputs)]
        self.out_rows = [self.outputs[i] for i in range(self.noutputs)]
        self.seen: list[Any] = [None] * self.ninputs  # dtype, shape
        self.shapes: list[Any] = [None] * self.noutputs
        self.dtypes = [output.dtype for output in session._outputs]
        self.viewed = [dtype in _VIEWED for dtype in self.dtypes]
        self.viewed_inputs = [False] * self.ninputs  # of the arrays that were seen
        self.input_dtypes = [row.dtype for row in session._inputs]
        self.input_texts = [row.text for row in session._inputs]
        self.is_text = [row.dtype == NUMPY[STR] for row in session._inputs]
        self.text_inputs = [False] * self.ninputs  # of the arrays that were seen
        self.is_sized = False
        self.bound: Any = None  # what lives as long as the tensors are bound to it
        self.on_device = [0] * self.ninputs
        self.is_short = False  # as the last run was
        self.arguments = (self.context, self.inputs, self.ninputs, self.outputs, self.noutputs)
        self.holding = (_address(self.context), _address(self.inputs), ctypes.c_uint32(self.ninputs), _address(self.outputs),
                        ctypes.c_uint32(self.noutputs))
        self.run_holding, self.can_hold = _run_holding(), session._is_host

    def call(self) -> int:
        begin = perf_counter_ns()
        if self.is_short:
            status = self.run_holding(*self.holding)
        else:
            status = runtime.dlcrt_context_run(*self.arguments)
        self.is_short = perf_counter_ns() - begin < _SHORT_NS and self.can_hold
        return int(status)

    def set_type(self, i: int, tensor: Any, dtype: int, shape: tuple[int, ...], name: str) -> None:
        if len(shape) > 8:
            raise InvalidError(f"input '{name}' has {len(shape)} dimensions; at most 8 are possible")
        tensor.dtype, tensor.rank = dtype, len(shape)
        tensor.dims[0:len(shape)] = shape
        self.seen[i] = (dtype, shape)
        self.is_sized = False

    def set_view(self, i: int, tensor: Any, view: _dlpack.View, name: str) -> None:
        if self.seen[i] != (view.dtype, view.shape):
            self.set_type(i, tensor, view.dtype, view.shape, name)
        tensor.data, tensor.on_device = _dlpack.as_void(view.pointer), view.on_device

    def set_input(self, i: int, tensor: Any, value: Any, name: str) -> Any:
        """Returns what must live until the run is over."""
        if type(value) is not _ndarray:
            value = _as_input(value, self.input_dtypes[i], name, self.input_texts[i])
            if type(value) is _dlpack.View:
                self.set_view(i, tensor, value, name)
                return value
        seen = self.seen[i]
        if seen is None or seen[1] != value.shape or value.dtype != seen[0]:
            dtype = STR if self.is_text[i] and value.dtype.kind in "OUST" else OF_NUMPY.get(value.dtype)
            if dtype is None:
                raise InvalidError(f"input '{name}' is of numpy's type {value.dtype}, where {self.input_texts[i]} is wanted")
            self.set_type(i, tensor, dtype, value.shape, name)
            self.seen[i] = (value.dtype, value.shape)
            self.viewed_inputs[i] = value.dtype in _VIEWED
            self.text_inputs[i] = dtype == STR
        if self.text_inputs[i]:
            kept = _strings.pointers(value, name)
            tensor.data, tensor.on_device = kept[0], 0
            return kept
        if not value.flags.c_contiguous:
            value = np.ascontiguousarray(value)
        tensor.data = kept = _buffer(value) if self.viewed_inputs[i] else _from_buffer(value)
        tensor.on_device = 0
        return kept

    def size(self) -> None:
        """The outputs' shapes for the inputs' as they are set; None: only a run finds out."""
        check(runtime.dlcrt_context_prepare(self.context, self.inputs, self.ninputs))
        info = ffi.new("dlcrt_tensor_info *")
        for i in range(self.noutputs):
            runtime.dlcrt_context_output(self.context, i, info)
            dims = tuple(info.dims[0:info.rank])
            self.shapes[i] = None if info.dtype == STR or any(dim < 0 for dim in dims) else dims
        self.is_sized = True

    def take_output(self, i: int) -> Any:
        """A copy of an output in the context's memory, which its next run overwrites."""
        tensor = self.out_rows[i]
        shape = tuple(tensor.dims[0:tensor.rank])
        if tensor.dtype == STR:
            return _strings.array(tensor.data, shape)
        array = np.empty(shape, self.dtypes[i])
        if array.nbytes:
            ffi.memmove(_buffer(array), tensor.data, array.nbytes)
        return array

    def bind(self, feed: Mapping[str, Any], wanted: Sequence[int], out: Sequence[Any]) -> bool:
        """Sets the tensors for many calls; False where an output's shape is known to a run alone."""
        kept = [self.set_input(i, tensor, feed[name], name) for name, tensor, i in self.rows]
        if not self.is_sized:
            self.size()
        if any(self.shapes[i] is None for i in wanted):
            return False
        for tensor in self.out_rows:
            tensor.data, tensor.size_bytes, tensor.on_device = ffi.NULL, 0, 0
        for place, i in enumerate(wanted):
            self.set_output(i, out[place], kept)
        self.bound = kept
        return True

    def run(self, feed: Mapping[str, Any], wanted: Sequence[int], out: Sequence[Any] | None) -> list[Any]:
        kept = [self.set_input(i, tensor, feed[name], name) for name, tensor, i in self.rows]
        if not self.is_sized:
            self.size()
        results: list[Any] = [None] * self.noutputs
        if len(wanted) < self.noutputs:
            for tensor in self.out_rows:
                tensor.data, tensor.size_bytes, tensor.on_device = ffi.NULL, 0, 0
        for place, i in enumerate(wanted):
            results[i] = self.set_output(i, out[place] if out is not None else None, kept)
        status = self.call()
        if status:
            check(status)
        return [self.take_output(i) if results[i] is None else results[i] for i in wanted]

    def set_output(self, i: int, given: Any, kept: list[Any]) -> Any:
        tensor = self.out_rows[i]
        if given is not None and self.dtypes[i].kind == "O":
            raise UsageError("an output of strings is an array of its own: out has None in its place")
        shape = self.shapes[i]
        if given is not None:
            return self.set_given(i, tensor, given, shape, kept)
        tensor.on_device = 0
        if shape is None:
            tensor.data, tensor.size_bytes = ffi.NULL, 0
            return None
        array = _empty(shape, self.dtypes[i])
        kept.append(_buffer(array) if self.viewed[i] else _from_buffer(array))
        tensor.data, tensor.size_bytes = kept[-1], array.nbytes
        return array

    def refuse_given(self, i: int, dtype: Any, shape: Any, wanted: Any) -> None:
        found = f"{dtype}{list(shape)}"
        raise InvalidError(f"out for output {i} is {found}, where {self.dtypes[i]}{list(wanted) if wanted is not None else ''} is wanted")

    def set_given(self, i: int, tensor: Any, given: Any, wanted: Any, kept: list[Any]) -> Any:
        if isinstance(given, _ndarray):
            if not given.flags.c_contiguous or not given.flags.writeable:
                raise UsageError("out is written in place: a writable array without strides is wanted")
            if given.dtype != self.dtypes[i] or (wanted is not None and given.shape != wanted):
                self.refuse_given(i, given.dtype, given.shape, wanted)
            kept.append(_buffer(given))
            tensor.data, tensor.size_bytes, tensor.on_device = kept[-1], given.nbytes, 0
            return given
        view = given if type(given) is _dlpack.View else _dlpack.view(given)
        if NUMPY[view.dtype] != self.dtypes[i] or (wanted is not None and view.shape != wanted):
            self.refuse_given(i, NUMPY[view.dtype], view.shape, wanted)
        kept.append(view)
        tensor.data, tensor.size_bytes, tensor.on_device = _dlpack.as_void(view.pointer), view.size_bytes, view.on_device
        return given


def _as_input(value: Any, dtype: Any, name: str, wanted: str) -> Any:
    """Lists and numbers of Python's become what the model wants, where that loses no more than digits."""
    if isinstance(value, OrtValue):
        return value.numpy()
    if isinstance(value, _dlpack.View):
        return value
    if isinstance(value, _ndarray):
        return value.view(_ndarray)
    if hasattr(value, "__dlpack__"):
        return _dlpack.view(value)
    if value is None:
        raise InvalidError(f"input '{name}' is None, where {wanted} is wanted")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidError(f"input '{name}': numpy makes no array of it, where {wanted} is wanted: {error}") from None
    is_pythons = isinstance(value, (list, tuple, int, float)) and dtype.kind in "biuf"
    if is_pythons and array.size and array.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(value, dtype) if limits.min <= int(array.min()) and int(array.max()) <= limits.max else array
    return array.astype(dtype) if is_pythons and np.can_cast(array.dtype, dtype, "same_kind") else array


class OrtValue:
    """A tensor with ONNX Runtime's names; numpy's memory."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        if device_type != "cpu":
            raise UsageError(f"device_type is {device_type!r}: memory of a device comes through DLPack")
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        return OrtValue.ortvalue_from_numpy(_empty(tuple(shape), NUMPY[number_of(element_type)]), device_type)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array: Any, onnx_element_type: int) -> OrtValue:
        """The array's memory as elements of a type by its number in TensorProto.DataType: for those that numpy lacks."""
        array = np.asarray(array)
        number = OF_ONNX.get(onnx_element_type)
        if number is None:
            raise UnsupportedError(f"{onnx_element_type} is no element type of TensorProto.DataType that dlc has")
        if number == STR and array.dtype.kind in "OUST" or array.dtype == NUMPY[number]:
            return OrtValue(array)
        if number != STR and NUMPY[number] not in OF_NUMPY:
            raise UnsupportedError(f"numpy has no {NAMES[number]} (ONNX's type {onnx_element_type}) of its own; `pip install ml_dtypes` adds it")
        if number == STR or array.dtype.kind in "OUST" or not array.dtype.isnative or array.dtype.itemsize != NUMPY[number].itemsize:
            wanted = "strings" if number == STR else f"{NUMPY[number]}, of {NUMPY[number].itemsize} bytes an element"
            raise UnsupportedError(f"memory of {array.dtype}, of {array.dtype.itemsize} bytes an element, cannot be seen as {wanted} (ONNX's "
                                   f"type {onnx_element_type}); astype makes a converted copy")
        return OrtValue(array.view(NUMPY[number]))

    @staticmethod
    def from_dlpack(value: Any, is_bool_tensor: bool = False) -> OrtValue:
        array = np.from_dlpack(value)
        return OrtValue(array.view(bool) if is_bool_tensor else array)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def update_inplace(self, array: Any) -> None:
        """Copies values into this tensor's memory, with the conversions that numpy calls same_kind: none loses more than digits."""
        array = np.asarray(array)
        if array.shape != self._array.shape:
            raise InvalidError(f"the new values have shape {array.shape}; the tensor has {self._array.shape}")
        if not np.can_cast(array.dtype, self._array.dtype, "same_kind"):
            raise InvalidError(f"the new values are of {array.dtype}; the tensor is of {self._array.dtype}, which may not hold them; "
                               f"array.astype(\"{self._array.dtype}\") converts them")
        self._array[...] = array

    def tensor_size_in_bytes(self) -> int:
        return int(self._array.nbytes)

    def numpy(self) -> Any:
        return self._array

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return onnx_name(number_of(self._array.dtype))

    def element_type(self) -> Any:
        return self._array.dtype

    def device_name(self) -> str:
        return "cpu"

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def is_tensor(self) -> bool:
        return True

    def is_tensor_sequence(self) -> bool:
        return False

    def is_sparse_tensor(self) -> bool:
        return False

    def has_value(self) -> bool:
        return True

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._array if dtype is None else self._array.astype(dtype)


class IOBinding:
    """Inputs and outputs that stay bound over many runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._results: list[Any] = []
        self._ready: list[_Slot] = []  # one where all is bound to memory, and no run has it

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self._bind_input(name, array)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._bind_input(name, value.numpy())

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._bind_output(name, value.numpy())

    def _bind_input(self, name: str, value: Any) -> None:
        names = [row.name for row in self._session._inputs]
        if name not in names:
            raise InvalidError(f"there is no input '{name}'; the model's inputs are {', '.join(names) or 'none'}")
        self._release()
        self._inputs[name] = value

    def _bind_output(self, name: str, value: Any) -> None:
        self._session._number(name)
        self._release()
        self._outputs[name] = value

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        self._bind_input(name, self._view(device_type, element_type, shape, buffer_ptr))

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        if buffer_ptr is None:
            self._bind_output(name, None)
        elif shape is None or element_type is None:
            raise UsageError(f"output '{name}' is bound to memory by its buffer_ptr, its shape and its element_type")
        else:
            self._bind_output(name, self._view(device_type, element_type, shape, buffer_ptr))

    @staticmethod
    def _view(device_type: str, element_type: Any, shape: Sequence[int], pointer: int) -> _dlpack.View:
        if device_type not in ("cpu", "cuda"):
            raise UsageError(f"device_type is {device_type!r}; there are 'cpu' and 'cuda'")
        return _dlpack.View(pointer, number_of(element_type), tuple(shape), device_type == "cuda", None)

    def clear_binding_inputs(self) -> None:
        self._release()
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._release()
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing is on its way: inputs are read by the run."""

    def synchronize_outputs(self) -> None:
        """Nothing is on its way: a run ends when its outputs are written."""

    def get_outputs(self) -> list[OrtValue]:
        return [OrtValue(result) for result in self._results]

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        return list(self._results)

    def _run(self, run_options: RunOptions | None) -> None:
        ready = self._ready
        if ready and run_options is None:
            try:
                slot = ready.pop()
            except IndexError:  # another thread has it
                pass
            else:
                try:
                    status = slot.call()
                finally:
                    ready.append(slot)
                    if ready is not self._ready:  # bound anew meanwhile
                        self._give_back(ready)
                if status:
                    check(status)
                return
        names = list(self._outputs) or [output.name for output in self._session._outputs]
        given = [self._outputs.get(name) for name in names]
        self._results = self._session.run(names, self._inputs, run_options, out=given)
        if not ready and ready is self._ready:
            self._prepare(names, given)

    def _prepare(self, names: Sequence[str], given: Sequence[Any]) -> None:
        """What was bound, and run, stays as it is until something else is bound: the next run is a call."""
        values = [*self._inputs.values(), *given]
        if all(type(value) is _dlpack.View or (type(value) is _ndarray and value.flags.c_contiguous and value.dtype.kind in "biufc")
               for value in values):
            slots = self._session._slots
            try:
                slot = slots.pop()
            except IndexError:
                return
            if slot.bind(self._inputs, [self._session._numbers[name] for name in names], given):
                self._ready.append(slot)
            else:
                slots.append(slot)

    def _release(self) -> None:
        ready, self._ready = self._ready, []
        self._give_back(ready)

    def _give_back(self, ready: list[_Slot]) -> None:
        while ready:
            slot = ready.pop()
            slot.bound = None
            self._session._slots.append(slot)

    def __del__(self) -> None:
        self._release()


class InferenceSession:
    """Runs a model: an ONNX file, bytes or ModelProto (compiled first), or an executable of `dlc compile`.

    target, fusion, passes, shapes, typical, values and precision are those of dlc.compile. A model that is a file is looked up in a cache
    first (see dlc_cache_folder in dlc.h): `cache` is its folder, False for none, None for DLC_CACHE_DIR or the user's. threads: of a run;
    0: DLC_NUM_THREADS, else all cores. device: "cpu", "cuda", "cuda:1"; None takes the best there is. Any number of threads may run one session.
    """

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Any] | None = None, *, target: str | None = None,
                 fusion: str | Strategy | None = None, passes: str | None = None, shapes: Mapping[str, Sequence[int | None]] | None = None,
                 values: Mapping[str, object] | None = None, precision: str | None = None, threads: int = 0, device: str | None = None,
                 cache: str | os.PathLike[str] | bool | None = None, emulate_gpu: bool = False,
                 typical: Mapping[str, Sequence[int | None]] | None = None, **unknown: object) -> None:
        if unknown:
            raise UsageError(f"InferenceSession has no option {', '.join(sorted(unknown))}")
        self._given = dict(target=target, fusion=fusion, passes=passes, shapes=shapes, values=values, precision=precision,
                           emulate_gpu=emulate_gpu, typical=typical)
        if not isinstance(sess_options, (SessionOptions, type(None))):
            raise UsageError(f"sess_options is of {type(sess_options).__name__}, where a dlc.SessionOptions is wanted")
        self._session_options = sess_options or SessionOptions()
        self._session_options._check()
        threads = threads or self._session_options.intra_op_num_threads
        if not hasattr(threads, "__index__") or threads < 0:
            raise UsageError(f"threads are {threads!r}, where a whole number from 0 is wanted")
        self._cache = cache
        self._open(path_or_bytes, _devices(providers) if device is None else [device])
        options = self._context_options = ffi.new("dlcrt_context_options *")
        options.threads = threads
        options.profile = self._session_options.enable_profiling
        self._begin_ns = time_ns()
        handle = self._executable
        self._inputs = _describe(runtime.dlcrt_executable_input, handle, runtime.dlcrt_executable_ninputs(handle))
        self._outputs = _describe(runtime.dlcrt_executable_output, handle, runtime.dlcrt_executable_noutputs(handle))
        self._is_host = self.get_modelmeta().device == "cpu"
        self._all = list(range(len(self._outputs)))
        self._numbers = {output.name: i for i, output in enumerate(self._outputs)}
        self._is_cancelled = False
        self._made: list[_Slot] = []  # all there are; those of no run are in _slots, too
        self._slots = [_Slot(self)]

    def _open(self, model: Any, devices: list[str | None]) -> None:
        for i, device in enumerate(devices):
            try:
                self._executable = self._opened(model, device)
                return
            except DeviceError:
                if i + 1 == len(devices):
                    raise

    def _opened(self, model: Any, device: str | None) -> Any:
        if isinstance(model, Executable):
            return open_executable(model, device)
        source, given = Source(model), dict(self._given)
        if source.path is None:
            is_executable, started = source.bytes[:4] == b"\x7fELF", None  # type: ignore[index]
        else:
            is_cuda = device is not None and device.startswith("cuda")
            is_asked = self._cache is not False and not is_cuda and not any(given[name] for name in given if name != "target")
            is_executable, started = _starts.look(source.path, given["target"], self._folder(), is_asked)  # type: ignore[arg-type]
        if started:
            try:
                return open_executable(Source(started), device)
            except Error:
                pass  # somebody emptied the folder, or damaged what is in it
        return open_executable(source if is_executable else self._executable_of(source, given, device), device)

    def _folder(self) -> str | None:
        return None if self._cache is None or isinstance(self._cache, bool) else os.fspath(self._cache)

    def _executable_of(self, source: Source, given: dict[str, Any], device: str | None) -> Source | Executable:
        model = source.path if source.bytes is None else source.bytes
        if given["target"] is None and device is not None and device.startswith("cuda"):
            given["target"] = _target_of(device)
        if source.path is None or self._cache is False or callable(given["fusion"]) or ".so" in f"{given['fusion']} {given['target']}":
            return compile(model, **given)
        folder = self._folder()
        try:
            found = find_in_cache(source, Options(jobs=0, progress=None, **given), folder)
        except FileError:
            if folder is not None or not os.path.exists(source.path):
                raise
            found = None  # nobody asked for a cache, and there can be none
        return Source(found) if found else compile(model, **given)

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_session_options(self) -> SessionOptions:
        return self._session_options

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers are part of the executable."""
        return []

    def disable_fallback(self) -> None:
        """There is none: a session runs where it was opened."""

    def enable_fallback(self) -> None:
        """See disable_fallback."""

    def get_providers(self) -> list[str]:
        is_cuda = self.get_modelmeta().device.startswith("cuda")
        return (["CUDAExecutionProvider"] if is_cuda else []) + ["CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self.get_providers()}

    def get_modelmeta(self) -> ModelMetadata:
        info = ffi.new("dlcrt_executable_info *")
        runtime.dlcrt_executable_describe(self._executable, info)
        row = ffi.new("dlcrt_metadata *")
        own: dict[str, str] = {}
        field: dict[str, str] = {}
        n = 0
        while runtime.dlcrt_executable_metadata(self._executable, n, row):
            (field if row.is_field else own)[text(row.key)] = text(row.value)
            n += 1
        return ModelMetadata(
            text(info.model), field.get("producer_name", ""), field.get("producer_version", ""), field.get("domain", ""),
            int(field.get("model_version", "0")), field.get("doc_string", ""), field.get("graph.doc_string", ""), own,
            text(info.producer), text(info.target), text(info.device), info.nkernels, info.constants_bytes)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None, *,
            out: Sequence[Any] | None = None) -> list[Any]:
        """Computes the outputs called output_names (None: all), as numpy arrays.

        Inputs are numpy arrays, objects with __dlpack__ (of torch, say) or anything numpy makes an array of. `out`: for each output
        an array or an object with __dlpack__ that is written and returned, or None.
        """
        if not output_names:
            wanted = self._all
        elif isinstance(output_names, str):
            raise UsageError(f"output_names is {output_names!r}, where a list is wanted: [{output_names!r}]")
        else:
            wanted = [self._number(name) for name in output_names]
        if type(input_feed) is not dict and not isinstance(input_feed, Mapping):
            names = ", ".join(f"'{row.name}': …" for row in self._inputs)
            raise UsageError(f"input_feed is of {type(input_feed).__name__}, where the inputs are wanted by name: {{{names}}}")
        if len(input_feed) != len(self._inputs) or (out is not None and len(out) != len(wanted)):
            self._refuse(input_feed, wanted, out)
        slots = self._slots
        try:
            slot = slots.pop()
        except IndexError:
            slot = _Slot(self)
        if run_options is not None:
            if not isinstance(run_options, RunOptions):
                slots.append(slot)
                raise UsageError(f"run_options is of {type(run_options).__name__}, where a dlc.RunOptions is wanted")
            run_options._begin(slot, self)
        try:
            return slot.run(input_feed, wanted, out)
        except KeyError:
            self._refuse(input_feed, wanted, out)
            raise
        finally:
            if run_options is not None:
                run_options._end(slot, self)
            slots.append(slot)

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            raise InvalidError(f"there is no output '{name}'; the model's outputs are {', '.join(self._numbers)}")
        return self._numbers[name]

    def _refuse(self, feed: Mapping[str, Any], wanted: Sequence[int], out: Sequence[Any] | None) -> None:
        names = [row.name for row in self._inputs]
        for name in feed:
            if name not in names:
                raise InvalidError(f"there is no input '{name}'; the model's inputs are {', '.join(names) or 'none'}")
        for name in names:
            if name not in feed:
                raise InvalidError(f"input '{name}' is missing; the model's inputs are {', '.join(names)}")
        if out is not None and len(out) != len(wanted):
            raise UsageError(f"out has {len(out)} arrays for {len(wanted)} outputs")

    def __call__(self, **feed: Any) -> list[Any]:
        return self.run(None, feed)

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def cancel(self, is_cancelled: bool = True) -> None:
        """Ends the runs under way, and those that begin until cancel(False), with CancelledError. From any thread."""
        with _options.cancelling:
            self._is_cancelled = bool(is_cancelled)
            for slot in self._made:
                _options.tell_cancelled(slot, self)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], callback: Callable[[Any, Any, str], None],
                  user_data: Any = None, run_options: RunOptions | None = None) -> None:
        """A run in a thread of its own, which calls callback(outputs, user_data, "") or callback([], user_data, what went wrong)."""
        def work() -> None:
            try:
                outputs, wrong = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                outputs, wrong = [], str(error)
            callback(outputs, user_data, wrong)
        threading.Thread(target=work, daemon=True).start()

    def get_profiling_start_time_ns(self) -> int:
        return self._begin_ns

    def end_profiling(self) -> str:
        """Writes the steps of each context's last run as a trace (for Perfetto); returns the file's name, "" without enable_profiling."""
        if not self._session_options.enable_profiling:
            return ""
        path = f"{self._session_options.profile_file_prefix}{self._begin_ns}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump([row for i, slot in enumerate(list(self._made)) for row in self._trace(i, slot.context)], file)
        return path

    def _trace(self, number: int, context: Any) -> list[dict[str, Any]]:
        info, times = ffi.new("dlcrt_step_info *"), ffi.new("dlcrt_step_profile *")
        rows: list[dict[str, Any]] = []
        while runtime.dlcrt_context_profile(context, len(rows), times) and runtime.dlcrt_executable_step(self._executable, len(rows), info):
            rows.append({"ph": "X", "cat": "Node", "name": text(info.name), "pid": os.getpid(), "tid": number, "ts": times.begin_ns / 1000,
                         "dur": (times.end_ns - times.begin_ns) / 1000,
                         "args": {"kernel": text(info.kernel), "flops": times.flops, "bytes": times.bytes}})
        return rows

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        raise UsageError("a session runs where it was opened; give `providers` to InferenceSession")

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        iobinding._run(run_options)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        return [OrtValue(result) for result in self.run(output_names, input_dict_ort_values, run_options)]

    def __reduce__(self) -> Any:
        raise UsageError("a session is of one process; give others the model's path, or Executable.tobytes(), to open it there")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"InferenceSession has no {name}" + _options.way_out(name))

    def counters(self) -> str:
        """Runs, seconds, contexts and bytes as text for Prometheus; dlc.counters has several sessions in one."""
        return counters(self)

    def plan(self) -> str:
        """What a run does, step by step, as text for people."""
        n = runtime.dlcrt_executable_print(self._executable, ffi.NULL, 0)
        buffer = ffi.new("char[]", n + 1)
        runtime.dlcrt_executable_print(self._executable, buffer, n + 1)
        return text(buffer)


def counters(*sessions: InferenceSession) -> str:
    """What has run in these sessions, as text that Prometheus reads: see dlcrt_counters_print in runtime.h."""
    rows = ffi.new("dlcrt_executable *[]", [session._executable for session in sessions])
    handles, n = ffi.cast("dlcrt_executable **", rows), 1024  # a view: the array lives as long as `rows`
    while True:
        buffer = ffi.new("char[]", n + 1)
        size = runtime.dlcrt_counters_print(handles, len(sessions), buffer, n + 1)
        if size <= n:
            return text(buffer)
        n = size + size // 8  # lines may be added meanwhile


def _devices(providers: Sequence[Any] | None) -> list[str | None]:
    """Providers in the order they are preferred, as ONNX Runtime takes them: names, or pairs of a name and options."""
    devices: list[str | None] = []
    if isinstance(providers, str):
        raise UsageError(f"providers is {providers!r}, where a list is wanted: [{providers!r}]")
    for provider in providers or []:
        name, options = provider if isinstance(provider, tuple) else (provider, {})
        if name not in PROVIDERS:
            raise UsageError(f"there is no provider {name!r}; there are {', '.join(PROVIDERS)}")
        devices.append(PROVIDERS[name] + (f":{options['device_id']}" if "device_id" in options else ""))
    return devices or [None]


PROVIDERS = {"CUDAExecutionProvider": "cuda", "CPUExecutionProvider": "cpu"}


def _target_of(device: str) -> str:
    from ._compile import targets
    info = ffi.new("dlcrt_device_info *")
    check(runtime.dlcrt_device_describe(device.encode(), info))
    capabilities = [int(name[3:]) for name in targets() if name.startswith("sm_") and name[3:].isdigit()]
    fitting = [c for c in capabilities if c <= info.capability]
    if not fitting:
        raise DeviceError(f"{device} is sm_{info.capability}, older than any target")
    return f"sm_{max(fitting)}"


def get_all_providers() -> list[str]:
    return list(PROVIDERS)


def get_available_providers() -> list[str]:
    info = ffi.new("dlcrt_device_info *")
    has_cuda = runtime.dlcrt_device_describe(b"cuda", info) == 0
    return (["CUDAExecutionProvider"] if has_cuda else []) + ["CPUExecutionProvider"]


def get_device() -> str:
    return "GPU" if len(get_available_providers()) > 1 else "CPU"
