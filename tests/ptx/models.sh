#!/bin/sh
# models.sh TESTS_DIR WORK_DIR: every kernel of four models and two more light networks, emulated, under sanitizers, and as PTX;
# with PTX_MODELS_ALL=1 of light_resnet50 and ViT-B/16, too. The models are made by Python. PTX_MODELS is the program.
set -eu
tests=$1 work=$2
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
mkdir -p "$work"
[ -f "$work/minilm/vocab.txt" ] || "$python" "$tests/../models/make_minilm.py" "$work/minilm"
[ -d "$work/light" ] || "$python" "$tests/../models/light_models.py" "$work/light"
for net in mobilenet_v2 ${PTX_MODELS_ALL:+vit_b_16}; do
    [ -f "$work/nets/$net.in.npz" ] || "$python" "$tests/../models/seeded_models.py" "$work/nets" "$net"
done
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
try plain,asan,tsan "$work/nets/mobilenet_v2.onnx" 1 397
if [ "${PTX_MODELS_ALL:-}" ]; then # two minutes more: reference numbers of large models take the interpreter long
    try plain,asan,tsan "$work/light/light_resnet50/model.onnx" 1 397
    try plain,asan,tsan "$work/nets/vit_b_16.onnx" 1 397
fi
[ $ran -eq 1 ] || exit 77
