#!/bin/sh
# What gpu_check measured of a GPU comes back as lines for the virtual GPU.
. "$1/cli/lib.sh"
cat >results.json <<'J'
{"facts": {"rows": []}, "micro": {"rows": [
  {"case": "processor", "name": "NVIDIA A100-SXM4-40GB", "capability": 80, "sms": 108, "ghz": 1.41, "shared_kib": 164},
  {"case": "latency", "load_cycles": 481.25}, {"case": "node", "why": "it was hot", "other": [1, 2]}], "problem": ""},
 "experiments": {"rows": [{"case": "64x64x64 fma", "experiments": [
  {"kernels": [{"us": 30, "predicted_us": 10, "bound": "f32"}]}, {"kernels": [{"us": 20, "predicted_us": 10, "bound": "f32"}]},
  {"kernels": [{"us": 40, "predicted_us": 10, "bound": "f32"}, {"us": 5, "predicted_us": 10, "bound": "latency"}]},
  {"kernels": [{"us": null, "predicted_us": 10, "bound": "L2"}, {"us": 10, "predicted_us": 10}, "none"]}]}]}}
J
expect 0 "name NVIDIA A100;sms 108;ghz 1.41;load_cycles 481.25" "$DLC" targets --calibrate results.json
expect 0 "scale_f32 3;scale_latency 0.5;kernels_measured 4;prediction_error 1.44949;prediction_error_scaled 0.154701" \
    "$DLC" targets --calibrate results.json
expect 0 '"load_cycles":481.25' "$DLC" targets --calibrate results.json --json
echo '{"micro": {"rows": []}}' >empty.json
expect 1 "empty.json: no results of gpu_check with its step micro" "$DLC" targets --calibrate empty.json
echo 'no JSON' >none.json
expect 1 "no results of gpu_check" "$DLC" targets --calibrate none.json
expect 5 "nowhere.json" "$DLC" targets --calibrate nowhere.json
vgpu=$(dirname "$DLC")/../lib/vgpu
if [ -e "$vgpu/libcuda.so.1" ]; then
    "$DLC" compile "$repository/models/digits.onnx" --target x86-64-v2 -o digits.so -q
    "$DLC" targets --calibrate results.json >a100.gpu
    LD_LIBRARY_PATH=$vgpu DLC_VGPU_GPU=empty.json expect 0 "'empty.json' has no figures of a GPU that is known" "$DLC" doctor
    if LD_LIBRARY_PATH=$vgpu DLC_VGPU_GPU=a100.gpu "$DLC" doctor 2>&1 | grep -q "no figures"; then
        fail "the figures of an A100 are not known"
    fi
fi
finish
