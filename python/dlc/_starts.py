"""What an earlier start left in a cache: the entry of this boot, which compiler/cache_look.c writes (compiler/cache.c says what is in it).

It is read here, since loading a library for it takes longer than opening the executable. Whatever is not as it was is left to that
library, which then writes another entry.
"""

from __future__ import annotations

import functools
import os
import re

from ._library import runtime, text
from ._tables import FORMAT

_ELF = b"\x7fELF"
_NAMES = re.compile(r"[\w+,-]{1,100}", re.ASCII).fullmatch


def cache_folder() -> str | None:
    """As dlc_cache_folder finds it."""
    given, xdg, home = (os.environ.get(name, "") for name in ("DLC_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    return given or (xdg[:1] == "/" and f"{xdg}/dlc") or (home[:1] == "/" and f"{home}/.cache/dlc") or None


@functools.cache
def _here() -> str:
    """This version on this machine since it was started."""
    fd = os.open("/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
    try:
        boot = os.read(fd, 100).decode().rstrip("\n")
    finally:
        os.close(fd)
    return f"{text(runtime.dlcrt_version())}/{FORMAT} {os.uname().machine} {boot}"


def _line(info: os.stat_result, path: str) -> str:
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino} {path}"


def _is_as_it_was(line: str) -> bool:
    if line.startswith("- "):
        return not os.access(line[2:], os.F_OK)
    path = line.split(" ", 4)[-1]
    return _line(os.stat(path), path) == line


def _executable_of(fd: int, target: str, folder: str | None) -> str | None:
    own = cache_folder()
    folder, info = folder or own, os.fstat(fd)
    entry = os.open(f"{folder}/{info.st_dev:x}-{info.st_ino:x}-{target}.files", os.O_RDONLY | os.O_CLOEXEC)
    try:
        lines = os.fsdecode(os.read(entry, 1 << 16)).split("\n")
    finally:
        os.close(entry)
    if len(lines) < 4 or lines.pop() or lines[0] != f"{_here()} {own or ''}" or len(lines[1]) != 32:
        return None
    if lines[2] != _line(info, os.readlink(f"/proc/self/fd/{fd}")) or not all(map(_is_as_it_was, lines[3:])):
        return None
    return f"{folder}/{lines[1]}.so"


def look(path: str, target: str | None, folder: str | None, is_asked: bool) -> tuple[bool, str | None]:
    """Whether the file is an executable already; and else, if asked, the path of the one that is known to be made of it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # a third of what a file object takes
    except OSError:
        return False, None  # opening it says why
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # megabytes would be read ahead
        if os.read(fd, len(_ELF)) == _ELF:
            return True, None
        is_plain = is_asked and (target is None or isinstance(target, str) and _NAMES(target))
        return False, _executable_of(fd, target or "native", folder) if is_plain else None
    except (OSError, ValueError):
        return False, None
    finally:
        os.close(fd)
