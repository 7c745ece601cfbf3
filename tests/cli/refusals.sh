#!/bin/sh
# Faulty models: the right verdict, the node's name, its operator with opset, what was found; short; nothing written.
. "$1/cli/lib.sh"

# model | exit status | what must be said
while IFS='|' read -r model code patterns; do
    [ -n "$model" ] || continue
    expect "$code" "$patterns" "$DLC" compile "$models/$model.onnx" -o out.so
    [ ! -e out.so ] || fail "$model left a file"
    [ "$(ls | wc -l)" = 2 ] || fail "$model left files: $(ls)"
    [ "$(wc -l <err)" -le 8 ] || fail "$model takes more than 8 lines"
    expect "$code" '"exit":'"$code" "$DLC" compile "$models/$model.onnx" -o out.so --json
done <<'TABLE'
unknown_op|3|my_foo;FooBar;17
two_unknown|3|my_foo;FooBar;my_bar;BarFoo
custom_domain|3|my_act;FancyAct;com.acme
opset_99|3|99;28
matmul_k|1|my_matmul;MatMul;5;3
conv_kernel|1|my_conv;Conv;kernel_shape;5;3
conv_group|1|my_conv;Conv;group;2;3
undefined|1|my_add;ghost
bad_attribute|3|my_relu;slope
cycle|1|first
string_output|3|my_cast
external_missing|5|weights.bin
external_outside|1|passwd
truncated|1|truncated.onnx
text|1|text.onnx
empty|1|empty.onnx
absent|5|absent.onnx
TABLE
finish
