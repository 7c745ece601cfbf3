#!/bin/sh
# The page of dlc report: one file that loads nothing and runs no script, and is what a browser draws.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx

expect 0 "digits.html" "$DLC" report "$digits" -o digits.html --seconds 0.1
for text in "<title>" "id='graph'" "id='roofline'" "id='timeline'" "id='memory'" "slowest kernel" "peak memory" "lost dot" "bound by"; do
    grep -qF "$text" digits.html || fail "digits.html has no \"$text\""
done
! grep -qE "<script|<link [^>]*href='[^d]|src=|url\(|@import|https?:" digits.html || fail "digits.html loads something"
expect 0 "" "$DLC" compile "$digits" -o digits.so
steps=$("$DLC" inspect digits.so --json | grep -o '"steps":[0-9]*,')
expect 0 "$steps" "$DLC" report "$digits" -o again.html --seconds 0.1 --json
expect 0 "" "$DLC" report "$digits" -o aarch64.html --target aarch64
grep -q "estimates" aarch64.html || fail "a page for another processor does not say that its times are estimates"
expect 2 "the page is made of the model" "$DLC" report digits.so
expect 5 "nowhere" "$DLC" report "$digits" -o nowhere/x.html

# names are text
cat >tagged.dlc <<TEXT
graph @f(%x: f32[4,8]) -> %y {
  %"<b>&": f32[4,8] = relu %x
  %y: f32[4,8] = exp %"<b>&"
}
TEXT
expect 0 "" "$DLC" report tagged.dlc -o tagged.html --seconds 0.1 --fusion none
grep -q "&#60;b&#62;&#38;" tagged.html && ! grep -q "<b>&[^#]" tagged.html || fail "a name is read as HTML"

# a value that every one of repeated blocks has is told once, and the largest value's tile says between which kernels
{
    echo 'graph @f(%v: f32[512,512]) -> %c7 {'
    echo '  %w: f32[512,512] = const hash(1)'
    before=v
    for i in $(seq 0 7); do
        echo "  %m$i: f32[512,512] = matmul %$before, %w"
        echo "  %c$i: f32[512,512] = cumsum %m$i {axis=0}"
        before=c$i
    done
    echo '}'
} >blocks.dlc
expect 0 "" "$DLC" report blocks.dlc -o blocks.html --seconds 0.1
grep -q '[78] × 1.05 MB' blocks.html || fail "repeated values are not told together: $(grep -o '[0-9]* × [0-9.]* MB' blocks.html | head -3)"
grep -q "largest value between kernels<b>1.05 MB</b>[mc][0-9].* → [mc][0-9]" blocks.html || fail "the tile names no kernels"

# what is computed before a product is counted once, not for every product it enters: 2 * 256^3 and 256^2; so many are bound by them on any
# machine (64^3 are not where memory gives 11 GB/s)
cat >gated.dlc <<'TEXT'
graph @f(%a: f32[256,256]) -> %m {
  %w: f32[256,256] = const hash(1)
  %r: f32[256,256] = relu %a
  %m: f32[256,256] = matmul %r, %w
}
TEXT
echo '{"groups": [["%r", "%m"]]}' >together.json
expect 0 '"nodes":["r","m"];"flops":33619968' "$DLC" inspect gated.dlc --fusion together.json --json
expect 0 ' % fma' "$DLC" bench gated.dlc --fusion together.json --seconds 0.1 --threads 1 --profile trace.json

# the picture: resnet50 on three screens, with few boxes, without a word on the console and without a request
model=$(echo "$repository"/.venv/lib/python3*/site-packages/onnx/backend/test/data/light/light_resnet50.onnx)
browser=$(command -v chromium-headless-shell || command -v chromium || true)
if [ -z "$browser" ] || [ ! -e "$model" ]; then
    echo "the picture is not looked at: there is no Chromium, or no resnet50"
    finish
fi
expect 0 "" "$DLC" report "$model" -o resnet50.html --seconds 0.1
boxes=$(sed -n "s/.*data-boxes='\([0-9]*\)'.*/\1/p" resnet50.html)
[ "$boxes" -gt 10 ] && [ "$boxes" -le 57 ] || fail "the graph of resnet50 has $boxes boxes"
[ "$(wc -c <resnet50.html)" -lt 2000000 ] || fail "resnet50.html is larger than 2 MB"
"$browser" --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr --v=0 --log-net-log=net.json \
    --window-size=1400,2700 --screenshot=page.png "file://$work/resnet50.html" >out 2>err || fail "the browser fails"
! grep -q CONSOLE err || fail "the browser's console: $(grep CONSOLE err)"
! grep -q '"url":"http' net.json || fail "the page makes a request"
python3 "$1/cli/look.py" page.png >out 2>err || fail "$(cat out err)"
finish
