# Modules in text form: they read back, and lead to the same executable as the graph they came from.
. "$1/cli/lib.sh"

# A text holds large constants by their hash: what a rewrite folds anew would not be in it.
before=dce,cse,const_fold,simplify,const_fold,simplify,cse,dce
"$DLC" opt "$repository/models/digits.onnx" --passes $before -o g.dlc -q || fail "no graph"
for target in x86-64-v2 sm_80; do
    kind=so
    [ $target = sm_80 ] && kind=cu
    "$DLC" opt g.dlc --passes layout,fuse,lower --target $target -o m.dlc -q || fail "no module"
    "$DLC" opt m.dlc -o n.dlc -q && cmp -s m.dlc n.dlc || fail "a module does not read back for $target"
    "$DLC" compile g.dlc --rewrite none --passes layout,fuse,lower,choose,transfer,plan_memory --target $target --emit $kind -o x.$kind -q || fail "g.dlc"
    mv x.$kind from_graph
    "$DLC" compile m.dlc --rewrite none --emit $kind -o x.$kind -q || fail "m.dlc" # the target is that of the text
    cmp -s x.$kind from_graph || fail "graph and module lead to different code for $target"
    "$DLC" opt m.dlc --passes choose,transfer,plan_memory -o p.dlc -q || fail "no plan"
    "$DLC" opt p.dlc -o n.dlc -q && cmp -s p.dlc n.dlc || fail "a module with schedules does not read back for $target"
    "$DLC" compile p.dlc --rewrite none --emit $kind -o x.$kind -q || fail "p.dlc"
    cmp -s x.$kind from_graph || fail "graph and planned module lead to different code for $target"
done

"$DLC" opt g.dlc --passes layout,fuse,lower --target x86-64-v2 -o m.dlc -q
expect 0 'steps with;arena' "$DLC" inspect m.dlc --target sm_75
expect 0 'steps with' "$DLC" inspect g.dlc --target sm_75 --passes layout,fuse,lower # no schedules to report of
expect 0 'logits' "$DLC" run m.dlc --target native
expect 2 "pass 'dce' works on graphs; this is a module" "$DLC" opt m.dlc --passes dce
expect 2 'the interpreter runs graphs' "$DLC" run m.dlc --interpret
expect 2 'fusion is decided before' "$DLC" explain m.dlc
expect 2 'shapes can be given for ONNX models' "$DLC" opt m.dlc --shape image=1x1x8x8
expect 2 'typical sizes can be given for graphs' "$DLC" opt m.dlc --typical image=1x1x8x8
expect 0 'in 0..2147483647 usual 1' "$DLC" opt g.dlc --passes layout,fuse,lower --typical 'image=1x1x8x8'
expect 0 'in 0..2147483647 usual 16' "$DLC" opt g.dlc --passes layout,fuse,lower --typical 'image=16x?x?x8'
sed 's/after lower/after dce/' m.dlc >wrong.dlc
expect 1 "pass 'dce' leaves no module" "$DLC" opt wrong.dlc
sed 's/for x86-64-v2/for z80/' m.dlc >wrong.dlc
expect 1 "wrong.dlc:1:20: there is no target 'z80'" "$DLC" opt wrong.dlc
sed 's/^steps {/ steps {/; s/launch 0 (/launch 0 (%nothing, /' m.dlc >wrong.dlc
expect 1 'value %nothing is not declared' "$DLC" opt wrong.dlc
# a kernel that is wrong is the text's fault, and reading ends there
printf 'module @m for x86-64-v3 after lower {\n}\n\nkernel @k(x: f32[4]) -> (y: f32[4]) {\n  axis i0=4\n  n[i0] = neg(x[i0])\n}\n\nsteps {\n}\n' >wrong.dlc
expect 1 "wrong.dlc:9:1: kernel 'k': no stage stores the output 'y'" timeout 20 "$DLC" opt wrong.dlc
# kernels that no step launches
kernel() { printf 'kernel @%s(x: f32[4]) -> (y: f32[4]) {\n  axis i0=4\n  y[i0] = neg(x[i0]) -> y[i0]\n}\n' "$1"; }
{
    printf 'module @m for x86-64-v3 after lower {\n  input %%x: f32[4]\n  output %%y: f32[4]\n}\n'
    kernel unused
    kernel used
    kernel behind
    printf 'steps {\n  launch 1 (%%x) -> (%%y)\n}\n'
} >spare.dlc
"$DLC" compile spare.dlc --schedule-out written.txt -o spare.so -q || fail "kernels that nobody launches"
[ "$(sed -n 's/^kernel @\([a-z]*\).*/\1/p' written.txt)" = used ] || fail "kernels that nobody launches are made"
finish
