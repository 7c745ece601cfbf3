#!/bin/sh
# What the documents show is true: their commands run, README's program compiles and runs, and the texts of docs/ir.md and of "One
# kernel, two languages" in docs/architecture.md are what the compiler prints.
. "$1/cli/lib.sh"
[ -z "${DLC_SANITIZED:-}" ] || { echo "skipped: what links to a sanitized library needs its sanitizer"; exit 77; }
mkdir bin && ln -s "$DLC" bin/dlc
PATH=$work/bin:$PATH

# the files that the commands name
ln -s "$repository/examples" examples
ln -s "$repository/include" include
cp "$repository/models/digits.onnx" model.onnx
cp "$repository/models/digits_test.npz" in.npz
cp in.npz out.npz
data=cases/digits/test_data_set_0
mkdir -p $data && cp model.onnx cases/digits && echo '{"rtol": 1e-3, "atol": 1e-5}' >cases/digits/data.json
python3 -m zipfile -e in.npz $data && mv $data/image.npy $data/input_0.npy && mv $data/logits.npy $data/output_0.npy
cat >norm.dlc <<TEXT
$(sed -n '/^## One kernel/,/^ *}$/s/^    //p' "$repository/docs/architecture.md")
TEXT
sed -n '/^```json/,/^```/p' "$repository/docs/fusion-strategy.md" | grep -v '```' >plan.json
sed -n '/^```c/,/^```/p' "$repository/README.md" | grep -v '```' >program.c

has_nvrtc=$(dlc targets | grep -c 'makes code')
ncommands=0
for document in "$repository/README.md" "$repository"/docs/*.md; do
    # in blocks, indented or fenced
    awk '/^```/ { fenced = $0 == "```sh" } /^    (dlc|cc) / || fenced && /^(dlc|cc) /' "$document" >commands
    while read -r command <&3; do
        case $command in
        *--device\ cuda*) continue ;; # needs a device
        *--emulate-gpu*) [ "$(uname -m)" = x86_64 ] || continue ;;
        *sm_*) [ "$has_nvrtc" -gt 0 ] || continue ;;
        "dlc bench"*) command="${command%%#*} --seconds 0.1" ;;
        "cc program.c"*) command="cc program.c -Iinclude -L$(dirname "$DLC")/../lib -ldlcrt -o program" ;;
        esac
        expect 0 "" sh -c "$command"
        ncommands=$((ncommands + 1))
    done 3<commands
done
[ "$ncommands" -ge 15 ] || fail "the documents show only $ncommands commands"
dlc compile model.onnx -o model.so >out 2>err || fail "model.so is not made"
LD_LIBRARY_PATH=$(dirname "$DLC")/../lib expect 0 "-" ./program

# the graph of docs/ir.md is in the printer's own form
awk '/^```/ { if (n++) exit; next } n' "$repository/docs/ir.md" >ir.dlc
dlc opt ir.dlc --passes dce >ir.text 2>err || fail "docs/ir.md: the graph is refused"
sed '/^$/d' ir.text | diff ir.dlc - >out || fail "docs/ir.md: the graph prints differently"

awk '/^module @/ { on = 1 } /^```/ { on = 0 } on' "$repository/docs/ir.md" >module.dlc
dlc opt module.dlc >module.text 2>err || fail "docs/ir.md: the module is refused"
diff module.dlc module.text >out || fail "docs/ir.md: the module prints differently"

# in_order LINES TEXT: each line is one of the text's, in this order; indentation and lines of a comment alone aside
in_order() {
    awk 'function bare(line) { sub(/^[ \t]+/, "", line); return line }
        BEGIN { at = n = 0 }
        FNR == NR { if ($1 != "//" && $1 != ";" && NF) want[n++] = bare($0); next }
        at < n && bare($0) == want[at] { at++ }
        END { if (at < n || n < 4) { print "line " at " of " n " is not there: " want[at]; exit 1 } }' "$1" "$2" >out ||
        fail "docs/architecture.md: $2: $(cat out)"
}
awk '/^## One kernel/ { on = 1 } on && /^    / { if (!block) file = "block" ++n; block = 1; sub(/^    /, ""); print >file; next }
    { block = 0 }' "$repository/docs/architecture.md"
dlc opt norm.dlc --passes=layout,fuse,lower,choose --target sm_75 >opt.text
dlc compile norm.dlc --emit ll --target x86-64-v3 -o norm.ll >/dev/null
dlc compile norm.dlc --emit cu --target sm_75 -o norm.cu >/dev/null
for pair in block1:norm.dlc block2:opt.text block3:norm.ll block4:norm.cu; do
    in_order "${pair%:*}" "${pair#*:}"
done
finish
