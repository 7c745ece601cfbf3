# dlc compare: outputs beside what is right, and which node or pass parts from it. Differences are planted: by a tolerance of none,
# which all but one node keep, and by a peer whose model has another node.
. "$1/cli/lib.sh"

cat >one.dlc <<'END'
graph @f(%x: f32[4,8]) -> %y, %z {
  %b: f32[] = const [0.5]
  %a: f32[4,8] = neg %x
  %c: f32[4,8] = relu %a
  %d: f32[4,8] = abs %x
  %e: f32[4,8] = exp %d
  %g: f32[8,4] = transpose %e {perm=[1, 0]}
  %y: f32[8,4] = neg %g
  %z: f32[4,8] = mul %c, %b
}
END
expect 0 "= y;= z" "$DLC" compare one.dlc
expect 4 "≠ y;= z;1 of 2 outputs differ from those of the oracle" "$DLC" compare one.dlc --rtol 0
expect 4 "= d  ;≠ e  ;≠ g  " "$DLC" compare one.dlc --rtol 0 --values
expect 4 "first wrong: node 3 (exp), value 'e', of 7 nodes" "$DLC" compare one.dlc --rtol 0 --bisect nodes
grep -q "%e: f32\[4,8\] = exp %d" one.wrong.dlc && [ "$(grep -c ' = ' one.wrong.dlc)" = 1 ] || fail "one.wrong.dlc has more than the node"
expect 4 "≠ e;1 of 1 outputs" "$DLC" compare one.wrong.dlc --inputs one.wrong.npz --rtol 0
expect 4 '"value":"e";"nodes":1;"model":"small.dlc";"status":"mismatch"' \
    "$DLC" compare one.dlc --rtol 0 --bisect nodes --json -o small.dlc
[ -s small.dlc ] && [ -s small.npz ] || fail "small.dlc and small.npz are not written"
expect 4 "first wrong: pass 'layout', 'lower' or 'choose', or code generation" "$DLC" compare one.dlc --rtol 0 --bisect passes

# Values of strings are compared as strings: the oracle numbers them in another order.
cat >words.dlc <<'END'
string "-"
symbol n = dim(%x, 0) in 0..9
symbol p = opaque(%parts, 0) in 0..9
graph @f(%x: str[n]) -> %y {
  %cut: str[] = const [1]
  %parts: str[n,p], %count: i64[n] = text_split %x, %cut {symbol=1}
  %y: str[n,p] = text_join %parts, %parts
}
END
expect 0 "= parts;= y" "$DLC" compare words.dlc --values

# A product that is rounded when it is folded.
cat >fold.dlc <<'END'
graph @f(%x: f32[4,8]) -> %y {
  %p: f32[8] = const [0.1, 0.7, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9]
  %q: f32[8] = const [1.1, 100.7, 1.3, 0.43, 0.51, 0.16, 0.17, 0.19]
  %a: f32[8] = mul %p, %q
  %b: f32[8] = mul %a, %q
  %c: f32[4,8] = relu %x
  %y: f32[4,8] = mul %c, %b
}
END
expect 4 "first wrong: pass 'const_fold' (number 5, behind dce,cse,integers,dce)" "$DLC" compare fold.dlc --rtol 0 --bisect passes
expect 0 "= y" "$DLC" compare fold.dlc --bisect passes

# A long sum, of which every order of the terms has another last bit.
cat >order.dlc <<'END'
graph @f(%x: f32[1,4096], %w: f32[4096,8]) -> %y {
  %y: f32[1,8] = matmul %x, %w
}
END
expect 4 "first wrong: pass" "$DLC" compare order.dlc --rtol 0 --bisect passes --rewrite split=3

# A peer with one other node: found though all behind it differ too, in and behind a region, with sizes that the run knows.
cat >model.txt <<'END'
symbol n = dim(%x, 0) in 1..64
symbol c = data(%k, 0) in 0..1
graph @f(%x: f32[n,4], %k: bool[]) -> OUTPUTS {
  %half: f32[] = const [0.5]
  %a: f32[n,4] = mul %x, %half
  %i: bool[] = if {holds=[1 <= c]}
    %b: f32[n,4] = mul %a, %half
  %e: bool[] = else %i
    %d: f32[n,4] = INSIDE %a
  %o: bool[] = done %e
  %r: f32[n,4] = either %o, %b, %d
  %s: f32[n,4] = BEHIND %r
  %y: f32[n,4] = add %s, %a
}
END
cat >given.dlc <<'END'
graph @g() -> %x, %k {
  %a: f32[5,4] = const hash(00000000000000ff)
  %b: bool[] = const [true]
  %x: f32[5,4] = neg %a
  %k: bool[] = not %b
}
END
"$DLC" run given.dlc --outputs given.npz || fail "given.npz is not made"
planted() { # planted INSIDE BEHIND
    sed 's/OUTPUTS/%y/; s/INSIDE/neg/; s/BEHIND/abs/' model.txt >model.dlc
    sed "s/OUTPUTS/%a, %r, %s, %y/; s/INSIDE/$1/; s/BEHIND/$2/" model.txt >peer.dlc
}
printf '#!/bin/sh\nexec "%s" run peer.dlc --inputs "$4" --outputs "$5"\n' "$DLC" >peer
chmod +x peer
against() { # against CODE PATTERNS…
    expect "$1" "$2" "$DLC" compare model.dlc --inputs given.npz --against onnxruntime --python ./peer --bisect nodes
}
planted neg abs
against 0 "= y"
planted neg sqrt
against 4 "value 's', of 9 nodes;it is in model.wrong.dlc"
grep -q "%s: f32\[n,4\] = abs %r" model.wrong.dlc || fail "model.wrong.dlc is not the node abs"
planted relu abs
against 4 "value 'r', of 9 nodes;wrong only with the;'r' f32[5,4] is off"
grep -q "if {holds" model.wrong.dlc || fail "model.wrong.dlc has no region"

# What cannot be.
expect 2 "--bisect is 'x', where nodes or passes is wanted" "$DLC" compare one.dlc --bisect x
expect 2 "--against is 'x', where oracle or onnxruntime is wanted" "$DLC" compare one.dlc --against x
expect 2 "'./no-python' cannot be run; --python names one that has onnxruntime" \
    "$DLC" compare one.dlc --against onnxruntime --python ./no-python
printf '#!/bin/sh\necho "No module named '"'onnxruntime'"'"\nexit 1\n' >bare
chmod +x bare
expect 2 "'./bare' has no onnxruntime (No module named 'onnxruntime')" "$DLC" compare one.dlc --against onnxruntime --python ./bare
"$DLC" compile one.dlc -o one.so && expect 2 "is an executable; compare wants the model" "$DLC" compare one.so
finish
