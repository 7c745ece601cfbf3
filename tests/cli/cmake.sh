#!/bin/sh
# dlc in other people's builds: its runtime alone with nothing but a C compiler, cross-built for AArch64 by README's line, as a part of
# another CMake project, and installed into a distribution's folders.
. "$1/cli/lib.sh"
# What is built here is built from the sources, and the same whatever this build is: once is enough.
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$(dirname "$DLC")/../CMakeCache.txt" || { echo "skipped: the release build's test has it"; exit 77; }
for tool in cc cmake ninja; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
export CMAKE_GENERATOR=Ninja

# README's lines for the runtime
lines() { sed -n "s/^    \(cmake -S \. -B build\/$1 .*\)/\1/p" "$repository/README.md" | sed "s|-S \.|-S $repository|; s|build/$1|$1|g"; }
runtime=$(lines runtime) cross=$(lines aarch64)
[ -n "$runtime" ] && [ -n "$cross" ] || fail "README has no lines for the runtime alone"
mkdir bare && for tool in cc ninja cmake env; do ln -s "$(command -v $tool)" bare/; done
expect 0 "" env PATH="$work/bare:/bin" PKG_CONFIG=/nonexistent sh -ec "$runtime" # no pkg-config, LLVM or protobuf is looked for
grep -qi 'llvm\|protobuf' runtime/CMakeCache.txt && fail "the runtime alone looks for a compiler's libraries"
[ -e runtime/lib/libdlcrt.so ] && [ -e runtime/lib/libdlcrt.a ] || fail "the runtime alone has no libraries"
if command -v aarch64-linux-gnu-gcc >/dev/null; then
    expect 0 "" sh -ec "$cross"
    file=aarch64/lib/libdlcrt.so
    LC_ALL=C readelf -h $file | grep -q AArch64 || fail "the cross-built runtime is of another machine"
fi

# a project that takes dlc in whole and has a model of its own
mkdir app && cp "$repository/models/digits.onnx" app/
cat >app/main.c <<'END'
#include <stdio.h>
#include "digits.h"
int main(void)
{
    static float image[64], logits[10];
    dlcrt_executable *model;
    dlcrt_context *context;
    if (digits_open(&model) || dlcrt_context_create(model, NULL, &context) || digits_run(context, 1, image, logits)) {
        fprintf(stderr, "%s\n", dlcrt_last_error());
        return 1;
    }
    printf("ten logits\n");
    return 0;
}
END
cat >app/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C)
set(CMAKE_BUILD_TYPE Debug)
if(DEFINED DLC_SOURCE)
    include(FetchContent)
    FetchContent_Declare(dlc SOURCE_DIR ${DLC_SOURCE})
    FetchContent_MakeAvailable(dlc)
else()
    find_package(dlc 0.1 REQUIRED)
endif()
dlc_add_model(digits digits.onnx)
add_executable(app main.c)
target_link_libraries(app PRIVATE digits)
END
run_app() { # run_app FOLDER RUNNER…
    folder=$1
    shift
    cmake --build $folder >out 2>&1 || { fail "$folder cannot be built"; return; }
    expect 0 "ten logits" "$@" $folder/app
}
# with the runtime alone and the program that is here; the whole compiler takes minutes and is built the same way
expect 0 "" cmake -S app -B part -DDLC_SOURCE="$repository" -DDLC_RUNTIME_ONLY=ON -DDLC_PROGRAM="$DLC"
run_app part
expect 0 "" cmake -S app -B whole -DDLC_SOURCE="$repository"
grep -q '^DLC_TESTS:BOOL=OFF' whole/CMakeCache.txt || fail "a part of another project builds dlc's tests"
[ -z "$(find part -name install_manifest.txt)" ] || fail "installed"
if command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null; then
    expect 0 "" cmake -S app -B arm -DDLC_SOURCE="$repository" -DDLC_RUNTIME_ONLY=ON -DDLC_PROGRAM="$DLC" \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_EXE_LINKER_FLAGS=-static
    run_app arm qemu-aarch64
fi

# a distribution's folders
libraries=lib/$(cc -print-multiarch)
expect 0 "" cmake -S "$repository" -B multi -DDLC_RUNTIME_ONLY=ON -DCMAKE_INSTALL_LIBDIR="$libraries"
expect 0 "" cmake --build multi
expect 0 "" cmake --install multi --prefix "$work/usr"
mv usr moved
[ -e moved/$libraries/libdlcrt.so ] && [ -e moved/share/doc/dlc/LICENSE ] || fail "files lie elsewhere: $(find moved -type f | head -30)"
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$work/moved/$libraries/pkgconfig
    echo '#include <dlc/runtime.h>
int main(void) { return dlcrt_version()[0] == 0; }' >program.c
    cc program.c $(pkg-config --cflags --libs dlcrt) -o program && LD_LIBRARY_PATH=moved/$libraries ./program ||
        fail "pkg-config's flags do not build"
fi
expect 0 "" cmake -S app -B found -DCMAKE_PREFIX_PATH="$work/moved" -DDLC_PROGRAM="$DLC"
run_app found
finish
