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
if command -v python3 >/dev/null; then
    "$DLC" explain steer.dlc --json | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "no JSON"
fi
finish
