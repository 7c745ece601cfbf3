#!/bin/sh
# Plans say what was merged: exported from any strategy and read back they give the same bytes. Plug-ins that crash, exit or never end
# are named, and leave no file.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0" # it is dlc that says who crashed

for strategy in none pointwise greedy; do
    "$DLC" compile "$digits" --fusion $strategy -o wanted.so --name m >/dev/null 2>err || fail "$strategy"
    "$DLC" inspect "$digits" --fusion $strategy --json >plan.json 2>err || fail "$strategy has no plan"
    expect 0 "" "$DLC" compile "$digits" --fusion plan.json -o found.so --name m
    cmp -s wanted.so found.so || fail "the plan of $strategy gives another executable"
    grep -q "stay apart" err && fail "the plan of $strategy is not followed"
done

cat >apart.dlc <<TEXT
graph @f(%x: f32[8]) -> %y, %z {
  %y: f32[8] = neg %x
  %z: f32[8] = exp %x
}
TEXT
echo '{"groups": [["%y", "%z"]]}' >apart.json
expect 0 "group 1: 'y' and 'z' stay apart" "$DLC" explain apart.dlc --fusion apart.json
echo '{"groups": [["%y"], ["%y", "%z"]]}' >twice.json
expect 2 "node '%y' is named in group 1 and again in group 2" "$DLC" explain apart.dlc --fusion twice.json
echo '{"groups": [["%ghost"]]}' >ghost.json
expect 2 "the graph has no node '%ghost'" "$DLC" explain apart.dlc --fusion ghost.json
for text in '[' '{}' '{"groups": 3}' '{"groups": [3]}' '{"groups": [[3]]}' '{"groups": [["\u001b[31m"]]}'; do
    echo "$text" >bad.json
    expect 2 "bad.json" "$DLC" explain apart.dlc --fusion bad.json
done

for text in '' 'groups' "$(printf '%100000s' | tr ' ' '[')" '{"groups": [[["%y"]]]}' '{"groups": [["%y", null]]}' '{"groups": [{"%y": 1}]}'; do
    echo "$text" >bad.json
    expect 2 "bad.json" "$DLC" explain apart.dlc --fusion bad.json
done
# what JSON allows and every reader takes for something else
for row in '{"groups": [["%y"]], "groups": []}|the key '"'groups'"' stands there twice' '{"groups": [["%y"]], "note": {"a": 1, "b": {"c": 1, "c": 2}}}|the key '"'c'"' stands' \
    '{"version": 1e999, "groups": []}|'"'version'"' is a number larger than any' '{"groups": [["%y"]], "n": [1, -1e400]}|one value is a number larger than any' \
    '{"groups": [["%y"]]} {"groups": []}|something stands behind the JSON' '{"groups": [["%y\u0000"]]}|a name holds the character 0' \
    '{"groups": [["%z\\u0000"]]}|has no node'; do
    printf '%s\n' "${row%%|*}" >bad.json
    expect 2 "bad.json: ;${row#*|}" "$DLC" explain apart.dlc --fusion bad.json
done

mkdir folder.json
expect 5 "folder.json: is no regular file" "$DLC" explain apart.dlc --fusion folder.json
expect 5 "absent.json: cannot be opened" "$DLC" explain apart.dlc --fusion absent.json

