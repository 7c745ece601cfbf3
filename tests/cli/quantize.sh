#!/bin/sh
# dlc quantize: ranges from data, a QDQ model that runs, and a report of what was lost.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx
data=$repository/models/digits_test.npz

# at most half a point is lost, by every method
for method in mse minmax percentile entropy; do
    for weights in "" --per-tensor; do
        expect 0 "small.onnx;dB;conv2" "$DLC" quantize "$digits" --data "$data" -o small.onnx --method $method $weights
        lost=$(sed -n 's/right: \([0-9.]*\) %, float32 \([0-9.]*\) %/\2 \1/p' out | awk '{ print ($1 - $2 <= 0.5) ? "little" : "much" }')
        [ "$lost" = little ] || fail "--method $method $weights loses more than half a point"
    done
done
expect 0 '"right_percent":;"layers":[{"node":"conv1","operator":"Conv"' "$DLC" quantize "$digits" --data "$data" -o small.onnx --json
[ "$(wc -c <small.onnx)" -lt 12000 ] || fail "the int8 model is no smaller"
expect 0 "largest error" "$DLC" run small.onnx --inputs "$data" --expect "$data" --atol 3
expect 0 "constants: 6." "$DLC" inspect small.onnx # bytes, not floats
expect 0 "" "$DLC" compile small.onnx -o small.so

# a scale for each channel unless asked otherwise, and that loses less
for weights in --per-channel "" --per-tensor; do
    expect 0 "" "$DLC" quantize "$digits" --data "$data" -o "w$weights.onnx" $weights
done
cmp -s w.onnx w--per-channel.onnx || fail "scales for each channel are not the default"
cmp -s w.onnx w--per-tensor.onnx && fail "--per-tensor changes nothing"

# some layers alone, and a batch that the model fixes
expect 0 "conv2" "$DLC" quantize "$digits" --data "$data" -o part.onnx --exclude conv1,Gemm
! grep -q "conv1$" out || fail "conv1 is quantised, although it is excluded"
expect 0 "digits.int8.onnx" sh -c 'cp "$0" . && "$DLC" quantize digits.onnx --data "$1"' "$digits" "$data"

# refusals
expect 2 "--per-channel or --per-tensor, not both" "$DLC" quantize "$digits" --data "$data" --per-channel --per-tensor
expect 2 "needs --data" "$DLC" quantize "$digits"
expect 2 "where mse, minmax, percentile or entropy is wanted" "$DLC" quantize "$digits" --data "$data" --method best
expect 3 "there is nothing to quantise" "$DLC" quantize "$digits" --data "$data" --exclude Conv,Gemm -o x.onnx
expect 3 "there is nothing to quantise" "$DLC" quantize small.onnx --data "$data" -o x.onnx
expect 5 "absent.npz" "$DLC" quantize "$digits" --data absent.npz
expect 5 "absent.onnx" "$DLC" quantize absent.onnx --data "$data"
expect 1 "" "$DLC" quantize "$data" --data "$data"
expect 0 "" "$DLC" run "$digits" --inputs "$data" --outputs other.npz
expect 1 "has no samples of input 'image' (f32[batch,1,8,8])" "$DLC" quantize "$digits" --data other.npz -o y.onnx
expect 5 "nowhere" "$DLC" quantize "$digits" --data "$data" -o nowhere/x.onnx
[ "$(ls | grep -c -e tmp -e x.onnx -e y.onnx)" = 0 ] || fail "files stay: $(ls)"
finish
