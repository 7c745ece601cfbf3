"""Reads what `__dlpack__` gives: a tensor's memory without a copy, of any element type, on the CPU or a CUDA device."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ._bindings import ffi
from ._dtypes import BITS, OF_DLPACK
from ._errors import UsageError

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13


class View(NamedTuple):
    """Borrowed memory; `owner` keeps it."""

    pointer: int
    dtype: int
    shape: tuple[int, ...]
    on_device: bool
    owner: Any

    @property
    def size_bytes(self) -> int:
        n = BITS[self.dtype] // 8
        for dim in self.shape:
            n *= dim
        return n


def _is_dense(tensor: _Tensor) -> bool:
    if not tensor.strides:
        return True
    expected = 1
    for d in range(tensor.ndim - 1, -1, -1):
        if tensor.shape[d] > 1 and tensor.strides[d] != expected:
            return False
        expected *= tensor.shape[d]
    return True


def view(array: Any) -> View:
    """The memory of any object with `__dlpack__`."""
    capsule = array.__dlpack__()
    tensor = ctypes.cast(_pointer_of(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    dtype = OF_DLPACK.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise UsageError(f"a tensor of DLPack type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes: dlc has no such type")
    if tensor.device_type not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise UsageError(f"a tensor on a DLPack device of kind {tensor.device_type}: dlc runs on CPUs (1) and CUDA devices (2)")
    if not _is_dense(tensor):
        raise UsageError("a tensor with strides: dlc reads row-major tensors without gaps; make it contiguous")
    shape = tuple(tensor.shape[d] for d in range(tensor.ndim))
    pointer = (tensor.data or 0) + tensor.byte_offset
    return View(pointer, dtype, shape, tensor.device_type == CUDA, capsule)


def as_void(pointer: int) -> Any:
    return ffi.cast("void *", pointer)
