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
expect 2 "there is no rewrite 'split'; there are none, samples=N, winograd=N, bf16x3=N, transposed=N, tabulate=N, split=N, windows=N, taps=N, pieces=N, positions=N with a number of at least 2" "$DLC" compile few.dlc -o m.so --rewrite split
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
# Windows along one direction, and of many taps, as code; what estimates take by themselves, and what --winograd leaves.
cat >taps.dlc <<TEXT
graph @taps(%x: f32[1,16,17,19]) -> %y {
  %v: f32[64,16,1,1] = const hash(00000000000000a3)
  %r: f32[64,64,1,7] = const hash(00000000000000a4)
  %c: f32[64,64,7,1] = const hash(00000000000000a5)
  %s: f32[48,64,5,5] = const hash(00000000000000a6)
  %u: f32[16,48,1,1] = const hash(00000000000000a7)
  %k: f32[] = const [0.0001]
  %z: f32[1,16,17,19] = mul %x, %k
  %a: f32[1,64,17,19] = conv %z, %v
  %b: f32[1,64,17,19] = conv %a, %r {pads=[0, 3, 0, 3]}
  %d: f32[1,64,17,19] = relu %b
  %e: f32[1,64,17,19] = conv %d, %c {pads=[3, 0, 3, 0]}
  %f: f32[1,48,17,19] = conv %e, %s {pads=[2, 2, 2, 2]}
  %y: f32[1,16,17,19] = conv %f, %u
}
TEXT
cat >line.dlc <<TEXT
graph @line(%x: f32[2,16,90]) -> %y {
  %v: f32[64,16,1] = const hash(00000000000000a3)
  %r: f32[64,64,3] = const hash(00000000000000a4)
  %u: f32[16,64,1] = const hash(00000000000000a7)
  %a: f32[2,64,90] = conv %x, %v
  %b: f32[2,64,90] = conv %a, %r {pads=[4, 4], dilations=[4]}
  %d: f32[2,64,90] = relu %b
  %y: f32[2,16,90] = conv %d, %u
}
TEXT
lowering=layout,fuse,lower,rewrite,choose
for target in native x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    expect 0 "r.winograd3;c.winograd3;s.winograd2;products = dot" "$DLC" opt taps.dlc --passes $lowering --target $target
    expect 0 "r.winograd4;products = dot" "$DLC" opt line.dlc --passes $lowering --target $target
    for graph in taps line; do
        "$DLC" run $graph.dlc --interpret --input x=random:7 --outputs $graph.npz -q || fail "no expected output"
        expect 0 "" "$DLC" run $graph.dlc --input x=random:7 --expect $graph.npz --target $target --threads 2
    done
done
"$DLC" opt taps.dlc --passes $lowering --winograd off >out 2>err || fail "does not run: $(cat err)"
! grep -q winograd out || fail "--winograd off leaves tiles"

# Samples of a batch one after the other: where it is asked for, as code, and where estimates say so.
cat >batch.dlc <<TEXT
graph @batch(%x: f32[6,16,13,11]) -> %y, %d {
  %v: f32[24,16,3,3] = const hash(00000000000000a3)
  %r: f32[24,1,3,3] = const hash(00000000000000a4)
  %u: f32[10,24] = const hash(00000000000000a7)
  %a: f32[6,24,13,11] = conv %x, %v {pads=[1, 1, 1, 1]}
  %b: f32[6,24,13,11] = conv %a, %r {pads=[1, 1, 1, 1], group=24}
  %c: f32[6,24,13,11] = relu %b
  %d: f32[6,24,13,11] = add %c, %a
  %m: f32[6,24] = reduce_mean %d {axes=[2, 3], keepdims=0}
  %t: f32[24,10] = transpose %u {perm=[1, 0]}
  %y: f32[6,10] = matmul %m, %t
}
TEXT
expect 0 "loop samples_done < 6;temp %x.one: f32[1,16,13,11] in %x at sample * 9152;temp %y.one: f32[1,10] in %y at sample * 40" "$DLC" opt batch.dlc --passes layout,fuse,lower,samples,rewrite,slices --rewrite samples=6
expect 0 "" "$DLC" opt batch.dlc --passes layout,fuse,lower,samples --rewrite samples=7
! grep -q loop out || fail "fewer samples than asked for go one by one"
"$DLC" run batch.dlc --interpret --input x=random:7 --outputs batch.npz -q || fail "no expected output"
for target in native x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    for threads in 1 2; do
        expect 0 "" "$DLC" run batch.dlc --input x=random:7 --expect batch.npz --rewrite samples=2 --target $target --threads $threads
    done
