"""dlc.compile: ONNX models, as files, bytes or ModelProto, to executables in memory or on disk."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ._bindings import ffi
from ._errors import Error, FileError, UsageError, error_of
from ._library import cache, check, compiler, runtime, text

log = logging.getLogger("dlc")


class Executable:
    """A compiled model in memory: a file without a name, closed with the object."""

    def __init__(self, fd: int, notes: Sequence[str] = (), check_apart: Callable[[str | os.PathLike[str]], None] | None = None) -> None:
        self._fd = fd
        self._check_apart = check_apart  # refuses a path that is one of the model's files
        self.notes = tuple(notes)

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)
            self._fd = -1

    def fileno(self) -> int:
        return self._fd

    def tobytes(self) -> bytes:
        """The executable as `dlc compile` would write it."""
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it whole or not at all, and onto none of the files of the model it is made of."""
        if self._check_apart is not None and os.path.exists(path):
            self._check_apart(path)
        self._write(path)

    def _write(self, path: str | os.PathLike[str]) -> None:
        temporary = f"{os.fspath(path)}.tmp.{os.getpid()}"
        try:
            with open(temporary, "xb") as file:
                file.write(self.tobytes())
            os.replace(temporary, path)
        except BaseException as error:
            if os.path.exists(temporary):
                os.unlink(temporary)
            if isinstance(error, OSError):
                raise FileError(f"{os.fspath(path)}: cannot be written: {error.strerror}") from None
            raise


class Options:
    """dlc_options, with what they borrow kept alive."""

    def __init__(self, target: str | None, fusion: str | None, passes: str | None, shapes: Mapping[str, Sequence[int | None]] | None,
                 values: Mapping[str, object] | None, precision: str | None, jobs: int, emulate_gpu: bool,
                 progress: Callable[[str, float], None] | None, typical: Mapping[str, Sequence[int | None]] | None = None) -> None:
        for word, rows in (("shapes", shapes), ("values", values), ("typical", typical)):
            if rows is not None and not isinstance(rows, Mapping):
                raise UsageError(f"{word} is of {type(rows).__name__}, where a dict is wanted, with the names of inputs")
        if not hasattr(jobs, "__index__") or jobs < 0:
            raise UsageError(f"jobs are {jobs!r}, where a whole number from 0 is wanted")
        self._kept: list[Any] = []
        self.struct = ffi.new("dlc_options *")
        self.struct.size_bytes = ffi.sizeof("dlc_options")
        for field, value in (("target", target), ("fusion", fusion), ("passes", passes), ("precision", precision)):
            if value is not None:
                setattr(self.struct, field, self._text(value))
        self.struct.jobs = jobs
        self.struct.emulate_gpu = emulate_gpu
        self.struct.shapes, self.struct.nshapes = self._shapes("shapes", shapes or {})
        self.struct.typical, self.struct.ntypical = self._shapes("typical", typical or {})
        self._set_values(values or {})
        if progress is not None:
            callback = ffi.callback("void(void *, const char *, double, uint32_t)",
                                    lambda _user, name, seconds, _changes: progress(text(name), seconds))
            self._kept.append(callback)
            self.struct.timing = callback

    def _text(self, value: str) -> Any:
        self._kept.append(ffi.new("char[]", os.fspath(value).encode()))
        return self._kept[-1]

    def _shapes(self, word: str, shapes: Mapping[str, Sequence[int | None]]) -> tuple[Any, int]:
        rows = ffi.new("dlc_shape[]", len(shapes))
        for row, (name, dims) in zip(rows, shapes.items()):
            if isinstance(dims, str) or not all(dim is None or hasattr(dim, "__index__") for dim in dims):
                raise UsageError(f"{word}[{name!r}] is {dims!r}; a list of numbers is wanted, with None for what stays open")
            if len(dims) > len(row.dims):
                raise UsageError(f"{word}[{name!r}] has {len(dims)} dimensions, at most {len(row.dims)} are possible")
            row.name = self._text(name)
            row.rank = len(dims)
            for d, dim in enumerate(dims):
                row.dims[d] = -1 if dim is None else dim
        self._kept.append(rows)
        return rows, len(shapes)

    def _set_values(self, values: Mapping[str, object]) -> None:
        rows = ffi.new("dlc_given[]", len(values))
        for row, (name, value) in zip(rows, values.items()):
            row.name = self._text(name)
            row.text = self._text(value if isinstance(value, str) else ",".join(str(v) for v in _flat(value)))
        self._kept.append(rows)
        self.struct.values = rows
        self.struct.nvalues = len(values)


def _flat(value: object) -> list[object]:
    import numpy as np
    flat: list[object] = np.asarray(value).ravel().tolist()
    return flat


