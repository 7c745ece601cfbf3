#!/bin/sh
# Each allocation and each access to files fails once: every command ends by itself, with a sentence, and leaves nothing. DLC_LONG: every point.
. "$1/cli/lib.sh"
[ -n "${FAULTS:-}" ] || { echo "skipped: sanitizers have an allocator of their own"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }

points=30
[ -z "${DLC_LONG:-}" ] || points=0
DLC_POINTS=$points python3 "$1/hostile/sweep.py" "$DLC" "$FAULTS" "$repository/models/digits.onnx" "$work/sweep" || fail "a sweep"
finish
