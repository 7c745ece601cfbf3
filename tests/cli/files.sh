#!/bin/sh
# What goes in and comes out of files: executables, npz, pb, text forms; equal inputs give equal bytes.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx
data=$repository/models/digits_test.npz

expect 0 "digits.so" "$DLC" compile "$digits" -o digits.so
expect 0 "" "$DLC" compile "$digits" -o again.so --name digits
cmp -s digits.so again.so || fail "compiling twice gives different bytes"
expect 0 "largest error" "$DLC" run digits.so --inputs "$data" --expect "$data"
expect 0 "largest error" "$DLC" run "$digits" --inputs "$data" --expect "$data"
expect 0 "largest error" "$DLC" run "$digits" --interpret --inputs "$data" --expect "$data"

# outputs: the same bits for one thread and two, and through every kind of file
expect 0 "" "$DLC" run digits.so --inputs "$data" --outputs one.npz --threads 1
expect 0 "" "$DLC" run digits.so --inputs "$data" --outputs two.npz --threads 2
cmp -s one.npz two.npz || fail "two threads give other bits than one"
expect 0 "largest error 0 " "$DLC" run digits.so --inputs "$data" --expect one.npz --rtol 0 --atol 0
expect 0 "" "$DLC" run digits.so --inputs "$data" --output-dir folder
[ -s folder/output_0.pb ] || fail "there is no folder/output_0.pb"
expect 0 "largest error 0 " "$DLC" run digits.so --inputs "$data" --expect folder/output_0.pb --rtol 0 --atol 0

# inputs that do not fit
expect 0 "logits  f32[1,10]" "$DLC" run digits.so
expect 0 "logits  f32[5,10]" "$DLC" run digits.so --shape image=5x1x8x8 --input image=random:3
expect 1 "input 'x' (f32[batch,3]) is missing; there are 'image'" "$DLC" run "$models/good.onnx" --inputs "$data"
expect 2 "where NAME=SOURCE is wanted with an input of the model: 'image'" "$DLC" run digits.so --input picture=random:1
expect 2 "a seed is a whole number" "$DLC" run digits.so --input image=random:x
expect 2 "ends in neither .npy nor .pb" "$DLC" run digits.so --input image=x.txt
expect 2 "x.txt: ends in none of .npz, .npy and .pb" "$DLC" run digits.so --inputs x.txt
expect 5 "absent.npy: cannot be opened" "$DLC" run digits.so --input image=absent.npy
expect 2 "--inputs names 2 files, where the model has 1: 'image'" "$DLC" run digits.so --inputs folder/output_0.pb,x.pb
expect 1 "'image';[360,10];f32[batch,1,8,8]" "$DLC" run digits.so --inputs folder/output_0.pb
cp "$digits" model.npz
expect 1 "is no npz file" "$DLC" run digits.so --inputs model.npz

# numbers that differ
expect 0 "" "$DLC" run digits.so --shape image=360x1x8x8 --input image=random:1 --outputs other.npz
expect 4 "output 'logits'" "$DLC" run digits.so --inputs "$data" --expect other.npz
expect 4 "output 'logits' is f32[360,10], where f32[1,10] is expected" sh -c \
    '"$DLC" run digits.so --outputs small.npz && "$DLC" run digits.so --inputs "$0" --expect small.npz' "$data"
expect 1 "has none of the outputs" "$DLC" run "$models/good.onnx" --expect "$data"

# everything that is needed is there; what is not needed is a note
expect 0 "ok       compile;ok       run;cache;gpu" "$DLC" doctor
expect 0 '"checks":[{"what":"runtime","verdict":"ok"' "$DLC" doctor --json
expect 0 "cannot be written;note     cache" env DLC_CACHE_DIR=/proc/self "$DLC" doctor

# what cannot be written is refused before anything takes time
for command in "bench digits.so --seconds 100 --profile nowhere/t.json" "report $digits -o nowhere/r.html" "run digits.so --profile nowhere/t.json"; do
    # shellcheck disable=SC2086
    expect 5 "no file can be made beside it" timeout 10 "$DLC" $command
done

