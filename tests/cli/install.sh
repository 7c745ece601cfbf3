#!/bin/sh
# An installation that was moved after the build: the program finds its compiler, pkg-config and CMake find libraries and headers,
# and the examples, as their comments say to build them, run.
. "$1/cli/lib.sh"
[ -z "${DLC_SANITIZED:-}" ] || { echo "skipped: what links to a sanitized library needs its sanitizer"; exit 77; }
for tool in cc pkg-config cmake; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
build=$(dirname "$DLC")/..
cmake --install "$build" --prefix "$work/first" >/dev/null || fail "it cannot be installed"
mv first moved
installed=$work/moved
DLC=$installed/bin/dlc
PATH=$installed/bin:$PATH
export PKG_CONFIG_PATH=$installed/lib/pkgconfig LD_LIBRARY_PATH=$installed/lib

ln -s "$DLC" link
expect 0 "digits.so" ./link compile "$repository/models/digits.onnx" -o digits.so
cp -r "$installed/share/doc/dlc/examples" . # as the installed ones, not those of the sources
mkdir models && cp "$repository/models/digits.onnx" models

# the commands in the comments of the examples, as they stand there
commands() { sed -n 's/^ \*   \(.*[^;]\)$/\1/p' "$1"; }
for program in classify classify_linked; do
    commands examples/embed/$program.c | sed 's|models/|../../models/|' >$program.commands
    [ "$(wc -l <$program.commands)" = 2 ] || fail "$program.c shows other than two commands: $(cat $program.commands)"
    expect 0 "it is a 3" sh -ec "cd examples/embed && . ../../$program.commands"
done
expect 1 "classify: no model: nowhere.so" examples/embed/classify nowhere.so
cc -shared -fPIC -I"$installed/include" examples/fusion/best_first.c -o best_first.so || fail "no plug-in"
expect 0 "best_first" dlc bench models/digits.onnx --fusion none,./best_first.so --seconds 0.1

cmake -S examples/embed -B cmake -DCMAKE_PREFIX_PATH="$installed" >out 2>&1 && cmake --build cmake >>out 2>&1 ||
    fail "CMake does not build the examples"
expect 0 "it is a 3" cmake/classify digits.so
expect 0 "it is a 3" env -u LD_LIBRARY_PATH cmake/classify_linked
ldd cmake/classify_linked | grep -q dlc && fail "classify_linked needs a library of dlc"

for file in man/man1/dlc.1 bash-completion/completions/dlc zsh/site-functions/_dlc fish/vendor_completions.d/dlc.fish; do
    grep -q compile "$installed/share/$file" || fail "there is no share/$file"
done

# what an installation must carry: the licence whole, and no document that leads to one that is not there
doc=$installed/share/doc/dlc
for text in "Version 2.0, January 2004" "END OF TERMS AND CONDITIONS" "LLVM Exceptions to the Apache 2.0 License"; do
    grep -q "$text" "$doc/LICENSE" || fail "the licence lacks: $text"
done
for page in "$doc"/*.md "$doc"/docs/*.md; do
    sed -n 's/.*](\([^)#:]*\)[^)]*).*/\1/p' "$page" | while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || echo "$page leads to $link, which is not installed"
    done
done >missing
[ -s missing ] && fail "$(cat missing)"

# every public header by itself, in C and C++
for header in "$installed"/include/dlc/*.h; do
    for std in c11 c17; do
        echo "#include <dlc/$(basename "$header")>" |
            cc -std=$std -Wall -Wextra -pedantic -Werror -I"$installed/include" -x c -fsyntax-only - || fail "$header as $std"
    done
    command -v c++ >/dev/null || continue
    echo "#include <dlc/$(basename "$header")>" |
        c++ -std=c++11 -Wall -Wextra -pedantic -Werror -I"$installed/include" -x c++ -fsyntax-only - || fail "$header as C++"
done
finish
