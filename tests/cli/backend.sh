#!/bin/sh
# examples/backend, a target outside the tree: it is built against an installation alone, what it writes compiles without a warning
# and needs nothing, and on an emulated Cortex-M the digits model has the right numbers in a stated size.
. "$1/cli/lib.sh"
[ -z "${DLC_SANITIZED:-}" ] || { echo "skipped: what links to a sanitized library needs its sanitizer"; exit 77; }
for tool in cc pkg-config cmake python3; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
cmake --install "$(dirname "$DLC")/.." --prefix "$work/installed" >/dev/null || fail "it cannot be installed"
PATH=$work/installed/bin:$PATH
export PKG_CONFIG_PATH=$work/installed/lib/pkgconfig LD_LIBRARY_PATH=$work/installed/lib
cp -r installed/share/doc/dlc/examples . # as the installed ones, not those of the sources
mkdir models && cp "$repository/models/digits.onnx" "$repository/models/digits_test.npz" models

# the commands in the comments, as they stand there
commands() { sed -n 's/^ \*   \(.*[^;]\)$/\1/p' "$1"; }
commands examples/backend/portable_c.c >plugin.commands
[ "$(wc -l <plugin.commands)" = 2 ] || fail "portable_c.c shows other than two commands"
expect 0 "digits.c;digits.h" sh -ec "cd examples/backend && . ../../plugin.commands"
cd examples/backend || exit 1
cc -std=c11 -Wall -Wextra -Wshadow -Werror -fsyntax-only ./*.c -I"$work/installed/include" 2>err || fail "the plug-in has warnings"
cc -std=c99 -Wall -Wextra -pedantic -Werror -O2 -c digits.c 2>err || fail "digits.c has warnings"
nm -u digits.o | grep -v _GLOBAL_OFFSET_TABLE_ >out && fail "digits.o needs something"

# what it cannot, it says
: >out
digits=$work/models/digits.onnx
expect 2 "'so' is not made for ./portable_c.so; there are c and h" dlc compile "$digits" --target ./portable_c.so -o x
expect 2 "is a plug-in, whose files hold nothing for another target" dlc compile "$digits" --target native,./portable_c.so --emit c -o x
expect 3 "is known at run time only; fix it with --shape" dlc compile "$digits" --target ./portable_c.so --emit c -o x
expect 2 "no_such.so" dlc compile "$digits" --target ./no_such.so --emit c -o x
echo 'int x;' >empty.c && cc -shared -fPIC empty.c -o empty.so
expect 2 "exports no dlc_backend_get" dlc compile "$digits" --target ./empty.so --emit c -o x
sed 's/\.version = DLC_BACKEND_VERSION/.version = 99/' portable_c.c >old.c
cc -shared -fPIC old.c kernel.c expression.c prelude.c -I"$work/installed/include" -o old.so
expect 2 "made for version 99" dlc compile "$digits" --target ./old.so --emit c -o x
printf 'graph @g(%%x: f32[4,9]) -> %%v {\n  %%v: f32[4,2], %%i: i64[4,2] = topk %%x {axis=1, largest=1, sorted=1, dims=[2]}\n}\n' >top.dlc
expect 3 "is no equation (topk)" dlc compile top.dlc --target ./portable_c.so --emit c -o x
printf 'graph @g(%%x: f16[4]) -> %%y {\n  %%y: f16[4] = relu %%x\n}\n' >half.dlc
expect 3 "is f16; there are f32, f64, integers and bool here" dlc compile half.dlc --target ./portable_c.so --emit c -o x
[ -e x ] && fail "a refusal left a file"

# on the machine
if ! command -v arm-none-eabi-gcc >/dev/null || ! command -v qemu-system-arm >/dev/null; then
    [ "$nfailed" = 0 ] && { echo "skipped in part: there is no arm-none-eabi-gcc or qemu-system-arm"; exit 77; }
    finish
fi
commands cortex_m/main.c >device.commands
[ "$(wc -l <device.commands)" = 4 ] || fail "main.c shows other than four commands"
expect 0 "error" sh -ec "cd cortex_m && . ../device.commands"
read -r word error word2 stack <out
echo "error of 20 images $error, stack $stack bytes"
python3 -c "exit(not $error <= 2e-5)" || fail "the logits are $error away from the test set's"
section() { arm-none-eabi-size -A cortex_m/digits.elf | awk -v name="$1" '$1 == name { print $2 }'; }
constants=$(sed -n 's/.*Constants: \([0-9]*\) bytes.*/\1/p' digits.h)
arena=$(sed -n 's/.*bytes\[\([0-9]*\)\].*/\1/p' digits.h)
code=$(section .text)
echo "code $code bytes with start-up, constants $constants, RAM $arena and the stack"
[ "$code" -lt 2500 ] || fail "code of $code bytes"
[ "$constants" -lt 25000 ] || fail "constants of $constants bytes"
[ "$((arena + stack))" -lt 7000 ] || fail "RAM of $((arena + stack)) bytes"
[ "$(section .rodata)" -le "$((constants + 20 * 256 + 64))" ] || fail "constants beyond what is stated"
finish
