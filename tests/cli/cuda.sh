#!/bin/sh
# CUDA targets on a machine without a GPU: without NVRTC, with it, emulated, and where no driver is.
. "$1/cli/lib.sh"
[ -z "${DLC_SANITIZED-}" ] || { echo "skipped: NVRTC is not made for sanitizers; test_ptx runs emulated kernels under them"; exit 77; }
digits=$repository/models/digits.onnx data=$repository/models/digits_test.npz

export DLC_NVRTC=$work/nowhere
expect 6 "NVRTC;pip install nvidia-cuda-nvrtc;DLC_NVRTC" "$DLC" compile "$digits" --target sm_75 -o digits.so
expect 0 "NVRTC was not found" "$DLC" targets
expect 0 "no report of the kernels: CUDA targets need NVRTC" "$DLC" inspect "$digits" --target sm_75
expect 0 "not fused" "$DLC" explain "$digits" --target sm_75
expect 0 "largest error" "$DLC" run "$digits" --target sm_75 --emulate-gpu --inputs "$data" --expect "$data"
expect 0 "" "$DLC" compile "$digits" --target sm_75 --emulate-gpu -o emulated.so
expect 0 "largest error" "$DLC" run emulated.so --inputs "$data" --expect "$data"
unset DLC_NVRTC

"$DLC" targets | grep -q "makes code" || finish
expect 0 "registers;conv1+relu1" "$DLC" inspect "$digits" --target sm_75
expect 0 "predicted us of a launch;T4;A100;B200;conv1+relu1" "$DLC" inspect "$digits" --target sm_75
expect 0 "A100" "$DLC" inspect "$digits" --target sm_80
! grep -q "T4" out || fail "code for sm_80 runs on no T4"
expect 0 "\"predicted\";\"bound\":\"" "$DLC" inspect "$digits" --target sm_75 --json

# A compiler that crashes, takes too long or too much, or makes what nobody reads, is a message, and the rest is there.
REAL_NVRTC=$("$DLC" --version | sed -n 's/^nvrtc: .* (\(.*\))$/\1/p')
if cc -shared -fPIC "$1/cli/wrong_nvrtc.c" -o libnvrtc.so.12 -ldl 2>/dev/null; then
    export REAL_NVRTC DLC_NVRTC="$PWD" WRONG=none
    expect 0 "registers;predicted us of a launch" "$DLC" inspect "$digits" --target sm_75
    export WRONG=crash
    expect 0 "kernel;no report of the kernels: the code generator was ended by signal 11" "$DLC" inspect "$digits" --target sm_75
    expect 0 "\"no_report\":\"the code generator was ended" "$DLC" inspect "$digits" --target sm_75 --json
    expect 70 "the code generator was ended by signal 11" "$DLC" compile "$digits" --target sm_75 -o none.so
    export WRONG=slow
    expect 0 "no report of the kernels: generating code takes longer than it may; --max-seconds" \
        "$DLC" inspect "$digits" --target sm_75 --max-seconds 2
    export WRONG=large
    expect 0 "no report of the kernels: the code generator" "$DLC" inspect "$digits" --target sm_75 --max-memory 1000000000
    export WRONG=text
    expect 0 "registers;conv1+relu1;no prediction of times: " "$DLC" inspect "$digits" --target sm_75
    expect 0 "\"registers\":;\"no_prediction\":\"" "$DLC" inspect "$digits" --target sm_75 --json
    unset DLC_NVRTC WRONG REAL_NVRTC
fi
for again in 1 2; do
    expect 0 "" "$DLC" compile "$digits" --target sm_75,sm_90,native -o several$again.so --name digits
done
cmp -s several1.so several2.so || fail "two compilations differ"
expect 0 "" "$DLC" compile "$digits" --target sm_75 -o gpu.so
expect 0 "largest error" "$DLC" run several1.so --device cpu --inputs "$data" --expect "$data"
if ! ldconfig -p 2>/dev/null | grep -q libcuda.so.1; then
    expect 6 "holds plans for sm_75;libcuda.so.1" "$DLC" run gpu.so --inputs "$data"
    expect 0 "largest error" "$DLC" run several1.so --inputs "$data" --expect "$data"
fi
finish
