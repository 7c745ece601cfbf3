"""Element types: dlc's numbers, numpy's types, ONNX's names, DLPack's codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._tables import DTYPES

NAMES: list[str] = [row[0] for row in DTYPES]
BITS: list[int] = [row[1] for row in DTYPES]
_ONNX_NAMES = {"f32": "float", "f64": "double", "f16": "float16", "bf16": "bfloat16", "bool": "bool"}


def _bfloat16() -> Any:
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("V2")
    return np.dtype(ml_dtypes.bfloat16)


def _numpy_of(name: str, numpy: str) -> Any:
    return _bfloat16() if name == "bf16" else np.dtype(numpy or "V1")


NUMPY: list[Any] = [_numpy_of(row[0], row[3]) for row in DTYPES]
OF_NUMPY: dict[Any, int] = {dtype: i for i, dtype in enumerate(NUMPY) if i}
OF_ONNX: dict[int, int] = {row[2]: i for i, row in enumerate(DTYPES) if i}
# kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6
_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "b": 4}
OF_DLPACK: dict[tuple[int, int], int] = {
    (6 if name == "bool" else _DLPACK_CODES[name[0]], BITS[i]): i for i, name in enumerate(NAMES) if i}


def onnx_name(dtype: int) -> str:
    """As ONNX Runtime spells it: tensor(float)."""
    name = NAMES[dtype]
    if name not in _ONNX_NAMES:
        name = {"i": "int", "u": "uint"}[name[0]] + name[1:]
        return f"tensor({name})"
    return f"tensor({_ONNX_NAMES[name]})"
