#!/bin/sh
# run.sh TESTS_DIR WORK_DIR SUITE [dlc test options]: makes the suite's folders (once) and runs them against its committed list.
#   node      onnx's node tests: expected-node.txt
#   cases     dlc's own, which onnx's leave out: expected-cases.txt
#   light     the nine light_* graphs: expected-light.txt
# With --emulate-gpu the cases of expected-SUITE-cuda.txt may fail too; each line there has its reason.
set -eu
tests=$1 work=$2 suite=$3
list=expected-$suite
shift 3
[ "${1-}" != --interpret ] || list=$list-interpreted
list=$tests/onnx/$list.txt
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
mkdir -p "$work"
case $suite in
node) "$python" -W ignore "$tests/onnx/make_node_tests.py" "$work/node" ;;
cases) "$python" -W ignore "$tests/onnx/make_cases.py" "$work/cases" ;;
light) "$python" "$tests/../models/light_models.py" "$work/light" ;;
*) echo "no suite '$suite'"; exit 2 ;;
esac
case " $* " in
*" --emulate-gpu "*)
    cat "$list" "$tests/onnx/expected-$suite-cuda.txt" >"$work/expected-$suite-cuda.txt"
    list=$work/expected-$suite-cuda.txt
    ;;
esac
exec "$DLC" test "$work/$suite" --timeout 300 --quiet --list "$list" "$@"
