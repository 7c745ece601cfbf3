# Schedules from a text file in place of chosen ones: what a module prints gives the same executable, and what is wrong is said.
. "$1/cli/lib.sh"

module_of() { "$DLC" compile "$1" --target "$2" --dump-after choose -o unused.so -q >"$3" 2>err || fail "no module of $1"; }

mkdir chosen replayed
cp "$repository/models/digits.onnx" .
cat >mlp.dlc <<'END'
graph @mlp(%x: f32[n,64]) -> %y {
  %w: f32[64,96] = const hash(00000000000000aa)
  %v: f32[96,48] = const hash(00000000000000bb)
  %a: f32[n,96] = matmul %x, %w
  %r: f32[n,96] = relu %a
  %y: f32[n,48] = matmul %r, %v
}
END
cat >norm.dlc <<'END'
graph @norm(%x: f32[40,33], %u: f32[33,40]) -> %y {
  %m: f32[40,1] = reduce_sum %x {axes=[1], keepdims=1}
  %d: f32[40,33] = div %x, %m
  %t: f32[40,33] = transpose %u {perm=[1,0]}
  %y: f32[40,33] = add %d, %t
}
END
for model in digits.onnx mlp.dlc norm.dlc; do
    for target in x86-64-v3 x86-64-v4 sm_75; do
        emulate=
        [ $target = sm_75 ] && emulate=--emulate-gpu
        module_of $model $target module.txt
        expect 0 "" "$DLC" compile $model --target $target $emulate -o chosen/m.so
        expect 0 "kernels have a schedule from here, for $target" "$DLC" compile $model --target $target $emulate --schedule module.txt -o replayed/m.so
        cmp -s chosen/m.so replayed/m.so || fail "$model, $target: its own schedules give another executable"
    done
done

# kernels alone, under other names; another loop order and other tiles
cat >relu.dlc <<'END'
graph @relu(%x: f32[40,64]) -> %y {
  %y: f32[40,64] = relu %x
}
END
module_of relu.dlc x86-64-v3 module.txt
cat >mine.txt <<'END'
# as it prints, but for names
kernel @mine(a: f32[2560]) -> (b: f32[2560]) {
  axis p=2560
  s[p] = max(0.0, a[p]) -> b[p]
}
schedule x86-64-v4 {
  for p {
    s
  }
}
schedule x86-64-v3 {
  for p:40, unroll p {
    s
  }
}

kernel @other(a: f32[7]) -> (b: f32[7]) {
  axis p=7
  s[p] = a[p] + a[p] -> b[p]
}
schedule x86-64-v3 {
  for p {
    s
  }
}
END
expect 0 "1 of 1 kernels have a schedule from here, for x86-64-v3;1 fit no kernel of the model, or come second: other (line 21)" \
    "$DLC" compile relu.dlc --target x86-64-v3 --schedule mine.txt -o mine.so
"$DLC" compile relu.dlc --target x86-64-v3 --schedule mine.txt --dump-after choose -o unused.so -q >out 2>err
grep -q ":40, unroll" out || fail "the schedule given is not the one in the module"

# operands in another order, a kernel named by its node or by its hash; what is for nobody is said
cat >product.dlc <<'END'
graph @product(%x: f32[40,64], %w: f32[64,32], %z: f32[40,32]) -> %y {
  %a: f32[40,32] = matmul %x, %w
  %b: f32[40,32] = add %a, %z
  %y: f32[40,32] = relu %b
}
END
cat >tree.txt <<'END'
schedule x86-64-v3 {
  par i:3, j:16 {
    a = dot fma i x j over [k] in reg
    as a {
      r
    }
  }
}
END
sed 's/x86-64-v3/x86-64-v4/' tree.txt >tree4.txt
cat >commuted.txt - tree.txt tree4.txt <<'END'
kernel @commuted(x: f32[40,64], w: f32[64,32], z: f32[40,32]) -> (y: f32[40,32]) {
  axis i=40, j=32, k=64
  a[i,j] = sum(k) w[k, j] * x[i, k]
  r[i,j] = max(z[i, j] + a[i, j], 0.0) -> y[i, j]
}
END
expect 0 "1 of 1 kernels have a schedule from here, for x86-64-v3;1 for other targets: commuted (line 14)" \
    "$DLC" compile product.dlc --target x86-64-v3 --schedule commuted.txt -o chosen/p.so --schedule-out written.txt
grep -q "par i:3, j:16" written.txt || fail "the schedule written is not the one that was given"
expect 0 "1 of 1 kernels have a schedule from here" "$DLC" compile product.dlc --target x86-64-v3 --schedule written.txt -o replayed/p.so
cmp -s chosen/p.so replayed/p.so || fail "the schedules written make another executable"
expect 0 "for x86-64-v3;for x86-64-v4;for x86-64-v2;2 for other targets" \
    "$DLC" compile product.dlc --target x86-64-v3,x86-64-v4,x86-64-v2 --schedule commuted.txt -o three.so --schedule-out three.txt