class Source:
    """A model as a path or as bytes."""

    def __init__(self, model: Any) -> None:
        self.path: str | None = None
        self.bytes: bytes | None = None
        if isinstance(model, (str, os.PathLike)):
            self.path = os.fspath(model)
        elif isinstance(model, (bytes, bytearray, memoryview)):
            self.bytes = bytes(model)
        elif hasattr(model, "SerializeToString"):
            self.bytes = model.SerializeToString()
        else:
            raise UsageError(f"a model is a path, bytes or a ModelProto, found {type(model).__name__}")


class Edge(NamedTuple):
    """What one node of a graph gives another; `reason` says whether both can be one kernel, `text` is its sentence."""

    producer: str
    consumer: str
    producer_operator: str
    consumer_operator: str
    value: str
    bytes: float
    reason: str
    text: str


Strategy = Callable[[list[Edge]], Iterable[Edge]]


class _Plan:
    """What a strategy in Python makes of a model: a file for `fusion`, there as long as the object is."""

    def __init__(self, source: Source, strategy: Strategy, output: str | os.PathLike[str] | None, given: Mapping[str, Any]) -> None:
        found = ffi.new("const char **")
        opened = _Model(source, Options(fusion="none", **given), output)
        opened.check(compiler().dlc_model_text(opened.pointer[0], compiler().DLC_TEXT_EXPLAIN, b"json", found))
        rows = json.loads(text(found[0]))["edges"]
        opened.close()
        edges = [Edge(row["from"], row["to"], row["from_operator"], row["to_operator"], row["value"], row["bytes"], row["reason"],
                      row["text"]) for row in rows]
        wanted = strategy(edges)
        if not isinstance(wanted, Iterable):
            raise UsageError(f"the strategy returned {wanted!r}, where the edges to fuse are wanted")
        self.groups = _joined((edge.producer, edge.consumer) for edge in wanted)
        self._file = tempfile.NamedTemporaryFile("w", prefix="dlc.", suffix=".json")
        json.dump({"groups": self.groups}, self._file)
        self._file.flush()
        self.path = self._file.name


