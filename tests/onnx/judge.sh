#!/bin/sh
# judge.sh TESTS_DIR WORK_DIR [judge.py's options]: the importer's judge, over the node tests and dlc's own cases too.
set -eu
tests=$1 work=$2
shift 2
python=$tests/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
mkdir -p "$work"
"$python" -W ignore "$tests/onnx/make_node_tests.py" "$work/node"
"$python" -W ignore "$tests/onnx/make_cases.py" "$work/cases"
exec "$python" -W ignore "$tests/onnx/judge.py" "$work" "$DLC" "$@"
