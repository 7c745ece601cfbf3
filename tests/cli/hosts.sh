#!/bin/sh
# Hosts of all kinds: descriptors closed, SIGCHLD ignored, signals at any time, output onto input. Nothing changes, nothing is left.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx
export TMPDIR=$work/tmp
mkdir tmp

# standard descriptors that are closed
"$DLC" compile "$digits" -o wanted.so >/dev/null
"$DLC" run wanted.so --outputs wanted.npz 2>/dev/null
closed() {
    rm -f d.so d.npz
    eval "\"\$DLC\" compile \"\$digits\" -o d.so --name wanted --quiet $1" || fail "compile $1 ends with $?"
    cmp -s d.so wanted.so || fail "compile $1 makes another file"
    eval "\"\$DLC\" run \"\$digits\" --outputs d.npz --quiet $1" || fail "run $1 ends with $?"
    cmp -s d.npz wanted.npz || fail "run $1 makes other outputs"
}
for which in "<&-" ">&-" "2>&-" "<&- >&-" "<&- 2>&-" ">&- 2>&-" "<&- >&- 2>&-"; do
    closed "$which"
done
expect 5 "standard output (-o -) is closed" sh -c '"$DLC" compile "$0" -o - >&-' "$digits"

# SIGCHLD ignored, as by daemons
rm -f d.so d.npz
expect 0 "" env --ignore-signal=CHLD "$DLC" compile "$digits" -o d.so --name wanted
expect 0 "" env --ignore-signal=CHLD "$DLC" run "$digits" --outputs d.npz
cmp -s d.so wanted.so && cmp -s d.npz wanted.npz || fail "where SIGCHLD is ignored other files are made"

# output onto what is read
cp "$digits" model.onnx
ln -s model.onnx link.onnx
cp wanted.npz in.npz
cp wanted.so kept.so
expect 2 "model.onnx: is what this command reads" "$DLC" compile model.onnx -o model.onnx
expect 2 "is what this command reads ('link.onnx')" "$DLC" compile link.onnx -o model.onnx
expect 2 "is what this command reads" "$DLC" opt model.onnx --passes dce -o link.onnx
expect 2 "is what this command reads" "$DLC" run wanted.so --inputs in.npz --outputs in.npz
expect 2 "is what this command reads" "$DLC" run wanted.so --input image=in.npz --outputs in.npz
expect 2 "is what this command reads" "$DLC" run wanted.so --expect in.npz --outputs in.npz
expect 2 "is what this command reads" "$DLC" run wanted.so --outputs wanted.so
expect 2 "made/output_0.pb: is what this command reads" sh -c '"$DLC" run wanted.so --output-dir made && "$DLC" run wanted.so --expect made/output_0.pb --output-dir made'
cmp -s model.onnx "$digits" && cmp -s wanted.so kept.so && cmp -s in.npz wanted.npz || fail "something was written over"

# output onto the weights beside a model, by every command and option that writes a file
mkdir beside beside/sub
cp "$models/external_missing.onnx" beside/m.onnx
cp beside/m.onnx beside/output_0.pb
head -c 48 /dev/zero >beside/weights.bin
cp beside/weights.bin kept.bin
ln -s ../weights.bin beside/sub/link
ln beside/weights.bin beside/weights.so
while read -r words; do
    # shellcheck disable=SC2086
    expect 2 "is the external data 'weights.bin' of the model 'm.onnx' (tensor 'w'); another file is wanted" sh -c 'cd beside && exec "$DLC" "$@"' sh $words
    cmp -s beside/weights.bin kept.bin || fail "dlc $words writes over the weights"
done <<END
compile m.onnx -o weights.bin
compile m.onnx -o sub/link --emit ll
compile m.onnx -o $PWD/beside/sub/../weights.bin --target x86-64-v2,x86-64-v3
compile m.onnx -o weights.txt --emit h,so
compile m.onnx -o m.so --schedule-out weights.bin
compile m.onnx -o m.so --tune --tuned weights.bin
compile m.onnx -o m.so --tune --tuned t.txt --trials weights.bin
opt m.onnx -o weights.bin
opt m.onnx --passes dce -o weights.bin
run m.onnx --outputs weights.bin
run m.onnx --outputs weights.bin --interpret
run m.onnx --profile weights.bin
bench m.onnx --profile weights.bin
report m.onnx -o weights.bin
compare m.onnx --bisect nodes -o weights.bin
END
expect 3 "'w' lies in a file beside the model, 'weights.bin'" "$DLC" quantize beside/m.onnx --data in.npz -o beside/weights.bin
expect 2 "is what this command reads" "$DLC" run beside/output_0.pb --output-dir beside
[ "$(ls beside)" = "m.onnx
output_0.pb
sub
weights.bin
weights.so" ] && cmp -s beside/m.onnx beside/output_0.pb || fail "a refusal left files"
expect 0 "" "$DLC" compile beside/m.onnx -o beside/m.so
mv beside/weights.bin beside/gone
expect 5 "external data 'weights.bin': No such file" "$DLC" compile beside/m.onnx -o beside/weights.bin

# what DLC_CPU may say
expect 2 "DLC_CPU has 'zzz'" env DLC_CPU=x86-64-v3,zzz "$DLC" run wanted.so

# 108 signals, each at a time drawn from the first 80 ms, leave nothing, not even a process
some_time() {
    od -An -N2 -tu2 /dev/urandom | awk '{ printf "%.4f", $1 / 65536 * 0.08 }'
}
rm -f tmp/*
ls >before
for signal in INT TERM HUP; do
    for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
        for command in "compile $digits -o killed.so" "run $digits --outputs killed.npz" "bench $digits --seconds 0.1"; do
            delay=$(some_time)
            # shellcheck disable=SC2086
            env --default-signal="$signal" "$DLC" $command >/dev/null 2>&1 &
            sleep "$delay"
            kill -s "$signal" $! 2>/dev/null
            wait $! 2>/dev/null
            [ -z "$(ls tmp)" ] || fail "$signal in round $round after $delay s of 'dlc $command' leaves $(ls tmp)"
            rm -f tmp/*
        done
    done
done
rm -f killed.so killed.npz
ls | diff before - >err || fail "signals left files"
[ -z "$(ls tmp)" ] || fail "signals left temporary files: $(ls tmp)"
finish
