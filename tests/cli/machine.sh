#!/bin/sh
# dlc targets --probe: what it measures is kept and shown, later compilations for native read it, and what it says changes speed alone.
. "$1/cli/lib.sh"
export XDG_CACHE_HOME=$work/cache
unset DLC_CACHE_DIR
model=$repository/models/digits.onnx
expect 0 "--probe measures it" "$DLC" targets
expect 0 "kept in $work/cache/dlc/machine;GB/s;Gop/s" "$DLC" targets --probe
for line in processor cycles_per_us l1_bytes_per_us near_bytes_per_us far_bytes_per_us threads fma_ops_per_us; do
    grep -q "^$line " cache/dlc/machine || fail "nothing was measured of $line"
done
# no cache is slower than memory by far, no peak absurd: wrong by a factor of ten would be a defect of the measurement
awk '$1 == "near_bytes_per_us" { near = $2 } $1 == "far_bytes_per_us" { far = $2 } $1 == "fma_ops_per_us" { fma = $2 }
    END { exit !(near > far / 2 && far > 500 && near < 5e6 && fma > 500 && fma < 1e6) }' cache/dlc/machine ||
    fail "numbers that cannot be: $(cat cache/dlc/machine)"
expect 0 "measured:" "$DLC" targets
expect 0 "fma_ops_per_us" "$DLC" targets --probe --machine here --json
grep -q "^processor" here || fail "--machine names no file that was written"

# the same machine gives the same bytes; another one other estimates, and numbers within tolerance
expect 0 "" "$DLC" compile "$model" -o one.so --machine here --name same
expect 0 "" "$DLC" compile "$model" -o two.so --machine here --name same
cmp one.so two.so >out 2>&1 || fail "the same machine gives other bytes"
printf 'processor none\ncycles_per_us 35\nfar_bytes_per_us 10\nnear_bytes_per_us 20\n' >slow
estimate() { "$DLC" inspect "$model" --json --format json "$@" | tail -1 | sed 's/.*"estimate_us":\([0-9]*\).*/\1/'; }
[ "$(estimate --machine slow)" -gt "$(estimate --machine here)" ] || fail "a slow machine is estimated like this one"
expect 0 "" "$DLC" compile "$model" -o slow.so --machine slow
cp "$repository/models/digits_test.npz" in.npz
expect 0 "" "$DLC" run slow.so --inputs in.npz --expect in.npz
[ "$(estimate --target x86-64-v3 --machine slow)" = "$(estimate --target x86-64-v3)" ] || fail "a target that is not native was measured"

# files that are none, or of another processor
expect 5 "nowhere" "$DLC" compile "$model" -o x.so --machine nowhere
echo 'speed high' >broken
expect 1 "'speed high' is nothing that dlc targets --probe writes" "$DLC" compile "$model" -o x.so --machine broken
expect 2 "--machine names the file of --probe" "$DLC" targets --machine here
sed -i 's/^processor .*/processor of somebody else/' cache/dlc/machine
expect 0 "--probe measures it" "$DLC" targets
[ -e x.so ] && fail "a refusal left a file"
finish
