#!/bin/sh
# The ONNX node tests through the back end of examples/. Arguments: the folder of the tests, the folder where suites are made.
set -eu
python=$1/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: x86-64 alone has been tried"; exit 77; }
[ -d "$2/node" ] || "$python" "$1/onnx/make_node_tests.py" "$2/node"
exec "$python" "$1/onnx/backend.py" "$DLC" "$2/node" "$1/.."
