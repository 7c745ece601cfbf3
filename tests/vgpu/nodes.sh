#!/bin/sh
# nodes.sh TESTS_DIR WORK_DIR VGPU_DIR [all]: ONNX's node tests with kernels for a GPU, compiled by NVRTC, on the virtual GPU: each 30th;
# with `all`, the long form, every one, where those of expected-node.txt and expected-node-cuda.txt may fail.
set -eu
tests=$1 work=$2
export LD_LIBRARY_PATH="$3"
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
"$DLC" targets | grep -q "makes code" || { echo "skipped: NVRTC is not there"; exit 77; }
mkdir -p "$work"
[ -d "$work/node" ] || "$python" -W ignore "$tests/onnx/make_node_tests.py" "$work/node"
if [ "${4-}" = all ]; then
    cat "$tests/onnx/expected-node.txt" "$tests/onnx/expected-node-cuda.txt" >"$work/expected-node-vgpu.txt"
    exec "$DLC" test "$work/node" --target sm_75 --device cuda --timeout 300 --quiet --list "$work/expected-node-vgpu.txt"
fi
few=$(mktemp -d)
trap 'rm -rf "$few"' EXIT
n=0
for case in "$work"/node/*; do
    n=$((n + 1))
    [ $((n % 30)) -ne 0 ] || ln -s "$(cd "$case" && pwd)" "$few/"
done
"$DLC" test "$few" --target sm_75 --device cuda --jobs 2 >"$few.log" 2>&1 || true
grep -v "^PASS" "$few.log" || true
grep -q " 0 FAIL," "$few.log" || { rm -f "$few.log"; exit 1; }
rm -f "$few.log"
