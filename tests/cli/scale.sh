#!/bin/sh
# Time and memory of a compilation grow as its model does: three sizes of each kind.
. "$1/cli/lib.sh"
python=$repository/.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }

"$python" "$1/hostile/scale.py" "$DLC" scale || fail "scale"
finish