# of a long profile of many threads so many runs are kept as 64 MB hold
{
    echo 'graph @f(%v: f32[4]) -> %v999 {'
    for i in $(seq 0 999); do echo "  %v$i: f32[4] = exp %v$([ "$i" = 0 ] || echo $((i - 1)))"; done
    echo '}'
} >many.dlc
expect 0 "" "$DLC" compile many.dlc --fusion none -o many.so
expect 0 "" "$DLC" bench many.so --threads 256 --seconds 1 --profile many.json
nruns=$(sed -n 's/^The median of \([0-9]*\) profiled runs.*/\1/p' out)
[ "${nruns:-0}" -ge 5 ] && [ "$nruns" -le 20 ] || fail "the profile is of $nruns runs"

# damaged executables
head -c 3000 digits.so >cut.so
expect 1 "cut.so" "$DLC" run cut.so
cp digits.so flipped.so
printf 'X' | dd of=flipped.so bs=1 seek=2000 conv=notrunc 2>/dev/null
expect 1 "flipped.so" "$DLC" run flipped.so
expect 2 "is compiled code" "$DLC" compile digits.so -o x.so
expect 0 "digits.so: whole" "$DLC" verify digits.so
expect 1 "flipped.so: damaged" "$DLC" verify digits.so flipped.so
expect 1 "not an executable made by dlc" "$DLC" verify "$digits"
cp digits.so weights.so # a byte of the weights, which come last but for the table of sections
printf 'X' | dd of=weights.so bs=1 seek=$(($(wc -c <digits.so) - 8000)) conv=notrunc 2>/dev/null
expect 1 "weights.so: damaged: bytes 0 to;of its constants do not match their checksum" "$DLC" verify weights.so
expect 1 "of its constants do not match" "$DLC" run weights.so --inputs "$data"
expect 0 "plan 'digits'" "$DLC" inspect weights.so

# every kind of output
expect 0 "" "$DLC" compile "$digits" --emit so,o,a,h,ll,asm -o all.so
for file in all.so all.o all.a all.h all.ll all.s; do
    [ -s $file ] || fail "there is no $file"
done
expect 5 "nowhere" "$DLC" compile "$digits" -o nowhere/x.so
[ "$(ls | grep -c tmp)" = 0 ] || fail "temporary files stay: $(ls)"

# texts
expect 0 "conv" "$DLC" inspect "$digits"
expect 0 '"kernels"' "$DLC" inspect "$digits" --format json
expect 0 "digraph" "$DLC" inspect "$digits" --format dot
expect 2 "where text, json or dot is wanted" "$DLC" inspect "$digits" --format svg
expect 0 '"kernels"' "$DLC" inspect digits.so --json
expect 0 "" "$DLC" inspect digits.so
expect 0 "edges fused" "$DLC" explain "$digits"
expect 0 '"edges":[{' "$DLC" explain "$digits" --json
expect 0 "graph @" "$DLC" opt "$digits" --passes dce,cse,simplify
expect 2 "no pass 'dse'" "$DLC" opt "$digits" --passes dse
expect 2 "no target 'pdp11'" "$DLC" compile "$digits" --target pdp11 -o x.so
expect 2 "mystery" "$DLC" compile "$digits" --fusion mystery -o x.so

# profile and bench
expect 0 "" "$DLC" run digits.so --profile trace.json
grep -q traceEvents trace.json || fail "the profile has no events"
expect 0 '"median_ms"' "$DLC" bench digits.so --seconds 0.1 --json
expect 0 "the same again;bound;busy;conv" "$DLC" bench digits.so --seconds 0.1 --threads 2 --profile lanes.json
for word in "thread 1" '"tid":2' '"steps"'; do
    grep -qF "$word" lanes.json || fail "the trace of a benchmark has no $word"
done
"$DLC" bench "$digits" --fusion none,greedy --seconds 0.1 --profile two.json --json >bench.json 2>err || fail "no profile of two strategies"
for word in '"control":{' '"profile":[{' '"busy_us":[' '"bound":"' '"load_medians_ms":['; do
    grep -qF "$word" bench.json || fail "the benchmark says nothing of $word"
done
grep -q '"name":"greedy"' two.json || fail "the trace of two strategies does not name them"
expect 0 "greedy" "$DLC" bench "$digits" --fusion none,greedy --seconds 0.1

# the compiler is not loaded to run an executable
LD_DEBUG=libs "$DLC" run digits.so 2>&1 | grep -qE 'LLVM|protobuf|libdlc\.so' && fail "run loads the compiler"
finish
