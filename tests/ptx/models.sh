#!/bin/sh
# models.sh TESTS_DIR WORK_DIR: every kernel of MiniLM and three light networks as PTX, and of MiniLM under sanitizers; the models
# are made by Python. PTX_MODELS is the program.
set -eu
tests=$1 work=$2
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
mkdir -p "$work"
[ -f "$work/minilm/vocab.txt" ] || "$python" "$tests/../models/make_minilm.py" "$work/minilm"
"$python" "$tests/../models/light_models.py" "$work/light"
ran=0
try() { # try WAY MODEL SIZE STRIDE
    status=0
    "$PTX_MODELS" "$@" || status=$?
    [ $status -ne 77 ] || return 0
    [ $status -eq 0 ] || exit $status
    ran=1
}
try ptx "$work/minilm/minilm_dyn.onnx" 7 5
try asan "$work/minilm/minilm_dyn.onnx" 3
try tsan "$work/minilm/minilm_dyn.onnx" 2
for model in squeezenet shufflenet inception_v1; do
    try ptx "$work/light/light_$model/model.onnx" 1 197
done
[ $ran -eq 1 ] || exit 77
