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

export LIBRARY_PATH=$(dirname "$DLC")/../lib LD_LIBRARY_PATH=$(dirname "$DLC")/../lib
has_nvrtc=$(dlc targets | grep -c 'makes code')
ncommands=0
for document in "$repository/README.md" "$repository"/docs/*.md; do
    # in blocks, indented or fenced
    awk '/^```/ { fenced = $0 == "```sh" } /^    (dlc|cc) / || fenced && /^(dlc|cc) /' "$document" >commands
    dlc compile model.onnx -o model.so -q # others' commands made it for other targets
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
[ "$ncommands" -ge 45 ] || fail "the documents show only $ncommands commands"
dlc compile model.onnx -o model.so >out 2>err || fail "model.so is not made"
LD_LIBRARY_PATH=$(dirname "$DLC")/../lib expect 0 "-" ./program
sed -n '/^```c/,/^```/p' "$repository/docs/serving.md" | grep -v '```' >batch.c
expect 0 "" cc batch.c -Iinclude -L"$(dirname "$DLC")/../lib" -ldlcrt -o batch
LD_LIBRARY_PATH=$(dirname "$DLC")/../lib expect 0 "request 2: 1 row" ./batch

# blocks of Python, each a program of its own; those that need a package which is not here are left out
python=$repository/.venv/bin/python
if "$python" -c 'import cffi, numpy' 2>/dev/null; then
    mkdir package && cp -r "$repository/python/dlc" package/dlc
    "$python" "$repository/python/make_bindings.py" "${CC:-cc}" "$repository/include" package/dlc >out 2>err || fail "no bindings"
    export PYTHONPATH=$work/package DLC_LIBRARY_DIR=$(dirname "$DLC")/../lib DLC_CACHE_DIR=$work/cache
    nblocks=0
    for document in "$repository/README.md" "$repository"/docs/*.md; do
        rm -f block-*.py
        awk '/^```python/ { file = "block-" ++n ".py"; next } /^```/ { file = "" } file { print >file }' "$document"
        for block in block-*.py; do
            [ -e "$block" ] || continue
            package=$(sed -n 's/^\(import\|from\) \(torch\|ray\)\b.*/\2/p' "$block" | head -n 1)
            [ -z "$package" ] || "$python" -c "import $package" 2>/dev/null || continue
            expect 0 "" "$python" "$block"
            nblocks=$((nblocks + 1))
        done
    done
    [ "$nblocks" -ge 4 ] || fail "only $nblocks blocks of Python were run"
fi

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
