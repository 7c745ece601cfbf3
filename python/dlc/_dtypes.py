"""Element types: dlc's numbers, numpy's types, ONNX's names, DLPack's codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import UnsupportedError
from ._tables import DTYPES

NAMES: list[str] = [row[0] for row in DTYPES]
BITS: list[int] = [row[1] for row in DTYPES]
# What numpy has no type of its own for comes from ml_dtypes, where that is installed; else as bytes (V1, V2).
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
              "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn", "f6e2m3": "float6_e2m3fn",
              "f6e3m2": "float6_e3m2fn", "i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2"}
_ONNX_NAMES = {"f32": "float", "f64": "double", "f16": "float16", "bf16": "bfloat16", "bool": "bool", "str": "string"}


def _numpy_of(name: str, numpy: str) -> Any:
    if name in _ML_DTYPES:
        try:
            import ml_dtypes
            return np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
        except (ImportError, AttributeError):
            pass
    return np.dtype(numpy or "V1")


NUMPY: list[Any] = [_numpy_of(row[0], row[3]) for row in DTYPES]
# numpy has no buffers of these: they are handed over as unsigned integers of their size
IS_VIEWED: list[bool] = [row[0] in _ML_DTYPES for row in DTYPES]
OF_NUMPY: dict[Any, int] = {dtype: i for i, dtype in enumerate(NUMPY) if i and not dtype.str[1:].startswith("V") or IS_VIEWED[i] and
                            dtype not in (np.dtype("V1"), np.dtype("V2"))}
STR = NAMES.index("str")  # of numpy several types, to the runtime pointers
del OF_NUMPY[NUMPY[STR]]
OF_ONNX: dict[int, int] = {row[2]: i for i, row in enumerate(DTYPES) if i}
# kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6
_DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "b": 4}
OF_DLPACK: dict[tuple[int, int], int] = {
    (6 if name == "bool" else _DLPACK_CODES[name[0]], BITS[i]): i for i, name in enumerate(NAMES)
    if i and name != "str" and (name == "bf16" or not IS_VIEWED[i])}
# kDLFloat8_e4m3fn 10, …fnuz 11, e5m2 12, …fnuz 13, e8m0fnu 14
OF_DLPACK.update({(code, 8): NAMES.index(name) for code, name in (
    (10, "f8e4m3fn"), (11, "f8e4m3fnuz"), (12, "f8e5m2"), (13, "f8e5m2fnuz"), (14, "f8e8m0")) if name in NAMES})


def number_of(element_type: Any) -> int:
    """dlc's number of numpy's type, or of a number of TensorProto.DataType."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        number = OF_ONNX.get(element_type)
    else:
        dtype = np.dtype(element_type)
        number = STR if dtype.kind in "OUST" else OF_NUMPY.get(dtype)
    if number is None:
        raise UnsupportedError(f"dlc has no element type {element_type}; it has " + ", ".join(onnx_name(i)[7:-1] for i in OF_ONNX.values()))
    return number


def onnx_name(dtype: int) -> str:
    """As ONNX Runtime spells it: tensor(float)."""
    name = NAMES[dtype]
    if name not in _ONNX_NAMES:
        name = {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:]
        return f"tensor({name})"
    return f"tensor({_ONNX_NAMES[name]})"
