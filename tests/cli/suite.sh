#!/bin/sh
# dlc test: a line per folder, a summary, the list of what does not pass. Cases are made with dlc itself.
. "$1/cli/lib.sh"

cat >input.dlc <<'TEXT'
graph @input(%s: f32[5,3]) -> %x {
  %x: f32[5,3] = neg %s
}
TEXT
expect 0 "" "$DLC" run input.dlc --output-dir made
make_case() { # make_case NAME MODEL
    mkdir -p "cases/$1/test_data_set_0"
    cp "$models/$2.onnx" "cases/$1/model.onnx"
    cp made/output_0.pb "cases/$1/test_data_set_0/input_0.pb"
}
make_case right good
expect 0 "" "$DLC" run "$models/good.onnx" --inputs made/output_0.pb --output-dir cases/right/test_data_set_0
make_case wrong good
cp made/output_0.pb cases/wrong/test_data_set_0/output_0.pb
make_case lacking unknown_op
make_case broken matmul_k

expect 4 "PASS right;FAIL wrong: output 'y' is f32[5,4], where f32[5,3] is expected;UNSUPPORTED(;my_foo;FAIL broken;my_matmul;1 PASS, 2 FAIL, 1 UNSUPPORTED of 4" \
    "$DLC" test cases
expect 4 "1 PASS, 2 FAIL, 1 UNSUPPORTED of 4" "$DLC" test cases --interpret
expect 4 '"pass":1,"fail":2,"unsupported":1' "$DLC" test cases --json
expect 0 "1 PASS, 0 FAIL, 0 UNSUPPORTED of 1" "$DLC" test cases/right/
expect 0 "2 PASS" "$DLC" test cases/right cases/right --jobs 1

# What was compiled before needs no compiler.
mkdir -p alone carried/right/test_data_set_0
cp "$DLC" alone/dlc
expect 0 "" "$DLC" run input.dlc --outputs input.npz
expect 0 "" "$DLC" run "$models/good.onnx" --inputs made/output_0.pb --outputs output.npz
for part in input output; do
    python3 -m zipfile -e $part.npz $part
    cp $part/*.npy carried/right/test_data_set_0/${part}_0.npy
done
expect 0 "" "$DLC" compile cases/right/model.onnx -o carried/right/model.so
expect 0 "1 PASS, 0 FAIL, 0 UNSUPPORTED of 1" alone/dlc test carried

expect 0 "" "$DLC" test cases --list list.txt --update
expect 0 "" "$DLC" test cases --list list.txt
[ "$(grep -v '^#' list.txt)" = "broken FAIL
lacking UNSUPPORTED
wrong FAIL" ] || fail "the list is not what is expected: $(cat list.txt)"
cp cases/right/test_data_set_0/output_0.pb cases/wrong/test_data_set_0/
expect 4 "1 of its cases pass now and must leave it (--update does that): wrong" "$DLC" test cases --list list.txt
expect 0 "" "$DLC" test cases --list list.txt --update
grep -q wrong list.txt && fail "the list did not shrink"
cp made/output_0.pb cases/wrong/test_data_set_0/
expect 4 "wrong is FAIL, where PASS is expected" "$DLC" test cases --list list.txt
echo "right maybe" >list.txt
expect 1 "has the line 'right maybe'" "$DLC" test cases --list list.txt
expect 2 "holds neither a model.onnx (or model.so) nor folders with one" "$DLC" test made
expect 5 "nowhere: cannot be read" "$DLC" test nowhere
finish
