#!/bin/sh
# Weights pass through a compilation: they lie in memory only while they are read.
. "$1/cli/lib.sh"
python=$repository/.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }

"$python" "$1/hostile/memory.py" "$DLC" memory || fail "memory"
finish
