#!/bin/sh
# What the emitted code must have for its speed.
. "$1/cli/lib.sh"

# a vector of one of several inputs is one load of where it lies: two merged by a mask are not fetched ahead (rows out of memory: 20 GB/s
# instead of 50)
cat >concat.dlc <<'END'
graph @cat(%a: f32[12,512,64], %b: f32[12,1,64], %c: f32[12,3,64]) -> %y {
  %y: f32[12,516,64] = concat %a, %b, %c {axis=1}
}
END
expect 0 "" "$DLC" compile concat.dlc --emit ll --target x86-64-v3 -o concat.ll
[ "$(grep -c 'load <8 x float>' concat.ll)" = 1 ] || fail "a concatenation loads each of its inputs: $(grep 'load <8' concat.ll)"

# what is rounded to bf16 is stored as it is: not rounded once more
cat >cast.dlc <<'END'
graph @cast(%x: f32[4096]) -> %y {
  %y: bf16[4096] = cast %x {dtype=bf16}
}
END
expect 0 "" "$DLC" compile cast.dlc --emit ll --target x86-64-v4 -o cast.ll
[ "$(grep -c 'i32 32767' cast.ll)" = 1 ] || fail "bf16 is rounded more often than once: $(grep 'i32 32767' cast.ll)"
finish
