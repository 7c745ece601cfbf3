# Schedules measured on this machine: found, kept in a file, read by later compilations, and never wrong whatever the file holds.
. "$1/cli/lib.sh"
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
[ "$processor" ] || { echo "skipped: the system does not name the processor"; exit 77; }
export DLC_CACHE_DIR="$work/cache"
head="# schedules measured by dlc compile --tune, format 1, on $processor"

cat >relu.dlc <<'END'
graph @relu(%x: f32[40,64]) -> %y {
  %y: f32[40,64] = relu %x
}
END
cat >entry.txt <<'END'
# kernel 0000000000000000 for x86-64-v3: 1.00 us, 2.00 before
kernel @k(a: f32[2560]) -> (b: f32[2560]) {
  axis p=2560
  s[p] = max(0.0, a[p]) -> b[p]
}
schedule x86-64-v3 {
  for p:40, unroll p {
    s
  }
}
END
compile() { "$DLC" compile relu.dlc --target x86-64-v3 --tuned tuned.txt -o m.so --schedule-out out.txt; }

# read: the schedule is taken, after one that is given, and not where it is not asked for
{ echo "$head"; cat entry.txt; } >tuned.txt
expect 0 "tuned.txt: 1 of 1 kernels have the schedule measured best" compile
grep -q ":40, unroll" out.txt || fail "the schedule of the file is not taken"
cp out.txt given.txt
sed -i 's/:40, unroll/:20, unroll/' given.txt
expect 0 "given.txt: 1 of 1 kernels" "$DLC" compile relu.dlc --target x86-64-v3 --tuned tuned.txt --schedule given.txt -o m.so --schedule-out out.txt
grep -q ":20, unroll" out.txt || fail "a schedule that is given comes behind a measured one"
"$DLC" compile relu.dlc --target x86-64-v3 -o m.so >out 2>err
grep -q "measured" err && fail "a named target takes schedules of the cache"

# what is wrong is a note, and the model compiles as if nothing was there
{ echo "$head"; head -n 7 entry.txt; } >tuned.txt
expect 0 "tuned.txt: ignored: " compile
{ echo "$head"; sed 's/unroll p/for p:40/' entry.txt; } >tuned.txt
expect 0 "tuned.txt: a schedule is ignored: ;for p:40 is no part of for p:40" compile
{ echo "$head the other"; cat entry.txt; } >tuned.txt
expect 0 "tuned.txt: ignored: it was measured on another processor" compile
expect 2 "tuned.txt: was measured on another processor, and is kept" "$DLC" compile relu.dlc --tune --budget 0.2 --tuned tuned.txt -o m.so
echo "notes of mine" >tuned.txt
expect 0 "tuned.txt: ignored: it is nothing that dlc compile --tune writes" compile
expect 2 "tuned.txt: is nothing that dlc compile --tune writes, and is kept" "$DLC" compile relu.dlc --tune --budget 0.2 --tuned tuned.txt -o m.so
[ "$(cat tuned.txt)" = "notes of mine" ] || fail "a file of the user's was changed"
expect 2 "tuned for one target" "$DLC" compile relu.dlc --tune --target sm_80 -o m.so

# found: what runs is right, and the next compilation has it; the cache's file is native's
cat >product.dlc <<'END'
graph @product(%x: f32[96,200], %z: f32[96,150]) -> %y {
  %w: f32[200,150] = const hash(00000000000000aa)
  %a: f32[96,150] = matmul %x, %w
  %b: f32[96,150] = add %a, %z
  %y: f32[96,150] = relu %b
}
END
"$DLC" run product.dlc --interpret --input x=random:1 --input z=random:2 --outputs expected.npz >/dev/null 2>err || fail "the interpreter fails"
expect 2 "--trials FILE is about what --tune measures" "$DLC" compile product.dlc --trials trials.json -o tuned.so
expect 0 "1 of 1 kernels measured;schedules" "$DLC" compile product.dlc --tune --budget 2s --trials trials.json -o tuned.so
# a line for each schedule, of which a later compilation takes the kernel and the schedule
python3 - trials.json >trial.txt <<'END' || fail "trials.json: not what --trials promises"
import json, sys
trials = [json.loads(line) for line in open(sys.argv[1])]
assert len(trials) > 1 and all(t["measured_us"] > 0 and t["own_us"] > 0 and t["estimate_us"] > 0 for t in trials)
print(trials[-1]["kernel"] + trials[-1]["schedule"])
END
expect 0 "trial.txt: 1 of 1 kernels" "$DLC" compile product.dlc --schedule trial.txt --tuned none -o trial.so
expect 0 "" "$DLC" run tuned.so --input x=random:1 --input z=random:2 --expect expected.npz
if ls cache/tuned-* >/dev/null 2>&1; then
    mkdir again # a file's name is in it
    expect 0 "1 of 1 kernels have the schedule measured best" "$DLC" compile product.dlc -o again/tuned.so
    cmp -s tuned.so again/tuned.so || fail "a later compilation makes another executable"
    expect 0 "" "$DLC" compile product.dlc --tuned none -o none.so
    grep -q "measured" err && fail "--tuned none takes schedules"
fi

# a constant whose kernel says how small it is
cat >bytes.dlc <<'END'
graph @bytes(%t: i32[48,64]) -> %y {
  %h: f32[64] = const hash(00000000000000aa)
  %tenth: f32[] = const [0.1]
  %s: f32[64] = mul %h, %tenth
  %f: f32[48,64] = cast %t {dtype=f32}
  %m: f32[48,64] = mul %f, %s
  %r: f32[48,64] = round %m
  %y: u8[48,64] = cast %r {dtype=u8}
}
END
expect 0 "1 of 1 kernels measured;schedules" "$DLC" compile bytes.dlc --tune --budget 1s --trials bytes.json --tuned bytes.txt -o bytes.so
grep -q '@within(-2)' bytes.json || fail "bytes.dlc: no constant is stated to be small"

# ended in the middle: nothing is left but what was found
mkdir ended
(cd ended && exec timeout -s INT 0.4 "$DLC" compile ../product.dlc --tune --budget 30 --tuned ../ended.txt -o m.so >/dev/null 2>&1)
[ -z "$(ls -A ended | grep -v '^m.so$')" ] || fail "what was ended leaves $(ls -A ended)"
[ ! -f ended.txt ] || expect 0 "1 of 1 kernels have the schedule measured best" "$DLC" compile product.dlc --tuned ended.txt -o m.so
finish
