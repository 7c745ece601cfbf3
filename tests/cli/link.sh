#!/bin/sh
# dlc links by itself: no other program is started, other tools read and rewrite its files, and the same input gives the same bytes.
. "$1/cli/lib.sh"
digits=$repository/models/digits.onnx
data=$repository/models/digits_test.npz
expect 0 "" "$DLC" compile "$digits" -o model.so
expect 0 "" "$DLC" run model.so --outputs plain.npz
[ -z "${DLC_SANITIZED:-}" ] || finish # PATH matters to sanitizers, and strip to nothing they see

# without a program to start, in another folder, at another time, checked as it is made or not: the same bytes
mkdir other && (cd other && PATH=/nonexistent "$DLC" compile "$digits" -o model.so >/dev/null)
cmp -s model.so other/model.so || fail "the same model became other bytes"
for verify in "" 0 1; do
    (cd other && DLC_VERIFY=$verify "$DLC" compile "$digits" -o model.so >/dev/null)
    cmp -s model.so other/model.so || fail "DLC_VERIFY=$verify changes the bytes"
done
if command -v strace >/dev/null; then
    strace -f -qq -e trace=execve -o trace "$DLC" compile "$digits" -o traced.so >/dev/null 2>&1
    [ "$(grep -c 'execve(' trace)" = 1 ] || fail "compile starts programs: $(cat trace)"
fi

# what packagers do to files leaves one that runs
rewritten() { # rewritten COMMAND…: of a copy of model.so
    command -v "$1" >/dev/null || return 0
    cp model.so copy.so
    "$@" copy.so 2>err || { fail "$* does not take the file"; return; }
    expect 0 "" "$DLC" run copy.so --expect plain.npz --atol 0 --rtol 0
}
rewritten strip
rewritten strip --strip-unneeded
rewritten objcopy --strip-all
rewritten llvm-strip-19
rewritten llvm-objcopy-19 --strip-all
rewritten patchelf --set-rpath '$ORIGIN/../lib'
if command -v strip >/dev/null && command -v patchelf >/dev/null; then
    cp model.so both.so
    patchelf --set-soname a-rather-long-name-of-a-model.so.1 both.so && strip both.so || fail "strip after patchelf"
    expect 0 "" "$DLC" run both.so --expect plain.npz --atol 0 --rtol 0
    [ "$(stat -c %s both.so)" -gt 1000 ] && head -c 5000 both.so >cut.so
    expect 1 "cut off" "$DLC" run cut.so
fi

# every processor's file is one that other tools find nothing wrong with
for target in x86-64-v2 x86-64-v4 aarch64; do
    for kind in so o a; do
        expect 0 "" "$DLC" compile "$digits" --target $target --emit $kind -o file.$kind
        command -v readelf >/dev/null || continue
        LC_ALL=C readelf -aW file.$kind >out 2>err || fail "readelf refuses $target.$kind"
        grep -i 'warning\|error' err && fail "readelf on $target.$kind: $(cat err)"
    done
    if command -v ld.lld-19 >/dev/null; then
        ld.lld-19 -shared --no-undefined file.o -o again.so 2>err || fail "lld does not link $target"
    fi
done

# undefined symbols, dlopen, and the table of names
if command -v nm >/dev/null; then
    [ -z "$(nm -D --undefined-only model.so)" ] || fail "it needs symbols"
    nm -D --defined-only model.so | grep -q ' dlc_executable_model$' || fail "it does not export dlc_executable_model"
    nm model.so | grep -q ' t dlc_k0$' || fail "its kernels have no names"
fi
finish
