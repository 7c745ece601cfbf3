#!/bin/sh
# Executables made by each NVRTC that is there, on virtual drivers of three branches: their code runs, or one line says why not, and
# they run by their plan for the CPU.
. "$1/cli/lib.sh"
[ -z "${DLC_SANITIZED-}" ] || { echo "skipped: NVRTC is not made for sanitizers"; exit 77; }
digits=$repository/models/digits.onnx data=$repository/models/digits_test.npz
vgpu=$(dirname "$DLC")/../lib/vgpu
[ -e "$vgpu/libcuda.so.1" ] || { echo "skipped: the virtual GPU is not built"; exit 77; }
"$repository/.venv/bin/python" -c "import numpy, sys
with numpy.load(sys.argv[1]) as data: numpy.savez('small.npz', **{name: data[name][:9] for name in data})" "$data" ||
    { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }

on() { # on DRIVER CAPABILITY COMMAND…
    driver=$1 capability=$2
    shift 2
    env LD_LIBRARY_PATH="$vgpu" DLC_VGPU_DRIVER="$driver" DLC_VGPU_ARCH="$capability" "$@"
}

tried=
for folder in "$repository"/.venv/lib/python3*/site-packages/nvidia/*/lib /usr/local/cuda*/lib64 /usr/local/cuda*/lib; do
    ls "$folder"/libnvrtc.so.1[23] >/dev/null 2>&1 || continue
    export DLC_NVRTC=$folder
    version=$("$DLC" --version | sed -n 's/^nvrtc: \([0-9.]*\) .*/\1/p')
    case " $tried " in *" $version "*) continue ;; esac
    "$DLC" compile "$digits" --target sm_75,sm_90,x86-64-v2 -o old.so -q || fail "$folder makes no code for sm_75 and sm_90"
    "$DLC" compile "$digits" --target sm_100,x86-64-v2 -o new.so -q || fail "$folder makes no code for sm_100"
    for driver in 525 550 580; do
        for capability in 75 80 90; do
            expect 0 "largest error" on $driver $capability "$DLC" run old.so --inputs small.npz --expect small.npz
            ! grep -q "runs by the plan" err || fail "driver $driver, sm_$capability: $(cat err)"
        done
        expect 0 "largest error;it runs by the plan for x86-64-v2: made for sm_100" \
            on $driver 90 "$DLC" run new.so --inputs small.npz --expect small.npz
        expect 6 "made for sm_100" on $driver 90 "$DLC" run new.so --device cuda --inputs small.npz
    done
    expect 0 "largest error;it runs by the plan for x86-64-v2;of CUDA 12.8" \
        on 570 100 "$DLC" run new.so --inputs small.npz --expect small.npz
    tried="$tried $version"
done
echo "by NVRTC$tried"
[ -n "$tried" ] || { echo "skipped: there is no NVRTC"; exit 77; }
finish
