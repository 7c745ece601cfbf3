"""The libraries: libdlcrt, which runs models; libdlc, the compiler, opened when something is compiled first; and libdlccache, which finds
what was compiled before."""

from __future__ import annotations

import functools
import os
import pathlib
from typing import Any

from ._bindings import ffi
from ._errors import error_of

HERE = pathlib.Path(__file__).resolve().parent
VERSION_OF_LIBRARIES = "0"


def folder() -> pathlib.Path:
    """Where the libraries lie: in the package, or where DLC_LIBRARY_DIR says."""
    return pathlib.Path(os.environ.get("DLC_LIBRARY_DIR") or HERE / "lib")


def _open(name: str) -> Any:
    return ffi.dlopen(str(folder() / f"{name}.so.{VERSION_OF_LIBRARIES}"))


runtime: Any = _open("libdlcrt")


@functools.cache
def compiler() -> Any:
    return _open("libdlc")


@functools.cache
def cache() -> Any:
    return _open("libdlccache")


def text(pointer: Any) -> str:
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def check(status: int) -> None:
    """Raises what the runtime says of the call that failed."""
    if status:
        raise error_of(status, text(runtime.dlcrt_last_error()))
