#!/bin/sh
# Models that are right though nobody would write them are compiled, run, and give what numpy says.
. "$1/cli/lib.sh"
python=$repository/.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }

"$python" "$1/hostile/strange_models.py" "$DLC" strange || fail "strange models"
finish
