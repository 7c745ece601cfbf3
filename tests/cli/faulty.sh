#!/bin/sh
# Models that are wrong in one way are refused when they are loaded, by the node's name; right ones beside them load. DLC_LONG: all of them.
. "$1/cli/lib.sh"
python=$repository/.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }

[ -n "${DLC_LONG:-}" ] || export DLC_SAMPLE=4
"$python" "$1/hostile/make_faulty.py" "$DLC" faulty || fail "faulty models"
finish
