#!/bin/sh
# kernels.sh TESTS_DIR WORK_DIR [FOLDER]: every distinct kernel of small models on the virtual GPU (VGPU_KERNELS is the program). The
# long form, with a FOLDER of models NAME.onnx with NAME.in.npz and NAME.expected.npz: of all of them 6 blocks a kernel, after the same
# kernels' emulation gave the expected outputs.
set -eu
tests=$1 work=$2/vgpu
python=$tests/../.venv/bin/python
failed=0
try() { # try MODEL TARGET SIZE BLOCKS
    status=0
    said=$("$VGPU_KERNELS" "$@") || status=$?
    echo "$(basename "$1") for $2: $said"
    [ $status -ne 77 ] || exit 77
    [ $status -eq 0 ] || failed=$((failed + 1))
}
# The emulation's outputs are those expected, element by element; or their largest error is at most 1e-4 of the largest value, as
# gpu_check has it, or half as much again as that of the code for this processor: f16, which others round between operators, and int8,
# whose codes fall to either side (the float64 oracle is as far from what is expected).
error_of() { # error_of MODEL BASE OPTION…: largest error over largest value
    model=$1 of=$2
    shift 2
    "$DLC" run "$model" "$@" --inputs "$of.in.npz" --expect "$of.expected.npz" -q 2>&1 |
        awk '/largest error over largest value/ { n++; if ($NF > most) most = $NF } END { print n ? most : "nothing" }'
}
judge() { # judge MODEL BASE
    "$DLC" run "$1" --target sm_80 --emulate-gpu --inputs "$2.in.npz" --expect "$2.expected.npz" -q && return
    found=$(error_of "$1" "$2" --target sm_80 --emulate-gpu)
    own=$(error_of "$1" "$2")
    echo "$(basename "$1"): error $found of the largest value; $own for this processor"
    awk -v found="$found" -v own="$own" 'BEGIN { exit !(found != "nothing" && (found <= 1e-4 || (own != "nothing" && found <= 1.5 * own))) }' ||
        { echo "$(basename "$1"): the emulation's outputs differ"; failed=$((failed + 1)); }
}
if [ $# -gt 2 ]; then
    for model in "$3"/*.onnx; do
        base=${model%.onnx}
        judge "$model" "$base"
        try "$model" sm_80 16 "${BLOCKS:-6}"
    done
else
    [ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
    mkdir -p "$work.kernels"
    "$python" "$tests/vgpu/make_models.py" "$work.kernels"
    try "$tests/../models/digits.onnx" sm_75 9 0
    for name in lstm decode layer half int8 maps; do
        try "$work.kernels/$name.onnx" sm_80 3 0
    done
fi
[ $failed -eq 0 ] || { echo "$failed failed"; exit 1; }
