# Kernels that were compiled once: found again, to the same bytes; whatever lies in their folder, code is what it is without it.
. "$1/cli/lib.sh"

digits=$repository/models/digits.onnx
unset DLC_KERNEL_CACHE
compiled() { # FOLDER [OPTIONS]: an executable has its own name in it
    made=$1
    shift
    mkdir -p "$made" && "$DLC" compile "$digits" -o "$made/m.so" -q "$@" >out 2>err || fail "does not compile: $(cat err)"
    cmp plain/m.so "$made/m.so" || fail "$made: not what it is without a folder"
}
compiled plain
export DLC_KERNEL_CACHE="$work/kernels"
compiled first
slots() { (cd kernels && ls -i); }
slots >before
[ "$(wc -l <before)" -ge 3 ] || fail "nothing is kept: $(cat before)"
[ "$(stat -c %a kernels)" = 700 ] || fail "others may look into the folder: $(stat -c %a kernels)"
compiled second
slots >after
cmp before after || fail "kernels are made again"

# Damage: of an object's last byte, a file that is cut off, one of another kernel, one that is none. Each is made again, the others not.
damaged() { # COMMAND…: what is done to the file $slot
    slot=kernels/$(ls kernels | head -1)
    slots >before
    cp "$slot" good
    "$@"
    compiled damaged
    cmp good "$slot" || fail "after $*: the kernel is not made again"
    slots >after
    [ "$(tail -n +2 before)" = "$(tail -n +2 after)" ] || fail "after $*: others are made again"
}
flipped() { printf '\377\376' | dd of="$slot" bs=1 seek=$(($(wc -c <good) - 700)) conv=notrunc status=none; }
cut_off() { head -c "$1" good >"$slot"; }
of_another() { cp "kernels/$(ls kernels | tail -1)" "$slot"; }
linked() { rm "$slot" && ln -s "$work/good" "$slot"; }
damaged flipped
damaged cut_off 0
damaged cut_off 100
damaged cut_off "$(($(wc -c <good) - 1))"
damaged of_another
damaged linked

# One that is being written elsewhere is left alone; one that somebody left who was ended goes.
slot=$(ls kernels | head -1)
rm "kernels/$slot" && : >"kernels/$slot.new"
compiled busy
{ [ ! -e "kernels/$slot" ] && [ -e "kernels/$slot.new" ]; } || fail "what another writes is overwritten"
touch -d '10 minutes ago' "kernels/$slot.new"
compiled left
compiled again
{ [ -e "kernels/$slot" ] && [ ! -e "kernels/$slot.new" ]; } || fail "what was left over stays: $(ls kernels)"

# Several at a time; another target has kernels of its own.
rm kernels/*
for i in 1 2 3 4; do
    mkdir "at$i" && "$DLC" compile "$digits" -o "at$i/m.so" --jobs 2 -q &
done
wait
for i in 1 2 3 4; do
    cmp plain/m.so "at$i/m.so" || fail "the ${i}th of several at a time"
done
ls kernels | grep new && fail "left over"
for target in x86-64-v2 x86-64-v3; do
    DLC_KERNEL_CACHE= "$DLC" compile "$digits" --target $target -o plain/m.so -q || fail "does not compile for $target"
    compiled $target --target $target
done

# Emulated kernels, of the C compiler: by another one they are made again, and without one nothing is found.
if [ "$(uname -m)" = x86_64 ] && cc=$(command -v cc); then
    ours=$PATH
    emulated() { compiled "$1" --target sm_75 --emulate-gpu; }
    DLC_KERNEL_CACHE= "$DLC" compile "$digits" --target sm_75 --emulate-gpu -o plain/m.so -q || fail "does not compile for the emulation"
    rm kernels/*
    emulated emulated
    slots >before
    [ -s before ] || fail "nothing is kept of the emulation"
    emulated emulated_again
    slots >after
    cmp before after || fail "emulated kernels are made again"
    slot=kernels/$(ls kernels | head -1)
    cp "$slot" good
    flipped
    emulated emulated_damaged
    cmp good "$slot" || fail "a damaged object of an emulated kernel is not made again"
    mkdir another
    printf '#!/bin/sh\n[ "$1" != --version ] || exec cat %s\necho asked >>%s\nexec %s "$@"\n' "$work/version" "$work/asked" "$cc" >another/cc
    "$cc" --version >version
    chmod +x another/cc
    PATH=$work/another:$ours
    emulated emulated_by_another
    [ -s asked ] || fail "what one C compiler made is taken for another's"
    cp asked before
    emulated emulated_by_another
    cmp asked before || fail "the other C compiler is asked again"
    echo "cc 99" >version
    emulated emulated_by_another
    cmp -s asked before && fail "what one C compiler made is taken for that of another, which the same file starts"
    PATH=$ours
    mkdir nothing
    expect 6 "which cannot be started" env PATH="$work/nothing" "$DLC" compile "$digits" --target sm_75 --emulate-gpu -o refused.so
fi

chmod g+w kernels
expect 2 "kernels;others may write" "$DLC" compile "$digits" -o refused.so
chmod g-w,o+w kernels
expect 2 "kernels;others may write" "$DLC" compile "$digits" -o refused.so
[ ! -e refused.so ] || fail "a file is left"
if [ "$(id -u)" = 0 ]; then # a folder of somebody else
    chmod o-w kernels && chown 12345 kernels
    expect 2 "kernels;others may write" "$DLC" compile "$digits" -o refused.so
fi
: >file
DLC_KERNEL_CACHE=$work/file expect 2 "names no folder" "$DLC" compile "$digits" -o refused.so
DLC_KERNEL_CACHE=$work/no/folder expect 2 "names no folder" "$DLC" compile "$digits" -o refused.so
finish
