"""python -m dlc, and the command dlc of the wheel: the program."""

from __future__ import annotations

import os
import sys

from ._library import HERE, folder


def main() -> None:
    for program in (HERE / "bin" / "dlc", folder().parent / "bin" / "dlc"):
        if program.exists():
            os.execv(program, ["dlc", *sys.argv[1:]])
    sys.exit(f"dlc: the program was not installed: there is no {HERE / 'bin' / 'dlc'}")


if __name__ == "__main__":
    main()
