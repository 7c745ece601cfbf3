#!/bin/sh
# One file for three levels of a processor: hardly larger than for one, since they agree on how constants are packed, and each level
# computes what it computes by itself, up to the order of sums, which follows the tile.
. "$1/cli/lib.sh"
python=$repository/.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }
"$python" "$repository/models/seeded_models.py" . squeezenet >out || fail "no model was made"
most=0
for level in 2 3 4; do
    expect 0 "v$level.so" "$DLC" compile squeezenet.onnx --target x86-64-v$level -o v$level.so
    bytes=$(stat -c %s v$level.so)
    [ "$bytes" -le "$most" ] || most=$bytes
done
expect 0 "all.so" "$DLC" compile squeezenet.onnx --target x86-64-v2,x86-64-v3,x86-64-v4 -o all.so
bytes=$(stat -c %s all.so)
[ $((bytes * 100)) -le $((most * 115)) ] || fail "three levels take $bytes bytes, the largest alone $most"
[ "$(uname -m)" = x86_64 ] || finish
for level in 2 3 4; do
    DLC_CPU=x86-64-v$level "$DLC" run v$level.so --inputs squeezenet.in.npz --outputs alone.npz >out 2>err
    case $? in
    0) DLC_CPU=x86-64-v$level expect 0 "largest error" "$DLC" run all.so --inputs squeezenet.in.npz --expect alone.npz \
        --rtol 1e-5 --atol 1e-6 ;;
    6) echo "skipped: this processor has no level $level" ;;
    *) fail "x86-64-v$level does not run" ;;
    esac
done
finish
