#!/bin/sh
# models.sh TESTS_DIR WORK_DIR VGPU_DIR: whole models through the runtime on the virtual GPU give the bits of the emulation, on PTX for
# three generations: digits, MiniLM's first two layers, an LSTM, a decoder's step, half precision, its products as matrices,
# int8, maps; with odd inputs, too; products by rows of dot.def. And what a run asks of the driver (VGPU_CALLS is the program):
# two calls, and no copies but those that begin a loop's states. With a FOLDER of models behind, the long form, that of those alone.
set -eu
tests=$1 work=$2/vgpu vgpu=$3
states_of() { # what the graph copies at most: states of loops that begin with a constant
    case $1 in
        lstm) echo 2 ;;
        *) echo 0 ;;
    esac
}
count() { # count NAME FILE: few blocks run, what they compute is of no interest
    said=$(LD_LIBRARY_PATH=$vgpu DLC_VGPU_SAMPLE=1 "$VGPU_CALLS" "$(states_of "$1")" "$2") || { echo "$1: $said"; return 1; }
    echo "$1: $said"
}
if [ $# -gt 3 ]; then
    failed=0
    mkdir -p "$work"
    for model in "$4"/*.onnx; do
        "$DLC" compile "$model" --target sm_80 -o "$work/counted.so" -q && count "$(basename "$model" .onnx)" "$work/counted.so" || failed=1
    done
    exit $failed
fi
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
cc --version >/dev/null 2>&1 || { echo "skipped: the emulation needs the C compiler cc"; exit 77; }
mkdir -p "$work"
[ -f "$2/minilm/vocab.txt" ] || "$python" "$tests/../models/make_minilm.py" "$2/minilm"
"$python" "$tests/vgpu/make_models.py" "$work" "$2/minilm/minilm_s128.onnx"
"$python" -c "import numpy, sys
with numpy.load(sys.argv[1]) as data: numpy.savez(sys.argv[2], image=data['image'][:40])" \
    "$tests/../models/digits_test.npz" "$work/digits.in.npz"
cp "$tests/../models/digits.onnx" "$work/digits.onnx"

try() { # try MODEL TARGET INPUTS…
    model=$work/$1 target=$2 kind=onnx
    [ -f "$model.onnx" ] || kind=dlc
    shift 2
    if ! "$DLC" compile "$model.$kind" --target "$target" -o "$model.so" -q 2>"$work/log"; then
        grep -q NVRTC "$work/log" || { cat "$work/log"; exit 1; }
        echo "skipped: $(cat "$work/log")"
        exit 77
    fi
    for inputs; do
        "$DLC" run "$model.$kind" --target "$target" --emulate-gpu --inputs "$model.$inputs.npz" --outputs "$model.out.npz" -q
        LD_LIBRARY_PATH=$vgpu "$DLC" run "$model.so" --device cuda --inputs "$model.$inputs.npz" --expect "$model.out.npz" \
            --rtol 0 --atol 0 -q || { echo "$model for $target, $inputs: differs from the emulation"; exit 1; }
        echo "$model for $target, $inputs: the same bits"
    done
}
try digits sm_75 in
count digits "$work/digits.so"
for target in sm_75 sm_80 sm_90; do
    try maps $target odd
done
try lstm sm_80 in odd
try decode sm_90 in odd
try layer sm_75 in odd
try half sm_80 in odd
try matrices sm_80 odd
try int8 sm_90 in odd
try minilm2 sm_75 in
for name in maps lstm decode layer half matrices int8 minilm2; do
    count $name "$work/$name.so"
done

# Products by rows of dot.def that no model's schedule has yet: a module's text.
"$python" -c "import numpy, sys
draw = numpy.random.default_rng(1)
numpy.savez(sys.argv[1], x=draw.standard_normal((70, 96)).astype('f4'), w=draw.standard_normal((96, 48)).astype('f4'))
numpy.savez(sys.argv[2], x=draw.integers(0, 256, (70, 96)).astype('u1'), w=draw.integers(-128, 128, (96, 48)).astype('i1'))" \
    "$work/tf32.in.npz" "$work/octets.in.npz"
for name in tf32 octets; do
    cp "$tests/vgpu/$name.dlc" "$work/$name.dlc"
    try $name sm_80 in
done
