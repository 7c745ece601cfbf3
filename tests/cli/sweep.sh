#!/bin/sh
# One allocation, and one access to files, of every way by which any comes fails once (hostile/sweep.py): every command ends by itself,
# with a sentence, and leaves nothing. DLC_LONG: all ways.
. "$1/cli/lib.sh"
[ -n "${FAULTS:-}" ] || { echo "skipped: sanitizers have an allocator of their own"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }

points=60
[ -z "${DLC_LONG:-}" ] || points=0
DLC_POINTS=$points python3 "$1/hostile/sweep.py" "$DLC" "$FAULTS" "$repository/models/digits.onnx" "$work/sweep" || fail "a sweep"
finish
