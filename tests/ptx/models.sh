#!/bin/sh
# models.sh TESTS_DIR WORK_DIR: every kernel of six models and some light networks, emulated, under sanitizers, and as PTX; the
# models are made by Python. PTX_MODELS is the program.
set -eu
tests=$1 work=$2
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
mkdir -p "$work"
[ -f "$work/minilm/vocab.txt" ] || "$python" "$tests/../models/make_minilm.py" "$work/minilm"
[ -d "$work/light" ] || "$python" "$tests/../models/light_models.py" "$work/light"
[ -f "$work/nets/vit_b_16.in.npz" ] || "$python" "$tests/../models/seeded_models.py" "$work/nets" mobilenet_v2 vit_b_16
ran=0
try() { # try WAYS MODEL SIZE STRIDE
    status=0
    "$PTX_MODELS" "$@" || status=$?
    [ $status -ne 77 ] || return 0
    [ $status -eq 0 ] || exit $status
    ran=1
}
try plain,asan,tsan "$tests/../models/digits.onnx" 3
try ptx "$work/minilm/minilm_dyn.onnx" 7 5
try plain,asan,tsan "$work/minilm/minilm_dyn.onnx" 3
try ptx,plain,asan,tsan "$work/light/light_squeezenet/model.onnx" 1 197
for model in shufflenet inception_v1; do
    try ptx "$work/light/light_$model/model.onnx" 1 197
done
for model in "$work/light/light_resnet50/model.onnx" "$work/nets/mobilenet_v2.onnx" "$work/nets/vit_b_16.onnx"; do
    try plain,asan,tsan "$model" 1 397
done
[ $ran -eq 1 ] || exit 77
