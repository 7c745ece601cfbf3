#!/bin/sh
# A hundred wrong command lines (wrong.txt): each has the right status and one sentence, and writes nothing.
. "$1/cli/lib.sh"
cp "$repository/models/digits.onnx" M && cp "$repository/models/digits_test.npz" in.npz
"$DLC" compile M -o S -q || fail "the model does not compile"
mkdir folder && : >empty && echo "some text" >text && cp text text.so && cp text text.npz
head -c 3000 S >cut.so
"$DLC" run S --outputs wrong.npz -q 2>/dev/null || fail "no outputs"
: >out && : >err && : >after && ls >before

n=0
while read -r code arguments; do
    case $code in '#'* | '') continue ;; esac
    # shellcheck disable=SC2086
    "$DLC" $arguments >out 2>err </dev/null
    got=$?
    n=$((n + 1))
    [ "$got" = "$code" ] || fail "dlc $arguments ends with $got, where $code is expected"
    [ "$(grep -c '^dlc: ' err)" -ge 1 ] || fail "dlc $arguments says nothing"
    [ "$(grep '^dlc: ' err | grep -v 'random numbers\|is taken as 1' | wc -l)" = 1 ] || fail "dlc $arguments says more than one sentence"
    ls >after
    diff before after >left || { fail "dlc $arguments leaves $(cat left)"; cp after before; }
    rm -f left
done <"$1/cli/wrong.txt"
[ "$n" -ge 100 ] || fail "there are only $n command lines"
finish
