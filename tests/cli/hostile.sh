#!/bin/sh
# Models that are wrong are refused when they are loaded, by name; files that ask for too much end with a sentence.
. "$1/cli/lib.sh"
python=$repository/.venv/bin/python
[ -x "$python" ] || { echo "skipped: there is no .venv; scripts/setup makes it"; exit 77; }

"$python" "$1/hostile/make_wrong.py" wrong || fail "no wrong models were made"
while IFS='|' read -r model code patterns; do
    expect "$code" "$patterns" "$DLC" compile "wrong/$model.onnx" -o out.so
    [ ! -e out.so ] || fail "$model left a file"
done <wrong/TABLE

"$python" "$1/hostile/bombs.py" "$DLC" bombs || fail "bombs"
expect 7 "of memory it may;--max-memory" "$DLC" compile "$repository/models/digits.onnx" --max-memory 100K -o out.so
finish