done
# As many as the run brings.
sed 's/f32\[6,/f32[n,/' batch.dlc >any.dlc
expect 0 "" "$DLC" compile any.dlc -o any.so --rewrite samples=2
for n in 0 1 6; do
    sed "s/f32\[6,/f32[$n,/" batch.dlc >few.dlc
    "$DLC" run few.dlc --interpret --input x=random:7 --outputs few.npz -q || fail "no expected output"
    for threads in 1 2; do
        expect 0 "" "$DLC" run any.so --input x=random:7 --shape x=${n}x16x13x11 --expect few.npz --threads $threads
    done
done
large() { # samples, rows and columns of an image
    cat <<TEXT
graph @large(%x: f32[$1,16,$2,$2]) -> %y {
  %v: f32[64,16,1,1] = const hash(00000000000000a3)
  %r: f32[64,1,3,3] = const hash(00000000000000a4)
  %a: f32[$1,64,$2,$2] = conv %x, %v
  %b: f32[$1,64,$2,$2] = relu %a
  %c: f32[$1,64,$2,$2] = conv %b, %r {pads=[1, 1, 1, 1], group=64}
  %d: f32[$1,64,$2,$2] = relu %c
  %m: f32[$1,64] = reduce_mean %d {axes=[2, 3], keepdims=0}
  %u: f32[64,4000] = const hash(00000000000000a7)
  %y: f32[$1,4000] = matmul %m, %u
}
TEXT
}
large 32 32 >large.dlc
large 2 16 >small.dlc
if [ "$(uname -m)" = x86_64 ]; then
    expect 0 "loop samples_done < 32" "$DLC" opt large.dlc --passes layout,fuse,lower,samples --fusion none --target x86-64-v4
    expect 0 "" "$DLC" opt small.dlc --passes layout,fuse,lower,samples --fusion none --target x86-64-v4
    ! grep -q loop out || fail "a batch that the caches hold goes sample by sample"
    expect 0 "" "$DLC" opt large.dlc --passes layout,fuse,lower,samples --fusion none --target sm_80
    ! grep -q loop out || fail "samples one by one on a device"
fi

# Bytes over their whole range, of either signedness: exact, by pairs of 16 bits. Tiles of 4 want results of 26 bits at most.
cat >tiles8.dlc <<TEXT
graph @bytes(%x: u8[2,8,19,14], %z: i8[1,64,9,11]) -> %y, %q, %e {
  %k: u8[] = const [19]
  %l: i8[] = const [-17]
  %v: i8[40,8,3,3] = const hash(00000000000000a4)
  %w: i8[48,64,3,3] = const fill(-128)
  %u: u8[48,64,3,3] = const fill(255)
  %a: u8[2,8,19,14] = mul %x, %k
  %b: i8[1,64,9,11] = mul %z, %l
  %y: i32[2,40,19,14] = conv %a, %v {pads=[1, 1, 1, 1], dtype=i32}
  %c: i32[1,48,9,11] = conv %b, %u {pads=[1, 1, 1, 1], dtype=i32}
  %q: i32[1,48,9,11] = neg %c
  %e: i32[1,48,7,9] = conv %b, %w {dtype=i32}
}
TEXT
exact() { # MODEL TEXTS: by tiles of bytes, to the last bit
    "$DLC" run "$1" --interpret --input x=random:7 --input z=random:8 --outputs z8.npz -q || fail "no expected output"
    for target in x86-64-v2 x86-64-v3 native; do
        [ "$(uname -m)" = x86_64 ] || continue
        for m in 2 4; do
            [ $target = native ] || expect 0 "w.winograd$m;u.winograd$m;products = dot pmaddwd$2" "$DLC" opt "$1" \
                --passes layout,fuse,lower,rewrite,choose --rewrite winograd=$m --target $target
            expect 0 "" "$DLC" run "$1" --input x=random:7 --input z=random:8 --expect z8.npz --rtol 0 --atol 0 --rewrite winograd=$m \
                --target $target --threads 2
        done
    done
}
exact tiles8.dlc ""
expect 0 "w.winograd4;products = dot vpdpwssd" "$DLC" opt tiles8.dlc --passes layout,fuse,lower,rewrite,choose --rewrite winograd=4 \
    --target x86-64-v4+vnni
