#!/bin/sh
# linked.sh SOURCE_DIR TARGET CC [RUNNER…]: the digits model as an object with its header, linked into a C program with the
# runtime's sources, built by CC for TARGET and run (by an emulator, say). Skipped when CC or the runner is missing.
set -eu
source=$1 target=$2 cc=$3
shift 3
for tool in "$cc" "${1:-true}"; do
    command -v "$tool" >/dev/null || { echo "skipped: there is no $tool; scripts/setup installs it"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m zipfile -e "$source/models/digits_test.npz" "$work"
"$DLC" compile "$source/models/digits.onnx" --target "$target" --emit o -o "$work/digits.o"
"$DLC" compile "$source/models/digits.onnx" --target "$target" --emit h -o "$work/digits.h"
"$cc" -std=gnu17 -D_GNU_SOURCE -O1 -static -I"$source/include" -I"$source" -I"$work" "$source"/tests/device/linked.c \
    "$source"/runtime/*.c "$work/digits.o" -lpthread -lm -o "$work/linked"
"$@" "$work/linked" "$work/image.npy" "$work/logits.npy"
