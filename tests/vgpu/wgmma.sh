#!/bin/sh
# wgmma.sh TESTS_DIR WORK_DIR VGPU_DIR: gpu_check's products by wgmma on the virtual GPU, and mistakes in them.
set -eu
python=$1/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
LD_LIBRARY_PATH="$3" DLC_VGPU_ARCH=90 exec "$python" -W ignore "$1/vgpu/wgmma.py" "$2/wgmma"
