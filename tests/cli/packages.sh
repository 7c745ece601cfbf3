#!/bin/sh
# What cpack makes: a .deb in which lintian finds no error and which names what it needs, and a .tgz; the program runs out of both.
. "$1/cli/lib.sh"
build=$(cd "$(dirname "$DLC")/.." && pwd)
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$build/CMakeCache.txt" || { echo "skipped: packages are made of release builds"; exit 77; }
for tool in cpack dpkg-deb dpkg-shlibdeps lintian; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool; scripts/setup installs it"; exit 77; }
done
cpack --config "$build/CPackConfig.cmake" -B "$work/made" >out 2>&1 || fail "cpack"
mv made/*.deb dlc.deb
mv made/*.tar.gz dlc.tgz
lintian --allow-root --fail-on error dlc.deb >out 2>&1 || fail "lintian: $(cat out)"
dpkg-deb -f dlc.deb Depends >depends
for package in libc6 libcjson1 libllvm19 libprotobuf-c1; do
    grep -q "$package" depends || fail "the package does not depend on $package: $(cat depends)"
done

mkdir deb tgz
dpkg-deb -x dlc.deb deb && tar xzf dlc.tgz -C tgz --strip-components 1
for root in deb/usr tgz; do
    expect 0 "digits.so" $root/bin/dlc compile "$repository/models/digits.onnx" -o digits.so
    expect 0 "" $root/bin/dlc run digits.so --inputs "$repository/models/digits_test.npz"
    [ -e $root/lib/dlc/triton/dlc/libtriton_dlc.so ] || fail "$root has no backend for Triton"
done
for file in copyright changelog.gz LICENSE README.md; do
    [ -e deb/usr/share/doc/dlc/$file ] || fail "the package has no $file"
done
zcat deb/usr/share/man/man1/dlc.1.gz | grep -q compile || fail "the manual page"
zcat deb/usr/share/doc/dlc/changelog.gz | head -n 1 | grep -q '^dlc (0\.1\.0) ' || fail "the changelog"
finish
