#!/bin/sh
# What comes from the tables of commands and options: completion for three shells and the manual page know all of them.
. "$1/cli/lib.sh"
PATH=$(dirname "$DLC"):$PATH
for shell in bash zsh fish; do
    expect 0 "" "$DLC" completion $shell
    mv out $shell.txt
done
expect 0 ".SH COMMANDS" "$DLC" man
mv out dlc.1
"$DLC" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' >commands
[ "$(wc -l <commands)" -ge 13 ] || fail "--help lists few commands: $(cat commands)"
while read -r command; do
    grep -q "^\.SS dlc $command" dlc.1 || fail "the manual lacks $command"
    "$DLC" help "$command" | sed -n 's/^.*--\([a-z-]*\) .*$/\1/p' | grep -v '^$' >options
    while read -r option; do
        for shell in bash zsh fish; do
            grep -q -e "--$option" -e "-l $option" $shell.txt || fail "$shell lacks --$option"
        done
        grep -q -- "$(echo "--$option" | sed 's/-/\\\\-/g')" dlc.1 || fail "the manual lacks --$option"
    done <options
done <commands

# bash completes commands, options, values and files
cat >try.sh <<'END'
. ./bash.txt
complete_line() { # the words of a line, the last one to be completed
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _dlc
    echo "${COMPREPLY[*]}"
}
complete_line dlc comp
complete_line dlc compile --targ
complete_line dlc compile --target sm_7
complete_line dlc compile --fusion gr
complete_line dlc compile --emit a
complete_line dlc run --emi
complete_line dlc completion z
END
if command -v bash >/dev/null; then
    bash try.sh >found 2>err || fail "bash does not take its completion"
    printf '%s\n' 'compile compare completion' --target sm_75 greedy 'a asm' '' zsh >wanted
    cmp -s found wanted || fail "bash completes otherwise: $(cat found)"
fi
for shell in zsh fish; do
    command -v $shell >/dev/null || continue
    $shell -n $shell.txt 2>err || fail "$shell does not take its completion"
done
if command -v fish >/dev/null; then
    found=$(HOME=$work fish -c 'source fish.txt; complete -C "dlc compile --fusion gr"' 2>err | cut -f 1)
    [ "$found" = greedy ] || fail "fish completes '$found'"
fi
if command -v groff >/dev/null; then
    groff -man -Tutf8 -P-cbou -ww dlc.1 >text 2>err && [ ! -s err ] || fail "groff has something to say of the manual"
    grep -q 'EXIT STATUS' text || fail "the manual shows no exit status"
fi
finish
