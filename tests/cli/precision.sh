# --precision bf16: what convolutions and products of weights read is cut to bf16, and added up in f32; nothing else changes.
. "$1/cli/lib.sh"

plain() {
    cat <<TEXT
graph @g(%x: f32[2,24,9,11], %z: f32[37,24]) -> %y, %v, %d, %a {
  %w: f32[40,24,3,3] = const hash(00000000000000a1)
  %u: f32[24,50] = const hash(00000000000000a2)
  %g: f32[24,1,3,3] = const hash(00000000000000a3)
  %s: f32[37,24] = tanh %z
  %y: f32[2,40,9,11] = conv %x, %w {pads=[1, 1, 1, 1]}
  %v: f32[37,50] = matmul %s, %u
  %d: f32[2,24,7,9] = conv %x, %g {group=24}
  %t: f32[24,37] = transpose %z {perm=[1, 0]}
  %a: f32[37,37] = matmul %z, %t
}
TEXT
}
# The same with its cuts written out.
cut() {
    plain | sed 's/%y: \(.*\)conv %x, %w {/%xb: bf16[2,24,9,11] = cast %x {dtype=bf16}\n  %wb: bf16[40,24,3,3] = cast %w {dtype=bf16}\n  %y: \1conv %xb, %wb {dtype=f32, /
                 s/%v: \(.*\)matmul %s, %u/%sb: bf16[37,24] = cast %s {dtype=bf16}\n  %ub: bf16[24,50] = cast %u {dtype=bf16}\n  %v: \1matmul %sb, %ub {dtype=f32}/'
}
# And where bf16 is multiplied faster than f32, by pairs or in tile registers, activations of many rows, too.
cut_all() {
    cut | sed 's/%a: \(.*\)matmul %z, %t/%zb: bf16[37,24] = cast %z {dtype=bf16}\n  %tb: bf16[24,37] = cast %t {dtype=bf16}\n  %a: \1matmul %zb, %tb {dtype=f32}/'
}
plain >plain.dlc
cut >cut.dlc
cut_all >cut_all.dlc
"$DLC" run cut.dlc --interpret --input x=random:7 --input z=random:8 --outputs y.npz -q || fail "no expected output"
"$DLC" run cut_all.dlc --interpret --input x=random:7 --input z=random:8 --outputs all.npz -q || fail "no expected output"
for target in x86-64-v4+amx_bf16 x86-64-v4+bf16; do
    "$DLC" opt plain.dlc --passes precision --precision bf16 --target $target >out 2>err || fail "the pass does not run"
    [ "$(grep -c 'dtype=f32' out)" = 3 ] || fail "$target: not all products but those of groups: $(cat out)"
done
"$DLC" opt plain.dlc --passes precision --precision bf16 --target x86-64-v4 >out 2>err || fail "the pass does not run"
[ "$(grep -c 'dtype=f32' out)" = 2 ] || fail "not the two products of weights: $(cat out)"
for target in native x86-64-v4+amx_bf16 x86-64-v4+bf16 x86-64-v4 x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    expected=y.npz
    case $target in
    *bf16) expected=all.npz ;;
    native)
        "$DLC" opt plain.dlc --passes precision --precision bf16 >out 2>err || fail "the pass does not run"
        [ "$(grep -c 'dtype=f32' out)" = 2 ] || expected=all.npz
        ;;
    esac
    "$DLC" run plain.dlc --input x=random:7 --input z=random:8 --expect $expected --precision bf16 --winograd off --target $target >out 2>err
    case $? in
    0) ;;
    6) [ $target = native ] && fail "native does not run: $(cat err)" ;; # the machine has not what it needs
    *) fail "$target: $(cat out err)" ;;
    esac
