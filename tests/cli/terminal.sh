#!/bin/sh
# Names of a model that would steer a terminal are shown as what they are, on every way to it, and JSON stays JSON.
. "$1/cli/lib.sh"
printf 'graph @f(%%x: f32[2]) -> %%y {\n  %%"a\\x1b[31mb\\xe2\\x80\\xaec\\xc2\\x85d\\xffe": f32[2] = neg %%x\n  %%y: f32[2] = exp %%"a\\x1b[31mb\\xe2\\x80\\xaec\\xc2\\x85d\\xffe"\n}\n' >steer.dlc
sed 's/-> %y/-> %z/' steer.dlc >wrong.dlc
raw=$(printf '\033\\|\342\200\256\\|\302\205')

for command in "inspect steer.dlc" "inspect steer.dlc --format json" "inspect steer.dlc --format dot" "explain steer.dlc" "explain steer.dlc --json" \
    "opt steer.dlc --passes dce" "run steer.dlc" "compile steer.dlc -o steer.so" "inspect steer.so" "inspect steer.so --json" "compile wrong.dlc -o x.so"; do
    # shellcheck disable=SC2086
    "$DLC" $command >out 2>err
    ! LC_ALL=C grep -q "$raw" out err || fail "dlc $command lets the terminal be steered"
done
expect 0 'a\u001b[31mb\u202ec\u0085d\ufffde' "$DLC" explain steer.dlc
# Nor forges a row of a table or a line.
printf 'graph @f(%%x: f32[2]) -> %%"y\\n  forged" {\n  %%"a\\tforged\\n  forged": f32[2] = neg %%x\n  %%"y\\n  forged": f32[2] = exp %%"a\\tforged\\n  forged"\n}\n' >rows.dlc
expect 0 "" "$DLC" compile rows.dlc -o rows.so
"$DLC" run rows.dlc --outputs rows.npz -q 2>/dev/null || fail "rows.dlc does not run"
for command in "inspect rows.dlc" "inspect rows.so" "explain rows.dlc" "explain rows.dlc --fusion none" "run rows.dlc" "run rows.dlc --profile rows.json" \
    "bench rows.so --seconds 0 --profile rows.json" "compare rows.dlc" "run rows.so --inputs /dev/null" "run rows.so --expect rows.npz"; do
    # shellcheck disable=SC2086
    "$DLC" $command >out 2>err
    ! grep -q '^[[:space:]]*forged\|	forged' out err || fail "dlc $command shows a forged row"
    [ "${command#run rows.so --inputs}" != "$command" ] || grep -q 'u000a  forged' out || fail "dlc $command does not show the name"
done
if command -v python3 >/dev/null; then
    "$DLC" explain steer.dlc --json | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "no JSON"
fi
finish
