#!/bin/sh
# Standard input and output in place of files, names that are nearly right, and random inputs.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx
data=$repository/models/digits_test.npz
"$DLC" compile "$digits" -o model.so >/dev/null

"$DLC" compile - -o - --name model <"$digits" >piped.so 2>err || fail "compile - -o -"
[ -s err ] && fail "compile - -o - says something"
cmp -s model.so piped.so || fail "a piped model becomes other bytes"
cat "$digits" | "$DLC" compile - -o piped2.so --name model >out 2>err || fail "compile -"
cmp -s model.so piped2.so || fail "a model from a pipe becomes other bytes"
[ -e - ] && fail "there is a file called -"
for file in "$digits" model.so; do
    "$DLC" run - --inputs "$data" --expect "$data" <"$file" >out 2>err || fail "run - of $file"
done
"$DLC" inspect - <"$digits" >out 2>err && grep -q ' conv$' out || fail "inspect -"
expect 1 "standard input: " "$DLC" compile - -o x.so </dev/null
expect 2 "say -o FILE or -o -" sh -c '"$1" compile - <"$2"' sh "$DLC" "$digits"
"$DLC" opt "$digits" -o - >piped.dlc && "$DLC" opt "$digits" | cmp -s piped.dlc - || fail "opt -o - is not what opt prints"
expect 2 "'-' is standard output" "$DLC" report "$digits" -o -
expect 2 "'-' is standard output" "$DLC" quantize "$digits" --data "$data" -o -
expect 2 "'-' is standard output" "$DLC" compile "$digits" -o piped.so --schedule-out -
[ ! -e - ] || fail "a file '-' was written"
expect 2 "takes one kind of --emit" "$DLC" compile "$digits" -o - --emit a,h
expect 2 "not both" "$DLC" compile "$digits" -o - --json
expect 5 "standard output cannot be written" sh -c '"$1" compile "$2" -o - >/dev/full' sh "$DLC" "$digits"

expect 2 "there is no target 'sm_76'; 'sm_75' is near it" "$DLC" compile "$digits" --target sm_76
expect 2 "there is no target 'x86_64-v3'; 'x86-64-v3' is near it" "$DLC" compile "$digits" --target x86_64-v3
expect 2 "there is no fusion strategy 'gredy'; 'greedy' is near it" "$DLC" compile "$digits" --fusion gredy
expect 2 "there is no pass 'dec'; 'dce' is near it" "$DLC" compile "$digits" --passes dec
expect 2 "there is no pass 'fuze'; 'fuse' is near it" "$DLC" compile "$digits" --dump-after fuze
expect 2 "there is no target 'nothing'; the targets are" "$DLC" compile "$digits" --target nothing

expect 0 "the inputs are random numbers" "$DLC" run model.so
expect 0 '"inputs":"random"' "$DLC" run model.so --json
"$DLC" run model.so --inputs "$data" >out 2>err && grep -q random out err && fail "given inputs are called random"
finish
