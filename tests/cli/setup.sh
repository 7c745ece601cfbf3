#!/bin/sh
# scripts/setup with an apt and a Python of the test's own: what is installed, what is said meanwhile, and what where it cannot be.
. "$1/cli/lib.sh"
mkdir -p scripts models bin
cp "$repository/scripts/setup" "$repository/scripts/step.sh" scripts/
echo numpy >models/requirements.txt
for tool in sh env cat cut date dirname id kill mktemp mkdir printf rm sleep tail; do
    ln -s "$(command -v $tool)" bin/
done
has() { # has NAME BODY: a program of that name
    printf '#!/bin/sh\n%s\n' "$2" >bin/"$1"
    chmod +x bin/"$1"
}
has dpkg-query 'exit 1'
has sudo '"$@"'
setup() { env PATH="$work/bin" sh scripts/setup "$@"; }

expect 2 "'--rum' is unknown" setup --rum
expect 1 "there is no apt-get; install what these packages of Debian hold: build-essential;llvm-19-dev" setup --run
[ "$(wc -l <err)" = 1 ] || fail "more than one line"

has apt-get 'echo "$@" >>asked; case $1 in install) sleep 6; echo unpacking ;; esac'
expect 0 "setup: installing build-essential" setup --run
cat out err | grep -q "^setup: [5-9] s: " || fail "what is installed is not told within 9 seconds: $(cat out err)"
grep -q "install .* llvm-19-dev" asked || fail "asked for other packages: $(cat asked)"
grep -q "clang-19\|qemu\|check" asked && fail "setup --run installs more than compiling needs"
[ ! -e .venv ] || fail "setup --run makes an environment"

has apt-get 'echo "E: no space left"; exit 100'
expect 100 "E: no space left" setup --run

has dpkg-query 'printf installed'
expect 0 "" setup --packages
[ ! -e .venv ] || fail "setup --packages makes an environment"
has python3 'mkdir -p $3/bin; printf "#!/bin/sh\necho \"\$@\" >>pips\n" >$3/bin/python; chmod +x $3/bin/python'
has chmod 'exec /bin/chmod "$@"'
expect 0 "setup: making .venv" setup
grep -q -- "-r models/requirements.txt" pips || fail "other packages: $(cat pips)"
expect 0 "" setup
[ ! -s out ] || fail "what is there is made again"
expect 0 "setup: making .venv-serving" setup --serving
grep -q "nvidia-pytriton" pips || fail "no server: $(cat pips)"
finish
