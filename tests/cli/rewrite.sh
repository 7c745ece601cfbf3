# Rewritten kernels compute what the graph says, on a processor and as emulated CUDA; what is asked for is read.
. "$1/cli/lib.sh"

cat >few.dlc <<TEXT
graph @few(%x: f32[16,2048]) -> %y {
  %w: f32[2048,24] = const hash(00000000000000a1)
  %b: f32[24] = const hash(00000000000000a2)
  %m: f32[16,24] = matmul %x, %w
  %s: f32[16,24] = add %m, %b
  %y: f32[16,24] = tanh %s
}
TEXT
"$DLC" run few.dlc --interpret --input x=random:7 --outputs y.npz -q || fail "no expected output"
check() { expect 0 "" "$DLC" run few.dlc --input x=random:7 --expect y.npz "$@"; }
check --rewrite split=8
check --rewrite split=64 --threads 2
if [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    expect 0 'matmul.parts' "$DLC" opt few.dlc --passes layout,fuse,lower,rewrite --target sm_80
    check --target sm_80 --emulate-gpu
fi
"$DLC" opt few.dlc --passes layout,fuse,lower,rewrite --target sm_80 --rewrite none >out 2>err
grep -q parts out && fail "--rewrite none rewrites"
expect 0 'matmul.parts' "$DLC" opt few.dlc --passes layout,fuse,lower,rewrite --rewrite split=4
expect 2 "there is no rewrite 'split'; there are none, winograd=N, split=N with a number of at least 2" "$DLC" compile few.dlc -o m.so --rewrite split
expect 2 "there is no rewrite 'split=1'" "$DLC" compile few.dlc -o m.so --rewrite split=1
expect 0 'split' "$DLC" passes

# Convolutions by tiles: filled and not, two images, what follows; as code of this machine and of smaller ones.
cat >conv.dlc <<TEXT
graph @conv(%x: f32[2,8,19,14]) -> %y {
  %v: f32[48,8,1,1] = const hash(00000000000000a3)
  %w: f32[40,48,3,3] = const hash(00000000000000a4)
  %u: f32[16,40,3,3] = const hash(00000000000000a5)
  %e: f32[2,48,19,14] = conv %x, %v
  %c: f32[2,40,19,14] = conv %e, %w {pads=[1, 1, 1, 1]}
  %r: f32[2,40,19,14] = relu %c
  %d: f32[2,16,17,12] = conv %r, %u
  %k: f32[] = const [0.001]
  %y: f32[2,16,17,12] = mul %d, %k
}
TEXT
"$DLC" run conv.dlc --interpret --input x=random:7 --outputs z.npz -q || fail "no expected output"
for m in 2 4; do
    expect 0 "w.winograd$m" "$DLC" opt conv.dlc --passes layout,fuse,lower,rewrite --rewrite winograd=$m
    for target in native x86-64-v3 x86-64-v2; do
        [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
        expect 0 "" "$DLC" run conv.dlc --input x=random:7 --expect z.npz --rewrite winograd=$m --target $target --threads 2
    done
done
expect 2 "winograd '3' is none of auto, off, 2 and 4" "$DLC" compile conv.dlc -o m.so --winograd 3
finish
