"""Arrays of strings: numpy's of str, bytes or objects; to the runtime pointers to UTF-8 that ends with a zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._bindings import ffi
from ._errors import InvalidError


def _encoded(element: Any, name: str) -> bytes:
    if not isinstance(element, (str, bytes)):
        raise InvalidError(f"input '{name}' has {element!r}, where strings are wanted")
    result = element.encode("utf-8", "surrogateescape") if isinstance(element, str) else element
    if b"\0" in result:
        raise InvalidError(f"input '{name}' has the string {element!r}; none may hold a zero")
    return result


def pointers(value: Any, name: str) -> tuple[Any, Any]:
    """The array of pointers, and what they point to: both must live while it is read."""
    texts = [ffi.new("char[]", _encoded(element, name)) for element in value.reshape(-1).tolist()]
    return ffi.new("char *[]", texts), texts


def array(data: Any, shape: tuple[int, ...]) -> Any:
    """numpy's objects for the pointers at `data`, of the runtime."""
    result = np.empty(shape, object)
    flat = result.reshape(-1)
    rows = ffi.cast("char **", data)
    for i in range(flat.size):
        flat[i] = ffi.string(rows[i]).decode("utf-8", "surrogateescape")
    return result
