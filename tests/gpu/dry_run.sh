#!/bin/sh
# dry_run.sh TESTS_DIR WORK_DIR: the half of scripts/gpu_check that needs a GPU, with this processor and fake/torch in its place.
set -eu
python=$1/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
exec "$python" -W ignore "$1/gpu/dry_run.py" "$DLC" "$2"
