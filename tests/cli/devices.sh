#!/bin/sh
# Executables for several targets, and the choice among them. What needs NVRTC is left out where it is not there.
. "$1/cli/lib.sh"
model=$repository/models/digits.onnx

expect 2 "there is no device 'gpu'; there are cpu, cuda and cuda:N" "$DLC" run "$model" --device gpu
expect 0 "logits" "$DLC" run "$model" --device cpu
expect 0 "logits" env DLC_DEVICE=cpu "$DLC" run "$model"
expect 2 "there is no target 'sm_1'" "$DLC" compile "$model" --target x86-64-v2,sm_1 -o no.so
expect 2 "texts are about one target; 2 are named" "$DLC" explain "$model" --target x86-64-v2,x86-64-v3
expect 2 "are different processors; one file holds the code of one" \
    "$DLC" compile "$model" --target x86-64-v2,aarch64 -o no.so
[ ! -e no.so ] || fail "a refused compilation left a file"

expect 0 "two.so" "$DLC" compile "$model" --target x86-64-v2,x86-64-v3 -o two.so
expect 0 "target x86-64-v2;target x86-64-v3" "$DLC" inspect two.so
expect 0 '"plans":2' "$DLC" inspect two.so --json
if [ "$(uname -m)" = x86_64 ]; then
    expect 0 "logits" "$DLC" run two.so --input image=random:1
    DLC_CPU=x86-64-v2 expect 0 "logits" "$DLC" run two.so --input image=random:1
    expect 6 "two.so: holds plans for x86-64-v2 and x86-64-v3; none of them runs here" "$DLC" run two.so --device cuda
fi

[ -z "${DLC_SANITIZED-}" ] || { echo "skipped: NVRTC is not made for sanitizers"; finish; }
DLC_NVRTC=/nonexistent expect 6 "pip install nvidia-cuda-nvrtc" "$DLC" compile "$model" --target sm_75 -o no.so
if ! "$DLC" compile "$model" --target sm_75 -o gpu.so >out 2>err; then
    grep -q NVRTC err || fail "compiling for sm_75 says nothing of NVRTC"
    echo "skipped: $(cat err)"
    finish
fi
expect 0 "target sm_75" "$DLC" inspect gpu.so
expect 0 "registers, 0 bytes of stack;PTX of sm_75" "$DLC" inspect gpu.so
expect 6 "gpu.so: holds plans for sm_75; none of them runs here" "$DLC" run gpu.so --device cpu
expect 0 "all.so" "$DLC" compile "$model" --target sm_75,sm_89,x86-64-v2 -o all.so
expect 0 "target sm_75,sm_89,;target x86-64-v2,;PTX of sm_75" "$DLC" inspect all.so
expect 0 "all2.so" "$DLC" compile "$model" --target sm_75,sm_89,x86-64-v2 --name all -o all2.so
cmp all.so all2.so || fail "two compilations gave different bytes"
[ "$(uname -m)" != x86_64 ] || expect 0 "logits" "$DLC" run all.so --device cpu
finish