# The largest sums that have bits enough, of either sign, and more channels than that.
cat >most8.dlc <<TEXT
graph @most(%x: u8[1,114,9,9], %z: u8[1,114,9,9]) -> %y, %q {
  %k: u8[] = const [255]
  %w: i8[16,114,3,3] = const fill(-128)
  %u: i8[16,114,3,3] = const fill(127)
  %a: u8[1,114,9,9] = max %x, %k
  %b: u8[1,114,9,9] = max %z, %k
  %y: i32[1,16,9,9] = conv %a, %w {pads=[1, 1, 1, 1], dtype=i32}
  %c: i32[1,16,9,9] = conv %b, %u {pads=[1, 1, 1, 1], dtype=i32}
  %q: i32[1,16,9,9] = neg %c
}
TEXT
exact most8.dlc ""
sed 's/114/116/g' most8.dlc >wide8.dlc
for stays in "wide8.dlc 4 x86-64-v3" "tiles8.dlc 2 x86-64-v4+amx_int8"; do
    by=${stays#* }
    expect 0 "" "$DLC" opt "${stays%% *}" --passes layout,fuse,lower,rewrite --rewrite "winograd=${by% *}" --target "${by#* }" -o stays.dlc
    { grep -q '^kernel' stays.dlc && ! grep -q "w.winograd" stays.dlc; } || fail "bytes by tiles: $stays"
done

# Images of sizes that only the run knows: smaller than a tile, of whole units and of more than that.
sized() { sed "s/,19,14\]/,$1,$2]/g; s/,17,12\]/,$3,$4]/g" conv.dlc; }
sized h w "h - 2" "w - 2" >sizes.dlc
images="3x3 4x61 37x30"
for size in $images; do
    h=${size%x*} w=${size#*x}
    sized "$h" "$w" $((h - 2)) $((w - 2)) >one.dlc
    "$DLC" run one.dlc --interpret --input x=random:7 --outputs "$size.npz" -q || fail "no expected output"
done
for m in 2 4; do
    expect 0 "w.winograd$m;products = dot" "$DLC" opt sizes.dlc --passes layout,fuse,lower,rewrite,choose --rewrite winograd=$m
    for target in native x86-64-v3 x86-64-v2; do
        [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
        expect 0 "" "$DLC" compile sizes.dlc -o sizes.so --rewrite winograd=$m --target $target
        for size in $images; do
            expect 0 "" "$DLC" run sizes.so --shape "x=2x8x$size" --input x=random:7 --expect "$size.npz" --threads 2
        done
    done
done

# Windows along three directions: of stride 1 and 2 along the first, and two taps there; sizes known and not.
deep() { # DEPTH HEIGHT WIDTH, then those of the second's results and of the third's depth
    cat <<TEXT
graph @deep(%x: f32[2,8,$1,$2,$3]) -> %y, %z {
  %v: f32[48,8,1,1,1] = const hash(00000000000000a3)
  %w: f32[40,48,3,3,3] = const hash(00000000000000a4)
  %u: f32[16,40,2,3,3] = const hash(00000000000000a5)
  %t: f32[16,48,3,3,3] = const hash(00000000000000a6)
  %e: f32[2,48,$1,$2,$3] = conv %x, %v
  %c: f32[2,40,$1,$2,$3] = conv %e, %w {pads=[1, 1, 1, 1, 1, 1]}
  %r: f32[2,40,$1,$2,$3] = relu %c
  %d: f32[2,16,$4,$5,$6] = conv %r, %u
  %k: f32[] = const [0.001]
  %y: f32[2,16,$4,$5,$6] = mul %d, %k
  %s: f32[2,16,$7,$2,$3] = conv %e, %t {pads=[1, 1, 1, 1, 1, 1], strides=[2, 1, 1]}
  %z: f32[2,16,$7,$2,$3] = mul %s, %k
}
TEXT
}
deep d h w "d - 1" "h - 2" "w - 2" "floordiv(d - 1, 2) + 1" >sizes.dlc
images="5x9x14 2x4x21"
for size in $images; do
    d=${size%%x*} h=${size#*x}
    w=${h#*x} h=${h%x*}
    deep "$d" "$h" "$w" $((d - 1)) $((h - 2)) $((w - 2)) $(((d - 1) / 2 + 1)) >one.dlc
    "$DLC" run one.dlc --interpret --input x=random:7 --outputs "$size.npz" -q || fail "no expected output"
    expect 0 "w.winograd2;u.winograd2;t.winograd2;products = dot" "$DLC" opt one.dlc --passes layout,fuse,lower,rewrite,choose --rewrite winograd=2
    for way in "2 native" "4 native" "2 x86-64-v2"; do
        [ "${way#* }" = native ] || [ "$(uname -m)" = x86_64 ] || continue
        expect 0 "" "$DLC" run one.dlc --input x=random:7 --expect "$size.npz" --rewrite "winograd=${way% *}" --target "${way#* }" --threads 2
    done
done
expect 0 "w.winograd2;u.winograd2;t.winograd2;products = dot" "$DLC" opt sizes.dlc --passes layout,fuse,lower,rewrite,choose --rewrite winograd=2
expect 0 "" "$DLC" compile sizes.dlc -o sizes.so --rewrite winograd=2
for size in $images; do
    expect 0 "" "$DLC" run sizes.so --shape "x=2x8x$size" --input x=random:7 --expect "$size.npz" --threads 2
done
cat >deep8.dlc <<TEXT
graph @bytes(%x: u8[2,8,3,11,14], %z: i8[1,64,9,11]) -> %y, %e {
  %k: u8[] = const [19]
  %w: i8[40,8,3,3,3] = const hash(00000000000000a4)
  %u: i8[48,64,3,3] = const fill(-128)
  %a: u8[2,8,3,11,14] = mul %x, %k
  %y: i32[2,40,3,11,14] = conv %a, %w {pads=[1, 1, 1, 1, 1, 1], dtype=i32}
  %e: i32[1,48,7,9] = conv %z, %u {dtype=i32}
}
TEXT
exact deep8.dlc ""

# Dilated ones by phases: of known sizes and of those that only the run knows; bytes as exactly.
dilated() { # HEIGHT WIDTH
    cat <<TEXT
graph @dilated(%x: f32[2,8,$1,$2]) -> %y {
  %v: f32[48,8,1,1] = const hash(00000000000000a3)
  %w: f32[40,48,3,3] = const hash(00000000000000a4)
  %u: f32[16,40,3,3] = const hash(00000000000000a5)
  %e: f32[2,48,$1,$2] = conv %x, %v
  %c: f32[2,40,$1,$2] = conv %e, %w {pads=[2, 2, 2, 2], dilations=[2, 2]}
  %r: f32[2,40,$1,$2] = relu %c
  %d: f32[2,16,$1,$2] = conv %r, %u {pads=[1, 5, 1, 5], dilations=[1, 5]}
  %k: f32[] = const [0.001]
  %y: f32[2,16,$1,$2] = mul %d, %k
}
TEXT
}
dilated h w >sizes.dlc
images="16x10 19x14 3x21"
for size in $images; do
    dilated "${size%x*}" "${size#*x}" >"$size.dlc"
    "$DLC" run "$size.dlc" --interpret --input x=random:7 --outputs "$size.npz" -q || fail "no expected output"
done
for m in 2 4; do
    expect 0 "w.winograd$m;u.winograd$m;products = dot;oh_phase" "$DLC" opt sizes.dlc --passes layout,fuse,lower,rewrite,choose \
        --rewrite winograd=$m
    for target in native x86-64-v3 x86-64-v2; do
        [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
        expect 0 "" "$DLC" compile sizes.dlc -o sizes.so --rewrite winograd=$m --target $target
        for size in $images; do
            expect 0 "" "$DLC" run "$size.dlc" --input x=random:7 --expect "$size.npz" --rewrite winograd=$m --target $target --threads 2
            expect 0 "" "$DLC" run sizes.so --shape "x=2x8x$size" --input x=random:7 --expect "$size.npz" --threads 2
        done
    done
done
sed 's/{pads=\[1, 1, 1, 1\], /{pads=[3, 2, 3, 2], dilations=[3, 2], /; s/conv %b, %w {/&pads=[1, 1, 1, 1], dilations=[2, 2], /' tiles8.dlc >dilated8.dlc
grep -q 'dilations=\[2, 2\]' dilated8.dlc || fail "no dilated bytes"
exact dilated8.dlc ";oh_phase"

# Windows by one axis after the other: types, borders, and rows that vectors do not fill.
cat >pools.dlc <<TEXT
graph @pools(%x: f32[2,20,13,h], %q: u8[1,24,13,17]) -> %a, %b, %c, %d {
  %a: f32[2,20,13,h] = max_pool %x {kernel=[5, 5], pads=[2, 2, 2, 2]}
  %b: f32[2,20,7,(h + 1) // 2] = avg_pool %x {kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}
  %c: u8[1,24,13,17] = max_pool %q {kernel=[13, 13], pads=[6, 6, 6, 6]}
  %d: u8[1,24,7,13] = max_pool %q {kernel=[4, 3], strides=[2, 1], dilations=[1, 3], pads=[1, 1, 2, 1]}
}
TEXT
for h in 3 17 40; do
    sed "s/(h + 1) \/\/ 2/$(((h + 1) / 2))/g; s/,h\]/,$h]/g" pools.dlc >"pools$h.dlc"
    "$DLC" run "pools$h.dlc" --interpret --input x=random:7 --input q=random:8 --outputs "pools$h.npz" -q || fail "no expected output"
done
for target in native x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    for rewrite in none windows=2 windows=4; do
        expect 0 "" "$DLC" compile pools.dlc -o pools.so --rewrite $rewrite --target $target
        for h in 3 17 40; do
            expect 0 "" "$DLC" run pools.so --shape "x=2x20x13x$h" --input x=random:7 --input q=random:8 --expect "pools$h.npz" --threads 2
            expect 0 "" "$DLC" run "pools$h.dlc" --input x=random:7 --input q=random:8 --expect "pools$h.npz" --rewrite $rewrite --target $target
        done
    done
    expect 0 "" "$DLC" run pools40.dlc --input x=random:7 --input q=random:8 --expect pools40.npz --target $target
done
if [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    expect 0 "" "$DLC" run pools17.dlc --input x=random:7 --input q=random:8 --expect pools17.npz --rewrite windows=2 --target sm_80 --emulate-gpu
fi

# Resized images along one axis, then the other: larger and smaller, of every filter, and of bytes; channels first and between convolutions.
cat >resized.dlc <<TEXT
graph @resized(%x: f32[2,3,19,45], %q: u8[1,2,30,67]) -> %a, %b, %c, %d, %e {
  %w: f32[24,3,1,1] = const hash(00000000000000a6)
  %v: f32[4,24,1,1] = const hash(00000000000000a7)
  %a: f32[2,3,38,90] = resize %x {dims=[2, 3, 38, 90], mode="linear"}
  %b: f32[2,3,13,20] = resize %x {dims=[2, 3, 13, 20], mode="cubic", antialias=1}
  %c: u8[1,2,61,64] = resize %q {dims=[1, 2, 61, 64], mode="linear"}
  %d: f32[2,3,91,46] = resize %x {dims=[2, 3, 91, 46], mode="linear", coord="align_corners"}
  %p: f32[2,24,19,45] = conv %x, %w
  %r: f32[2,24,60,22] = resize %p {dims=[2, 24, 60, 22], mode="linear"}
  %e: f32[2,4,60,22] = conv %r, %v
}
TEXT
"$DLC" run resized.dlc --interpret --input x=random:7 --input q=random:8 --outputs resized.npz -q || fail "no expected output"
resized() { expect 0 "" "$DLC" run resized.dlc --input x=random:7 --input q=random:8 --expect resized.npz "$@"; }
for target in native x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    resized --target $target
    resized --target $target --rewrite taps=2 --threads 2
    resized --target $target --rewrite none
done
if [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    resized --rewrite taps=2 --target sm_80 --emulate-gpu
fi

# Borders that reflect, repeat and wrap, by pieces: short and long ones, rows shorter than a vector, an image's every other point.
cat >borders.dlc <<TEXT
graph @borders(%x: f32[2,3,9,40], %q: u8[1,2,7,67], %z: f32[5,3]) -> %a, %b, %c, %d, %e, %f {
  %a: f32[2,3,15,46] = pad %x {pads=[0, 0, 3, 3, 0, 0, 3, 3], mode="reflect"}
  %b: f32[2,3,11,71] = pad %x {pads=[0, 0, 1, 30, 0, 0, 1, 1], mode="edge"}
  %c: u8[1,2,7,110] = pad %q {pads=[0, 0, 0, 21, 0, 0, 0, 22], mode="wrap"}
  %d: u8[1,2,9,140] = pad %q {pads=[0, 0, 2, 66, 0, 0, 0, 7], mode="reflect"}
  %e: f32[5,9] = pad %z {pads=[0, 2, 0, 4], mode="edge"}
  %f: f32[2,3,9,20] = resize %x {dims=[2, 3, 9, 20], mode="nearest"}
}
TEXT
"$DLC" run borders.dlc --interpret --input x=random:7 --input q=random:8 --input z=random:9 --outputs borders.npz -q || fail "no expected output"
borders() { expect 0 "" "$DLC" run borders.dlc --input x=random:7 --input q=random:8 --input z=random:9 --rtol 0 --atol 0 --expect borders.npz "$@"; }
for target in native x86-64-v4 x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    [ $target != x86-64-v4 ] || grep -q avx512vl /proc/cpuinfo || continue
    borders --target $target
    borders --target $target --rewrite pieces=8 --threads 2
    borders --target $target --rewrite none
done
if [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    borders --rewrite pieces=8 --target sm_80 --emulate-gpu
fi

# What depends on a byte alone becomes a table: of both signs, in a chain, two of a kernel; every byte, vectors that rows do not fill. So
# does what depends on a float that is a byte between: of logarithms, NaN and infinity among them.
cat >bytes.dlc <<TEXT
graph @bytes(%x: u8[n,67], %z: i8[n,67]) -> %p, %q, %r, %w, %y {
  %s: f32[] = const [0.05]
  %k: f32[] = const [101.37]
  %a: f32[n,67] = cast %x {dtype=f32}
  %b: f32[n,67] = mul %a, %s
  %c: f32[n,67] = tanh %b
  %d: f32[n,67] = mul %c, %k
  %p: i8[n,67] = cast %d {dtype=i8}
  %e: f32[n,67] = cast %z {dtype=f32}
  %f: f32[n,67] = exp %e
  %q: u8[n,67] = cast %f {dtype=u8}
  %g: i8[n,67] = add %p, %z
  %h: f32[n,67] = cast %g {dtype=f32}
  %i: f32[n,67] = mul %h, %s
  %j: f32[n,67] = sigmoid %i
  %l: f32[n,67] = mul %j, %k
  %r: u8[n,67] = cast %l {dtype=u8}
  %five: f32[] = const [5]
  %m: f32[n,67] = sub %b, %five
  %o: f32[n,67] = log %m
  %t: f32[n,67] = mul %o, %k
  %u: f32[n,67] = round %t
  %u8: u8[n,67] = cast %u {dtype=u8}
  %uf: f32[n,67] = cast %u8 {dtype=f32}
  %us: f32[n,67] = mul %uf, %s
  %ut: f32[n,67] = erf %us
  %uk: f32[n,67] = mul %ut, %k
  %w: u8[n,67] = cast %uk {dtype=u8}
  %v: f32[n,67] = mul %o, %five
  %vr: f32[n,67] = round %v
  %i8: i8[n,67] = cast %vr {dtype=i8}
  %if: f32[n,67] = cast %i8 {dtype=f32}
  %is: f32[n,67] = mul %if, %s
  %it: f32[n,67] = tanh %is
  %ik: f32[n,67] = mul %it, %k
  %y: i8[n,67] = cast %ik {dtype=i8}
}
TEXT
bytes() { # FILE TYPE: a row is 67 bytes, each one more than the last
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': (4, 67), }" >"$1"
    for i in $(seq 0 267); do printf '%b' "\\0$(printf %o $((i % 256)))"; done >>"$1"
}
bytes x.npy '|u1'
bytes z.npy '|i1'
table() { "$DLC" run bytes.dlc -q --input x=x.npy --input z=z.npy "$@" || fail "no output: $*"; }
targets="native"
[ "$(uname -m)" != x86_64 ] || targets="native x86-64-v2 x86-64-v3"
for target in $targets; do
    for rewrite in none tabulate=2; do
        table --rewrite $rewrite --target $target --outputs bytes-$target-$rewrite.npz
    done
    cmp bytes-$target-none.npz bytes-$target-tabulate=2.npz || fail "$target: tables change numbers"
done
expect 0 'group.table1' "$DLC" opt bytes.dlc --passes layout,fuse,lower,rewrite --rewrite tabulate=2
expect 0 'table1"[i64(u8(select(' "$DLC" opt bytes.dlc --passes layout,fuse,lower,rewrite --rewrite tabulate=2
expect 0 'group.table0' "$DLC" opt bytes.dlc --passes layout,fuse,lower,rewrite
if [ "$(uname -m)" = x86_64 ]; then # lanes of bytes are looked up at once
    expect 0 'vpermt2b' "$DLC" compile bytes.dlc --emit asm -o - --target x86-64-v4+vbmi
    if command -v cc >/dev/null; then
        expect 0 "" "$DLC" run bytes.dlc --input x=x.npy --input z=z.npy --expect bytes-native-none.npz --target sm_80 --emulate-gpu --rewrite tabulate=2
    fi
fi

# What depends on one axis, floats and indices, in rows and columns, of a batch that only the run knows: no bit changes.
cat >along.dlc <<TEXT
graph @along(%x: f32[n,3,13,19], %z: f64[2,9,11], %h: f16[5,23]) -> %a, %b, %c, %d, %e {
  %a: f32[n,3,29,31] = resize %x {dims=[n, 3, 29, 31], mode="linear"}
  %b: f32[n,3,7,8] = resize %x {dims=[n, 3, 7, 8], mode="cubic", coord="align_corners"}
  %c: f64[2,20,5] = resize %z {dims=[2, 20, 5], mode="nearest", nearest="ceil"}
  %d: f16[5,11] = resize %h {dims=[5, 11], mode="linear", antialias=1}
  %e: f32[n,3,29,31] = tanh %a
}
TEXT
along() { expect 0 "" "$DLC" run along.dlc --input x=random:7 --input z=random:8 --input h=random:9 "$@"; }
along --interpret --outputs along.npz
for target in $targets; do
    for rewrite in none positions=2; do
        along --rewrite $rewrite --target $target --outputs along-$target-$rewrite.npz
    done
    cmp along-$target-none.npz along-$target-positions=2.npz || fail "$target: tables along axes change numbers"
    along --target $target --expect along.npz
done
expect 0 'group.along1": i32' "$DLC" opt along.dlc --passes layout,fuse,lower,rewrite
if [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    along --target sm_80 --emulate-gpu --rewrite positions=2 --expect along.npz
fi

# Factors in three parts of bf16: a number by 1 and by zeros is itself, bit for bit, of whatever size; then what else there is around products.
cat >parts.dlc <<TEXT
graph @itself(%x: f32[19,32]) -> %y {
  %c: f32[32] = const [1e-28, 1e-26, 1e-24, 1e-22, 1e-20, 1e-18, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1, 3, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e14, 1e16, 1e18, 1e20, 1e22, 1e26, 1e30, 1e34, 1e37, 3.4e38]
  %e: f32[32,32] = eye {dims=[32, 32], axis=0, dtype=f32}
  %s: f32[19,32] = mul %x, %c
  %y: f32[19,32] = matmul %s, %e
}
TEXT
cat >around.dlc <<TEXT
graph @around(%x: f32[2,8,9,14], %z: f32[2,24,5,7], %a: f32[3,20,96]) -> %y, %b {
  %v: f32[64,8,1,1] = const hash(00000000000000a3)
  %w: f32[24,64,3,3] = const hash(00000000000000a4)
  %k: f32[24,1,1] = const hash(00000000000000a5)
  %u: f32[96,72] = const hash(00000000000000a6)
  %t: f32[96,40] = const hash(00000000000000a7)
  %p: f32[2,64,9,14] = conv %x, %v
  %c: f32[2,24,5,7] = conv %p, %w {strides=[2, 2], pads=[1, 1, 1, 1]}
  %d: f32[2,24,5,7] = add %c, %k
  %r: f32[2,24,5,7] = add %d, %z
  %y: f32[2,24,5,7] = relu %r
  %m: f32[3,20,72] = matmul %a, %u
  %n: f32[3,20,40] = matmul %a, %t
  %b: f32[3,20,112] = concat %m, %n {axis=2}
}
TEXT
"$DLC" run parts.dlc --interpret --input x=random:7 --outputs parts.npz -q || fail "no expected output"
"$DLC" run around.dlc --interpret --input x=random:7 --input z=random:8 --input a=random:9 --outputs around.npz -q || fail "no expected output"
expect 0 "s.bf16x3;e.bf16x3" "$DLC" opt parts.dlc --passes const_fold,layout,fuse,lower,rewrite --fusion none --rewrite bf16x3=32
expect 0 "p.bf16x3;w.bf16x3;a.bf16x3" "$DLC" opt around.dlc --passes layout,fuse,lower,rewrite --rewrite bf16x3=64
! grep -q "a.bf16x3_2" out || fail "rows that two products read are taken apart twice"
for target in native x86-64-v4 x86-64-v3 x86-64-v2; do
    [ $target = native ] || [ "$(uname -m)" = x86_64 ] || continue
    expect 0 "" "$DLC" run parts.dlc --input x=random:7 --expect parts.npz --rtol 0 --atol 0 --fusion none --rewrite bf16x3=32 --target $target
    expect 0 "" "$DLC" run around.dlc --input x=random:7 --input z=random:8 --input a=random:9 --expect around.npz --rtol 1e-5 --rewrite bf16x3=64 \
        --target $target --threads 2
done
expect 0 "" "$DLC" run around.dlc --input x=random:7 --input z=random:8 --input a=random:9 --expect around.npz --rtol 1e-5 --matrix off
expect 2 "matrix 'yes' is none of auto, on and off" "$DLC" compile parts.dlc -o m.so --matrix yes

expect 2 "winograd '3' is none of auto, off, 2 and 4" "$DLC" compile conv.dlc -o m.so --winograd 3
finish
