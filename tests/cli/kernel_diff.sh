#!/bin/sh
# scripts/kernel_diff: equal builds do not differ; another fusion, schedule, code or a refusal does, and is named.
. "$1/cli/lib.sh"
diff=$repository/scripts/kernel_diff
[ -z "${DLC_SANITIZED-}" ] || { echo "skipped: what is compared does not depend on sanitizers"; exit 77; }

another() { # another NAME SCRIPT: a program that is dlc but for what the script does; $OUT is the file it writes
    printf '#!/bin/sh\nfor a in "$@"; do [ "$last" = -o ] && OUT=$a; last=$a; done\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
cat >row.dlc <<'TEXT'
graph @row(%x: f32[1000,256]) -> %z {
  %m: f32[1000,1] = reduce_sum %x {axes=[1], keepdims=1}
  %z: f32[1000,256] = div %x, %m
}
TEXT
another unfused "exec $DLC \"\$@\" --fusion none"
another rescheduled "$DLC \"\$@\" | sed 's/grain/GRAIN/'"
another recoded "$DLC \"\$@\" && sed -i 's/fdiv/fmul/' \"\$OUT\""

expect 0 "row.dlc x86-64-v3: same;row.dlc sm_80: same;0 of 3 compilations differ" "$diff" "$DLC" "$DLC" row.dlc
expect 0 "digits.onnx aarch64: same (" "$diff" "$DLC" "$DLC" --targets aarch64
expect 1 "row.dlc x86-64-v3: 1 kernel only in OLD, 2 kernels only in NEW;steps changed;code: 1 of 1 function only in OLD" \
    "$diff" "$DLC" ./unfused row.dlc --targets x86-64-v3
expect 1 "row.dlc x86-64-v3: 1 schedule of equal kernels changed;-schedule x86-64-v3 grain;+schedule x86-64-v3 GRAIN" \
    "$diff" "$DLC" ./rescheduled row.dlc --targets x86-64-v3 --diff
expect 1 "code: 1 of 1 function only in OLD, 1 of 1 only in NEW;fmul <8 x float>" \
    "$diff" "$DLC" ./recoded --models . --targets x86-64-v3 --diff 8
expect 0 "refused alike" "$diff" "$DLC" "$DLC" "$models/unknown_op.onnx"
another deaf "echo row.dlc: no; exit 3"
expect 1 "OLD: compiles | NEW: " "$diff" "$DLC" ./deaf row.dlc --targets sm_80
expect 1 "3 of 3 compilations differ" "$diff" "$DLC" ./unfused row.dlc --cache kept
expect 1 "3 of 3 compilations differ" "$diff" "$DLC" ./unfused row.dlc --cache kept
expect 2 "nowhere: there is no such file" "$diff" "$DLC" nowhere
finish
