#!/bin/sh
# run.sh TESTS_DIR BUILD_DIR [FILE]: the Python package on the libraries that were built; bindings are made from the headers first.
# DLC_PYTHON is the Python to take in place of .venv's.
set -eu
repository=$(cd "$1/.." && pwd)
python=${DLC_PYTHON:-$repository/.venv/bin/python}
grep -q '^DLC_SANITIZE:STRING=.' "$2/CMakeCache.txt" && { echo "skipped: what opens a sanitized library needs its sanitizer"; exit 77; }
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
"$python" -c 'import cffi, numpy, onnx' 2>/dev/null || { echo "skipped: .venv has no cffi; scripts/setup installs it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$repository/python/dlc" "$work/dlc"
"$python" "$repository/python/make_bindings.py" "${CC:-cc}" "$repository/include" "$work/dlc" >/dev/null
export PYTHONPATH="$work" DLC_LIBRARY_DIR="$2/lib" DLC_CACHE_DIR="$work/cache" PYTHONDONTWRITEBYTECODE=1
exec_status=0
"$python" "$1/python/${3:-test_session.py}" || exec_status=$?
program=$("$python" -m dlc --version) && [ "${program%% *}" = dlc ] || { echo "python -m dlc says: $program"; exec_status=1; }
exit $exec_status