done
if [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    expect 0 "" "$DLC" run plain.dlc --input x=random:7 --input z=random:8 --expect y.npz --precision bf16 --target sm_80 --emulate-gpu
fi
# Images of few channels have these side by side where pairs pay: odd rows of a window, even ones, and sizes that only the run knows.
few() { # channels, window, shapes of x and y, attributes, and "cut": with its cuts written out
    cat <<TEXT
graph @few(%x: f32[$3]) -> %y {
  %w: f32[24,$1,$2,$2] = const hash(00000000000000b1)
  %e: f32[$3] = relu %x$(test -z "$6" || printf '\n  %%d: bf16[%s] = cast %%e {dtype=bf16}\n  %%v: bf16[24,%s,%s,%s] = cast %%w {dtype=bf16}' "$3" "$1" "$2" "$2")
  %y: f32[$4] = conv $(test -z "$6" && echo %e, %w || echo %d, %v) {$5$(test -z "$6" || echo , dtype=f32)}
}
TEXT
}
try_few() {
    few "$@" "" >few.dlc
    few "$@" cut >few_cut.dlc
    "$DLC" opt few.dlc --passes const_fold,precision --precision bf16 --target native >out 2>err || fail "the pass does not run"
    grep -q "dtype=bf16" out || cp few.dlc few_cut.dlc # as they are, where pairs do not pay
    "$DLC" run few_cut.dlc --interpret --input x=random:7 --outputs f.npz -q || fail "no expected output: $*"
    "$DLC" run few.dlc --input x=random:7 --expect f.npz --precision bf16 >out 2>err || fail "few channels: $* $(cat out err)"
}
try_few 3 7 2,3,19,31 2,24,9,11 "pads=[3, 2, 1, 4], strides=[2, 3]"
try_few 2 5 1,2,8,12 1,24,6,8 "pads=[0, 0, 2, 0]"
if [ "$(uname -m)" = x86_64 ]; then
    few 3 7 n,3,h,v "n,24,h,v" "pads=[3, 3, 3, 3]" "" >few.dlc
    expect 0 "f32[24,1,7,22]" "$DLC" opt few.dlc --passes const_fold,precision --precision bf16 --target x86-64-v4+bf16
    expect 0 "pads=[3, 9, 3, 12]" "$DLC" opt few.dlc --passes const_fold,precision --precision bf16 --target x86-64-v4+bf16
fi
# A pair that is spread over the lanes is read by the instruction that multiplies it.
if [ "$(uname -m)" = x86_64 ]; then
    cat >pair.dlc <<TEXT
module @pair for x86-64-v4+bf16 after lower {
  input %x: bf16[24,64]
  input %w: bf16[64,16]
  output %y: f32[24,16]
}

kernel @product(x: bf16[24,64], w: bf16[64,16]) -> (y: f32[24,16]) {
  axis i=24, j=16, k=64
  y[i,j] = sum(k) f32(x[i, k]) * f32(w[k, j]) -> y[i, j]
}

steps {
  launch 0 (%x, %w) -> (%y)
}
TEXT
    { sed -n '/^kernel/,/^}/p' pair.dlc && cat <<TEXT; } >pair.txt
schedule x86-64-v4+bf16 {
  copy columns = y.w [j/16, k/2, j%16, k%2]
  for j:16 {
    for k:2, lane j:16, unroll k {
      columns in scratch
    }
    for i:6 {
      y = dot vdpbf16ps i x j over [k]
    }
  }
}
TEXT
    expect 0 "1 of 1 kernels" "$DLC" compile pair.dlc --target x86-64-v4+bf16 --schedule pair.txt --emit asm -o pair.s
    grep -q 'vdpbf16ps.*{1to16}' pair.s || fail "a spread pair has a register of its own"
fi
# What is cut and read by others, too, is to them what the cut left; so are both branches that are added; and cuts of a maximum go in front of it.
cat >block.dlc <<TEXT
graph @block(%x: f32[1,24,18,22]) -> %y, %n {
  %u: f32[24,24,3,3] = const hash(00000000000000c1)
  %w: f32[24,24,1,1] = const hash(00000000000000c2)
  %r: f32[1,24,18,22] = tanh %x
  %m: f32[1,24,9,11] = max_pool %r {kernel=[2, 2], strides=[2, 2]}
  %p: f32[1,24,9,11] = conv %m, %u {pads=[1, 1, 1, 1]}
  %q: f32[1,24,9,11] = conv %m, %w
  %a: f32[1,24,9,11] = add %p, %q
  %s: f32[1,24,9,11] = relu %a
  %z: f32[1,24,9,11] = conv %s, %w
  %y: f32[1,24,9,11] = add %z, %s
  %n: f32[1,24,9,11] = neg %s
}
TEXT
cat >block_cut.dlc <<TEXT
graph @block(%x: f32[1,24,18,22]) -> %y, %n {
  %u: f32[24,24,3,3] = const hash(00000000000000c1)
  %w: f32[24,24,1,1] = const hash(00000000000000c2)
  %ub: bf16[24,24,3,3] = cast %u {dtype=bf16}
  %wb: bf16[24,24,1,1] = cast %w {dtype=bf16}
  %r: f32[1,24,18,22] = tanh %x
  %m: f32[1,24,9,11] = max_pool %r {kernel=[2, 2], strides=[2, 2]}
  %mb: bf16[1,24,9,11] = cast %m {dtype=bf16}
  %p: f32[1,24,9,11] = conv %mb, %ub {pads=[1, 1, 1, 1], dtype=f32}
  %q: f32[1,24,9,11] = conv %mb, %wb {dtype=f32}
  %pb: bf16[1,24,9,11] = cast %p {dtype=bf16}
  %qb: bf16[1,24,9,11] = cast %q {dtype=bf16}
  %pw: f32[1,24,9,11] = cast %pb {dtype=f32}
  %qw: f32[1,24,9,11] = cast %qb {dtype=f32}
  %a: f32[1,24,9,11] = add %pw, %qw
  %s: f32[1,24,9,11] = relu %a
  %sb: bf16[1,24,9,11] = cast %s {dtype=bf16}
  %sw: f32[1,24,9,11] = cast %sb {dtype=f32}
  %z: f32[1,24,9,11] = conv %sb, %wb {dtype=f32}
  %y: f32[1,24,9,11] = add %z, %sw
  %n: f32[1,24,9,11] = neg %sw
}
TEXT
"$DLC" run block_cut.dlc --interpret --input x=random:7 --outputs b.npz -q || fail "no expected output of a block"
"$DLC" run block.dlc --input x=random:7 --expect b.npz --atol 0.02 --precision bf16 --winograd off >out 2>err || fail "a block: $(cat out err)"
expect 0 "bf16[1,24,9,11] = max_pool" "$DLC" opt block.dlc --passes precision,cse,dce --precision bf16
[ "$(grep -c '{dtype=f32}$' out)" = 5 ] || fail "not both branches, the two products of a window and what is left of the sum: $(cat out)"
[ "$(grep -c 'cast .*dtype=f32' out)" = 3 ] || fail "other values than three go through bf16: $(cat out)"
# What a loop carries on stays f32 but where it is multiplied.
cat >loop.dlc <<TEXT
symbol n = opaque(%l, 0) in 0..9
graph @loop(%x: f32[1,24]) -> %z {
  %u: f32[24,24] = const hash(00000000000000d1)
  %l: bool[] = loop {symbol=0, holds=[n < 9]}
    %s: f32[1,24] = state %l, %x
    %p: f32[1,24] = matmul %s, %u
    %q: f32[1,24] = tanh %p
    %a: f32[1,24] = add %q, %s
  %m: bool[] = done %l
  %z: f32[1,24] = final %m, %s, %a
}
TEXT
expect 0 "dtype=f32" "$DLC" opt loop.dlc --passes precision,cse,dce --precision bf16
[ "$(grep -c cast out)" = 1 ] || fail "a loop carries on what is left: $(cat out)"
expect 0 "" "$DLC" run loop.dlc --input x=random:7 --precision bf16
# Winograd's points are cut to bf16 where the user asks for that precision, and where products by pairs pay; nowhere else.
"$DLC" run cut.dlc --input x=random:7 --input z=random:8 --expect y.npz --rewrite winograd=2 >out 2>err || fail "points of a model's own bf16: $(cat out err)"
if [ "$(uname -m)" = x86_64 ]; then
    for precision in bf16 f32; do
        "$DLC" opt plain.dlc --passes precision,layout,fuse,lower,rewrite --rewrite winograd=2 --precision $precision --target x86-64-v4+bf16 >out 2>err ||
            fail "the rewrite does not run"
        grep -q "winograd2: $precision\[4,4,24,40\]" out || fail "points of $precision are of another type: $(grep winograd2 out)"
    done
fi
if [ "$(uname -m)" = x86_64 ]; then
    "$DLC" opt cut.dlc --passes const_fold,layout,fuse,lower,rewrite --rewrite winograd=2 --target x86-64-v4+bf16 >out 2>err || fail "the rewrite does not run"
    grep -q "winograd2: f32\\[4,4,24,40\\]" out || fail "points of a model's own bf16 are cut: $(grep winograd2 out)"
fi
"$DLC" run plain.dlc --input x=random:7 --input z=random:8 --expect y.npz --atol 0.1 --precision bf16 --rewrite winograd=2 >out 2>err ||
    fail "Winograd in bf16: $(cat out err)"
# So are those of tiles in one direction, whose filters are several side by side.
along() {
    cat <<TEXT
graph @along(%x: f32[2,24,9,11]) -> %y {
  %w: f32[40,24,1,7] = const hash(00000000000000d1)
  %y: f32[2,40,9,11] = conv %x, %w {pads=[0, 3, 0, 3]}
}
TEXT
}
along >along.dlc
along | sed 's/%y: \(.*\)conv %x, %w {/%xb: bf16[2,24,9,11] = cast %x {dtype=bf16}\n  %wb: bf16[40,24,1,7] = cast %w {dtype=bf16}\n  %y: \1conv %xb, %wb {dtype=f32, /' \
    >cut_along.dlc
"$DLC" run cut_along.dlc --interpret --input x=random:7 --outputs along.npz -q || fail "no expected output"
[ "$(uname -m)" != x86_64 ] || expect 0 "winograd3: bf16[6,2,24,40]" "$DLC" opt along.dlc --passes precision,layout,fuse,lower,rewrite \
    --rewrite winograd=3 --precision bf16 --target x86-64-v4+bf16
expect 0 "" "$DLC" run along.dlc --input x=random:7 --expect along.npz --atol 0.1 --precision bf16 --rewrite winograd=3
# The instruction is used where the target has it, in f32 nowhere.
if [ "$(uname -m)" = x86_64 ]; then
    "$DLC" compile plain.dlc --precision bf16 --target x86-64-v4+bf16 --emit asm -o bf16.s -q || fail "no assembly"
    "$DLC" compile plain.dlc --precision f32 --target x86-64-v4+bf16 --emit asm -o f32.s -q || fail "no assembly"
    grep -q vdpbf16ps bf16.s || fail "no products of bf16"
    ! grep -q vdpbf16ps f32.s || fail "products of bf16 nobody asked for"
fi
"$DLC" run plain.dlc --interpret --input x=random:7 --input z=random:8 --outputs f32.npz -q || fail "no expected output"
expect 0 "" "$DLC" run plain.dlc --input x=random:7 --input z=random:8 --expect f32.npz --precision f32
expect 2 "precision 'f8' is none of f32 and bf16" "$DLC" compile plain.dlc -o m.so --precision f8
"$DLC" compile plain.dlc -o m.so -q || fail "does not compile"
expect 2 "precision" "$DLC" run m.so --precision bf16
finish