def _joined(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The pairs as groups that share no name."""
    group_of: dict[str, list[str]] = {}
    for pair in pairs:
        groups = {id(group): group for group in (group_of.setdefault(name, [name]) for name in pair)}
        whole = [name for group in groups.values() for name in group]
        group_of.update((name, whole) for name in whole)
    return list({id(group): group for group in group_of.values()}.values())


class _Model:
    """dlc_model: opened, asked, closed."""

    def __init__(self, source: Source, options: Options, output: str | os.PathLike[str] | None) -> None:
        self._options, self._bytes = options, source.bytes
        self.pointer = ffi.new("dlc_model **")
        if source.bytes is None:
            assert source.path is not None
            status = compiler().dlc_model_open(os.fsencode(source.path), options.struct, self.pointer)
        else:
            self._buffer = ffi.from_buffer(source.bytes)
            status = compiler().dlc_model_open_bytes(self._buffer, len(source.bytes), b"model", options.struct, self.pointer)
        self.check(status)
        if output is not None:  # none of the model's own files
            self.check(compiler().dlc_model_may_write(self.pointer[0], os.fsencode(output)))

    def messages(self) -> list[tuple[int, str]]:
        return messages_of(self.pointer[0])

    def check(self, status: int) -> None:
        if status:
            problems = [said for number, said in self.messages() if number]
            self.close()
            raise error_of(status, "\n".join(problems) or "out of memory")

    def close(self) -> None:
        compiler().dlc_model_close(self.pointer[0])
        self.pointer[0] = ffi.NULL


def messages_of(model: Any) -> list[tuple[int, str]]:
    if not model:
        return []
    note = ffi.new("dlc_model_note *")
    found: list[tuple[int, str]] = []
    while compiler().dlc_model_message(model, len(found), note):
        place, said, detail = text(note.place), text(note.text), text(note.detail)
        found.append((int(note.status), (f"{place}: " if place else "") + said + (f"\n{detail}" if detail else "")))
    return found


def compile(model: Any, output: str | os.PathLike[str] | None = None, *, target: str | None = None,
            fusion: str | Strategy | None = None, passes: str | None = None, shapes: Mapping[str, Sequence[int | None]] | None = None,
            values: Mapping[str, object] | None = None, precision: str | None = None, kind: str = "so", name: str | None = None,
            jobs: int = 0, emulate_gpu: bool = False, progress: Callable[[str, float], None] | None = None,
            typical: Mapping[str, Sequence[int | None]] | None = None) -> Executable:
    """Compiles a model: a path, bytes or a ModelProto.

    The result is an executable in memory, for InferenceSession(result), result.save(path) or result.tobytes(). With `output` it is
    written there, too. target, fusion and passes are named as on the command line (see targets() and strategies()); shapes fixes
    inputs' shapes, None keeping a dimension; typical names sizes that code is chosen for where only a run knows them, None leaving one as
    it is; values fixes inputs' values; precision="bf16" lets convolutions and products by weights
    multiply bf16, with errors of up to 2^-7 of the terms; kind is another kind of output (o, a, h, ll, asm, …);
    progress(pass, seconds) is called after every pass. fusion may be a function: it is given the graph's edges (dlc.Edge) and
    returns those whose nodes it wants in one kernel. What is not legal stays apart, and a note says why.
    """
    source, plan = Source(model), None
    _check_output(output)
    if callable(fusion):
        plan = _Plan(source, fusion, output, dict(target=target, passes=passes, shapes=shapes, values=values, precision=precision,
                                                  jobs=jobs, emulate_gpu=emulate_gpu, progress=None, typical=typical))
        fusion = plan.path
    options = Options(target, fusion, passes, shapes, values, precision, jobs, emulate_gpu, progress, typical)
    opened = _Model(source, options, output)
    fd = os.memfd_create("dlc", os.MFD_CLOEXEC)
    result = Executable(fd, check_apart=_apart_from(source, shapes, values))
    symbol = name if name is not None else _identifier(output)
    opened.check(compiler().dlc_model_write_fd(opened.pointer[0], kind.encode(), fd, symbol.encode()))
    result.notes = tuple(said for _, said in opened.messages())
    opened.close()
    for note in result.notes:
        log.info("%s", note)
    if output is not None:
        result._write(output)
    return result


def _check_output(output: str | os.PathLike[str] | None) -> None:
    """What cannot be written is refused before anything is compiled."""
    if output is None:
        return
    path = os.fspath(output)
    if os.path.isdir(path):
        raise FileError(f"{path}: is a folder")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise FileError(f"{path}: there is no such folder")


def _apart_from(source: Source, shapes: Any, values: Any) -> Callable[[str | os.PathLike[str]], None] | None:
    """Refuses to write onto a file of the model, for as long as there is one; the model is opened again, as it was the first time."""
    if source.path is None:
        return None
    again = Source(os.path.abspath(source.path))

    def check(output: str | os.PathLike[str]) -> None:
        if not os.path.exists(again.path or ""):
            return
        options = Options(None, None, None, shapes, values, None, 0, False, None)
        _Model(again, options, os.path.abspath(output)).close()

    return check


def _identifier(output: str | os.PathLike[str] | None) -> str:
    stem = os.path.basename(os.fspath(output)).split(".")[0] if output is not None else "model"
    letters = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem) or "model"
    return "_" + letters if letters[0].isdigit() else letters


def find_in_cache(source: Source, options: Options, folder: str | None) -> str | None:
    """The path of the model's executable in a cache; None: there is no folder for one."""
    assert source.path is not None
    where = folder.encode() if folder is not None else cache().dlc_cache_folder()
    if not where:
        return None
    file, path = ffi.new("char[]", 8192), os.fsencode(source.path)
    if cache().dlc_cache_look(path, options.struct, where, file, len(file)):
        return text(file)
    model = ffi.new("dlc_model **")
    status = compiler().dlc_cache_find(path, options.struct, where, file, len(file), model)
    if model[0]:  # it had to be opened
        said = messages_of(model[0])
        compiler().dlc_model_close(model[0])
        if status:
            raise error_of(status, "\n".join(line for number, line in said if number) or "out of memory")
        for _, line in said:
            log.info("%s", line)
    elif status:
        raise error_of(status, "out of memory")
    return text(file)


def _catalogue(kind: int) -> dict[str, str]:
    name, help_text = ffi.new("const char **"), ffi.new("const char **")
    rows: dict[str, str] = {}
    while compiler().dlc_catalogue(kind, len(rows), name, help_text):
        rows[text(name[0])] = text(help_text[0])
    return rows


def targets() -> dict[str, str]:
    """What `target` may be, with a line about each."""
    return _catalogue(0)


def passes() -> dict[str, str]:
    """What `passes` may name."""
    return _catalogue(1)


def strategies() -> dict[str, str]:
    """What `fusion` may be."""
    return _catalogue(2)


def open_executable(source: Source | Executable, device: str | None) -> Any:
    """A dlcrt_executable, closed when the handle goes."""
    options, result = ffi.new("dlcrt_executable_options *"), ffi.new("dlcrt_executable **")
    kept = [ffi.new("char[]", device.encode())] if device else []
    options.device = kept[0] if kept else ffi.NULL
    fd = -1
    if isinstance(source, Executable):
        options.fd = source.fileno()
    elif source.path is not None:
        kept.append(ffi.new("char[]", os.fsencode(source.path)))
        options.path = kept[-1]
    else:
        assert source.bytes is not None
        options.fd = fd = os.memfd_create("dlc", os.MFD_CLOEXEC)
        with open(fd, "wb", closefd=False) as file:
            file.write(source.bytes)
    try:
        check(runtime.dlcrt_executable_open_with(options, result))
    finally:
        if fd >= 0:
            os.close(fd)
    return ffi.gc(result[0], runtime.dlcrt_executable_close)