# plug-ins
echo text >text.so
expect 2 "./text.so" "$DLC" explain apart.dlc --fusion ./text.so
expect 2 "./absent.so: cannot open" "$DLC" explain apart.dlc --fusion ./absent.so
plugin() {
    cat >"$1.c" <<TEXT
#include <dlc/fusion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int run(const dlc_fusion_api *api, dlc_fusion *fusion)
{
    (void)api, (void)fusion;
    $2
    return 0;
}
static const dlc_fusion_strategy strategy = {DLC_FUSION_VERSION, "$1", run};
static dlc_fusion_strategy version __attribute__((unused)) = {DLC_FUSION_VERSION, "$1", run};
const dlc_fusion_strategy *dlc_fusion_strategy_get(void) { return $3; }
TEXT
    cc -shared -fPIC -I"$repository/include" "$1.c" -o "$1.so" 2>err || fail "$1 does not compile"
}
hostile() {
    plugin "$@"
    expect 2 "$1.so;$4" "$DLC" compile "$digits" --fusion "./$1.so" --max-seconds 3 -o out.so
    [ ! -e out.so ] || fail "$1 left a file"
}
hostile crash '*(volatile int *)0 = 1;' '&strategy' 'signal 11'
hostile leaves 'exit(0);' '&strategy' 'ended its process with status 0'
hostile leaves_3 '_exit(3);' '&strategy' 'ended its process with status 3'
hostile aborts 'abort();' '&strategy' 'signal 6'
hostile loops 'for (;;) pause();' '&strategy' 'takes longer than it may'
hostile spins 'for (volatile int i = 0;; i++) ;' '&strategy' 'takes longer than it may'
hostile tries 'dlc_fusion_trial t; for (;;) api->try_merge(fusion, 0, 1, &t);' '&strategy' 'takes longer than it may'
hostile kills 'raise(SIGKILL);' '&strategy' 'signal 9'
hostile gives_up 'return 5;' '&strategy' 'gave up with 5'
hostile no_strategy '' '0' 'gives no strategy'
hostile garbage '' '(const dlc_fusion_strategy *)8' 'signal 11'
hostile recurses 'volatile char b[65536]; b[0] = 1; run(api, fusion); b[1] = 1;' '&strategy' 'signal 11'
hostile newer '' '(version.version++, &version)' 'built for version'
hostile runs_nothing '' '(version.run = NULL, &version)' 'gives no strategy'
# those that will not be ended, or leave something behind
hostile ignores 'signal(SIGALRM, SIG_IGN); for (;;) pause();' '&strategy' 'takes longer than it may'
hostile stops 'raise(SIGSTOP);' '&strategy' 'takes longer than it may'
hostile closes 'for (int i = 0; i < 64; i++) close(i); for (;;) pause();' '&strategy' 'takes longer than it may'
hostile scribbles 'for (int i = 3; i < 64; i++) if (write(i, "\377\377\377\377nonsense", 12) < 0) continue;' '&strategy' 'the strategy'
hostile forks 'if (!fork()) { execlp("sleep", "sleep", "987", (char *)0); } _exit(4);' '&strategy' 'ended its process with status 4'
hostile inherits 'if (!fork()) for (;;) pause(); _exit(5);' '&strategy' 'the strategy'
hostile executes 'execlp("true", "true", (char *)0);' '&strategy' 'ended its process with status 0'
hostile at_exit 'atexit(abort); exit(0);' '&strategy' 'signal 6'
hostile divides 'volatile int zero = 0; return 7 / zero;' '&strategy' 'signal 8'
hostile nameless '' '(version.name = 0, version.run = 0, &version)' 'gives no strategy'
hostile older '' '(version.version = 0, &version)' 'built for version'
if [ -z "${DLC_SANITIZED:-}" ]; then
    hostile eats 'for (;;) *(volatile char *)memset(malloc(1 << 24), 1, 1 << 24);' '&strategy' 'the strategy'
fi
ps -e -o args | grep -v grep | grep -qx 'sleep 987' && fail "a strategy's process is left"
printf '#!/bin/sh\n' >script.so
expect 2 "./script.so" "$DLC" explain apart.dlc --fusion ./script.so
head -c 3000 crash.so >cut.so
expect 2 "./cut.so" "$DLC" explain apart.dlc --fusion ./cut.so
mkfifo pipe.json
expect 5 "pipe.json: is no regular file" "$DLC" explain apart.dlc --fusion pipe.json
for text in "{'groups': []}" '{"groups": [],}' '{"groups": [] /* none */}' '{"groups": NaN}' '[["%y"]]' '{"Groups": [["%y"]]}' '{"groups": {"0": ["%y"]}}' '{"groups": [["%y", "%y"]]}' \
    '{"groups": [["%"]]}' '{"groups": [[""]]}'; do
    echo "$text" >bad.json
    expect 2 "bad.json" "$DLC" explain apart.dlc --fusion bad.json
done
hostile early '' '(exit(7), &strategy)' 'ended its process with status 7'
plugin wild 'for (unsigned i = 0; i < 3000; i++) api->merge(fusion, i * 2654435761u, i * 40503u);' '&strategy'
expect 0 "" "$DLC" compile "$digits" --fusion ./wild.so -o out.so
plugin all 'for (unsigned i = 0; i < api->node_count(fusion); i++) for (unsigned k = 0; k < api->producer_count(fusion, i); k++)
    api->merge(fusion, api->producer(fusion, i, k), i);' '&strategy'
"$DLC" compile "$digits" --fusion ./all.so -o wanted.so --name m >/dev/null 2>err || fail "all"
"$DLC" inspect "$digits" --fusion ./all.so --json >plan.json 2>err
expect 0 "" "$DLC" compile "$digits" --fusion plan.json -o found.so --name m
cmp -s wanted.so found.so || fail "the plan of a plug-in gives another executable"
finish