[ "$(grep -c "par i:3" three.txt)" = 2 ] || fail "the schedules of three targets are not written"
sed 's/ a = / matmul = /; s/as a/as matmul/; s/ r$/ relu/' tree.txt >named.txt
for name in 'of "b"' "$(sed -n 's/^# \(hash([0-9a-f]*)\).*/\1/p' written.txt)"; do
    { echo "kernel $name"; cat named.txt; echo 'kernel of "nothing"'; cat named.txt; } >reference.txt
    expect 0 "1 of 1 kernels have a schedule from here;fit no kernel of the model, or come second: nothing (line 11)" \
        "$DLC" compile product.dlc --target x86-64-v3 --schedule reference.txt -o replayed/p.so
    cmp -s chosen/p.so replayed/p.so || fail "a schedule for the kernel '$name' makes another executable"
done

# a module that has schedules takes others, and keeps those that nobody gives others for; without the pass it is said
for after in choose plan_memory; do
    "$DLC" compile product.dlc --target x86-64-v3 --dump-after $after -o unused.so -q >module.txt 2>err || fail "no module after $after"
    expect 0 "1 of 1 kernels have a schedule from here" "$DLC" compile module.txt --schedule commuted.txt -o m.so --schedule-out m.txt
    grep -q "par i:3, j:16" m.txt || fail "a module after $after keeps its schedule"
    sed 's/f32\[64,32\]/f32[64,33]/; s/j=32/j=33/; s/f32\[40,32\]/f32[40,33]/g' commuted.txt >none.txt
    expect 0 "0 of 1 kernels have a schedule from here" "$DLC" compile module.txt --schedule none.txt -o m.so --schedule-out m.txt
    sed -n '/^schedule/,/^}/p' module.txt | cmp -s - "$(sed -n '/^schedule/,/^}/p' m.txt >kept.txt; echo kept.txt)" ||
        fail "a module after $after loses its schedule"
done
expect 2 "needs schedules" "$DLC" compile module.txt --schedule commuted.txt --passes plan_memory -o m.so
expect 2 "schedules are taken by the pass 'choose'" "$DLC" opt product.dlc --schedule commuted.txt --passes dce

# a buffer beside a symbol of its name is called otherwise, in schedules, too
cat >symbol.dlc <<'END'
graph @symbol(%x: f32[w,64]) -> %y {
  %w: f32[64,32] = const fill(2)
  %y: f32[w,32] = matmul %x, %w
}
END
"$DLC" compile symbol.dlc --target x86-64-v3 -o symbol.so --schedule-out symbol.txt -q || fail "a buffer has a symbol's name"
grep -q 'copy columns = matmul.w_1 ' symbol.txt || fail "a schedule has another name of a buffer than its kernel"
expect 0 "1 of 1 kernels have a schedule from here" "$DLC" compile symbol.dlc --target x86-64-v3 --schedule symbol.txt -o replayed/symbol.so
cmp -s symbol.so replayed/symbol.so || fail "a schedule written beside a symbol makes another executable"

# the example, on the first of its convolutions
example=$repository/examples/schedules/conv3x3.txt
{
    cat <<'END'
module @conv for x86-64-v4 after rewrite {
  input %x: f32[56,56,64]
  output %y: f32[56,56,64]
  const %w: f32[64,64,3,3] = hash(00000000000000aa)
  const %b: f32[64] = hash(00000000000000bb)
}
END
    sed -n '/^kernel/,/^}/p; /^schedule/q' "$example"
    echo 'steps {'
    echo '  launch 0 (%x, %w, %b) -> (%y) from "conv"'
    echo '}'
} >conv.dlc
expect 0 "1 of 1 kernels have a schedule from here, for x86-64-v4;6 fit no kernel" \
    "$DLC" compile conv.dlc --target x86-64-v4 --schedule "$example" -o conv.so

# refused: a sentence, the kernel, the line
sed 's/unroll p {/for p:40 {/' mine.txt >wrong.txt
expect 1 "for p:40 is no part of for p:40" "$DLC" compile relu.dlc --target x86-64-v3 --schedule wrong.txt -o wrong.so
echo "schedules" >text.txt
expect 1 "text.txt;line 1: a kernel is due" "$DLC" compile relu.dlc --target x86-64-v3 --schedule text.txt -o wrong.so
expect 5 "nowhere.txt" "$DLC" compile relu.dlc --schedule nowhere.txt -o wrong.so
finish
