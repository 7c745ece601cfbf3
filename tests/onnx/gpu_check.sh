#!/bin/sh
# gpu_check.sh TESTS_DIR WORK_DIR: the static half of scripts/gpu_check on a few models: the bytes of two compilations are equal,
# no kernel spills, and the folder it fills starts where there is no compiler.
set -eu
scripts=$1/../scripts work=$2/gpu
python=$1/../.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
"$DLC" targets | grep -q 'makes code' || { echo "skipped: NVRTC was not found; scripts/setup puts it into .venv"; exit 77; }
"$python" -W ignore "$scripts/gpu_static.py" "$DLC" "$work" --quick --targets sm_75 --nodes 8 --node-tests "$2/node"
command -v nvidia-smi >/dev/null && exit 0
said=$("$work/gpu_check" || [ $? = 2 ])
echo "$said" | grep -q "There is no GPU here"
