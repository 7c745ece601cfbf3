#!/bin/sh
# The command line itself: help, versions, unknown names, bad values. Nothing here needs the compiler.
. "$1/cli/lib.sh"

expect 2 "Commands" "$DLC"
expect 0 "Commands" "$DLC" --help
expect 0 "dlc 0." "$DLC" --version
expect 0 "--threads N" "$DLC" help run
expect 0 "--threads N" "$DLC" run --help
for command in compile run bench test inspect verify explain report quantize doctor opt targets passes strategies completion man; do
    expect 0 "dlc $command" "$DLC" help $command
done
expect 2 "there is no command 'comple'; 'compile' is near it" "$DLC" comple
expect 2 "there is no command 'comple'; 'compile' is near it" "$DLC" help comple
expect 2 "there is no command 'frobnicate'" "$DLC" frobnicate
expect 2 "there is no command 'version'; \`dlc --version\` is an option" "$DLC" version
expect 2 "dlc has no option '--verbose'; \`dlc --help\` lists them" "$DLC" --verbose
expect 2 "dlc doctor takes no operand; 'x' is one too many" "$DLC" doctor x
expect 2 "operand 1 of dlc compile is empty, where M is wanted" "$DLC" compile ""
expect 5 "absent: cannot be read: No such file or directory; --tune makes it" "$DLC" compile m.onnx --tuned absent
expect 2 "compile has no option '--taget'; '--target' is near it" "$DLC" compile --taget x m.onnx
expect 2 "run has no option '--emit'" "$DLC" run --emit so m.onnx
expect 2 "run has no option '-x'" "$DLC" run -x m.onnx
expect 2 "--input needs NAME=SOURCE behind it" "$DLC" run m.so --input
expect 2 "--json takes no value" "$DLC" run m.so --json=1
expect 2 "needs M behind it" "$DLC" compile
expect 2 "'b.onnx' is one too many" "$DLC" compile a.onnx b.onnx
expect 2 "--threads is 'many', where a whole number from 1 is wanted" "$DLC" run m.so --threads many
expect 2 "--threads is '-1'" "$DLC" run m.so --threads=-1
expect 2 "--max-depth is '4294967297', where a number below 2^32 is wanted" "$DLC" compile m.onnx --max-depth 4294967297
expect 2 "--rtol is '-3', where a number from 0 is wanted" "$DLC" run m.so --rtol=-3
expect 2 "--max-heap is '5Q', where a size such as 64M is wanted" "$DLC" compile m.onnx --max-heap 5Q
expect 2 "--emit 'exe' is unknown" "$DLC" compile m.onnx --emit exe
expect 2 "--shape is 'x'" "$DLC" compile m.onnx --shape x
expect 2 "--typical is 'x'" "$DLC" compile m.onnx --typical x
expect 2 "--value is 'rate', where NAME=16000 is wanted" "$DLC" compile m.onnx --value rate
expect 2 "no list of dimensions" "$DLC" compile m.onnx --shape x=1x,3
expect 2 "--format is 'png'" "$DLC" inspect m.onnx --format png
expect 2 '"status":"usage","exit":2' "$DLC" run --json
expect 0 '"schema":1' "$DLC" passes --json
expect 0 "format: ;llvm: ;targets: native" "$DLC" -V
expect 0 '"llvm":"' "$DLC" --version --json
expect 0 '"commands":[{"name":"compile";{"name":"output","letter":"o","argument":"FILE";"schema":1' "$DLC" help --json
expect 0 '"commands":[{"name":"verify";"schema":1' "$DLC" help verify --json
expect 0 '"commands":[{"name":"run";"schema":1' "$DLC" run --help --json
expect 0 '"text":".TH DLC 1;"schema":1' "$DLC" man --json
expect 0 '"text":"#compdef dlc;"schema":1' "$DLC" completion zsh --json
expect 2 "there is no completion for 'bsh'; 'bash' is near it" "$DLC" completion bsh
expect 2 "completion needs SHELL behind it" "$DLC" completion

# colour on a terminal alone, and not where NO_COLOR asks for none
if command -v script >/dev/null; then
    coloured() { TERM=xterm script -qec "$DLC comple" /dev/null </dev/null | grep -q '\[1;31m'; }
    coloured || fail "no colour on a terminal"
    ! NO_COLOR=1 coloured || fail "colour in spite of NO_COLOR"
fi
finish
