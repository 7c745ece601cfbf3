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
expect 2 "there is no rewrite 'split'; there are none, split=N with a number of at least 2" "$DLC" compile few.dlc -o m.so --rewrite split
expect 2 "there is no rewrite 'split=1'" "$DLC" compile few.dlc -o m.so --rewrite split=1
expect 0 'split' "$DLC" passes
finish
