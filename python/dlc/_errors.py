"""One exception per dlc_status; the text is dlc's own sentence."""

from __future__ import annotations

from ._tables import STATUSES


class Error(RuntimeError):
    """What every failure of dlc is; `status` is its number, also the exit status of the program."""

    status = 70


class InvalidError(Error, ValueError):
    """The model, executable or input is not what it claims to be."""

    status = 1


class UsageError(Error, TypeError):
    """The call itself is wrong."""

    status = 2


class UnsupportedError(Error, NotImplementedError):
    """Well formed, but not something dlc can do."""

    status = 3


class MismatchError(Error):
    """Numbers differ from the expected ones."""

    status = 4


class FileError(Error, OSError):
    """A file could not be read or written."""

    status = 5


class DeviceError(Error):
    """The device or processor feature asked for is not there."""

    status = 6


class LimitError(Error, MemoryError):
    """A limit of memory, nodes or depth was reached."""

    status = 7


class CancelledError(Error):
    """Somebody cancelled the run."""

    status = 8


class InternalError(Error):
    """A defect of dlc."""

    status = 70


_BY_STATUS = {cls.status: cls for cls in Error.__subclasses__()}
assert set(_BY_STATUS) | {0} == set(STATUSES)


def error_of(status: int, text: str) -> Error:
    return _BY_STATUS.get(status, InternalError)(text)
