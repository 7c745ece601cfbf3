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
cmp -s model.onnx "$digits" && cmp -s wanted.so kept.so && cmp -s in.npz wanted.npz || fail "something was written over"

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
