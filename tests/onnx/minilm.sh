#!/bin/sh
# minilm.sh TESTS_DIR WORK_DIR: the real MiniLM against a float64 forward pass in numpy; static, and one dynamic executable for
# several batch sizes and lengths. An error counts relative to the largest value, so the tolerance is absolute.
set -eu
tests=$1 work=$2/minilm
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
[ -f "$work/vocab.txt" ] || "$python" "$tests/../models/make_minilm.py" "$work"
check() { # check EXECUTABLE CASE
    "$DLC" run "$work/$1.so" --inputs "$work/$2.in.npz" --expect "$work/$2.expected.npz" --rtol 0 --atol 1e-4
}
for model in minilm_s128 minilm_dyn; do
    "$DLC" compile "$work/$model.onnx" -o "$work/$model.so"
done
check minilm_s128 minilm_s128
for file in "$work"/minilm_dyn_*.in.npz; do
    name=$(basename "$file" .in.npz)
    check minilm_dyn "$name"
done
