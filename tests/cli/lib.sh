# Helpers of the command-line tests. DLC is the program under test; every script runs in a fresh folder of its own.
set -u
models=$1/cli/models
repository=$1/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME="$work/cache" # a machine that its user has measured changes what is chosen
unset DLC_CACHE_DIR
nfailed=0

fail() {
    echo "FAIL: $*"
    sed 's/^/    /' err out 2>/dev/null | head -20
    nfailed=$((nfailed + 1))
}

# expect CODE 'PATTERN;PATTERN…' COMMAND…: the exit status, and what standard error or output must contain.
expect() {
    code=$1 patterns=$2
    shift 2
    "$@" >out 2>err
    got=$?
    [ "$got" = "$code" ] || { fail "$* ended with $got, where $code is expected"; return; }
    old=$IFS
    IFS=';'
    for pattern in $patterns; do
        grep -qF -e "$pattern" err out || { IFS=$old; fail "$* does not say '$pattern'"; return; }
    done
    IFS=$old
}

finish() {
    [ "$nfailed" = 0 ] && exit 0
    echo "$nfailed checks failed"
    exit 1
}
