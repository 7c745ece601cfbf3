#!/bin/sh
# runtime_mutants.sh SOURCE_DIR PROGRAM LIBDLCRT_A VGPU_DIR PART: makes the executables of the scenario, and runs PROGRAM with them.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! "$DLC" compile "$1/models/digits.onnx" --target x86-64-v2,sm_75 -o "$work/net.so" -q 2>"$work/log"; then
    grep -q NVRTC "$work/log" || { cat "$work/log"; exit 1; }
    echo "skipped: $(cat "$work/log")"
    exit 77
fi
"$DLC" compile "$1/tests/vgpu/gather.dlc" --fusion none --target sm_75 -o "$work/gather.so" -q
"$DLC" compile "$1/tests/vgpu/turns.dlc" --target x86-64-v2,sm_75 -o "$work/turns.so" -q
for name in mixed pieces top waits sides behind; do
    "$DLC" compile "$1/tests/vgpu/$name.dlc" --target sm_75 -o "$work/$name.so" -q
done
LD_LIBRARY_PATH=$4 "$2" "$1" "$3" "$work" "$5"
