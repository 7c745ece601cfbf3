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
unknown_inside|3|my_foo;my_loop/in_loop;Looped;my_if/in_Yes;my_if/in_No;my_bar
custom_domain|3|my_act;FancyAct;com.acme
opset_99|3|99;28
matmul_k|1|my_matmul;MatMul;5;3
conv_kernel|1|my_conv;Conv;kernel_shape;5;3
conv_group|1|my_conv;Conv;group;2;3
undefined|1|my_add;ghost
bad_attribute|3|my_relu;slope
cycle|1|first
complex_output|3|my_cast
external_missing|5|weights.bin
external_outside|1|passwd
truncated|1|truncated.onnx
text|1|text.onnx
empty|1|empty.onnx
absent|5|absent.onnx
TABLE

# What is no ONNX model is called by its name.
other() {
    printf "$2" >other.onnx
    expect 1 "other.onnx: is $1" "$DLC" compile other.onnx -o out.so
}
other 'empty' ''
other 'a Git LFS pointer;git lfs pull' 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n'
other 'an HTML page' '<!DOCTYPE html><html><body>404</body></html>'
other 'a zip archive;torch.onnx.export' 'PK\003\004\024\000\000\000'
other 'a Python pickle' '\200\002}q\000.'
other 'a TensorFlow Lite model' '\034\000\000\000TFL3\024\000'
other 'a GGUF file' 'GGUF\003\000\000\000'
other 'a safetensors file' '\020\000\000\000\000\000\000\000{"a":{"dtype":1}}'
other 'compressed by gzip' '\037\213\010\000\000'
other 'a TensorFlow graph' '\012\020\012\004node\022\005Const'
other 'a TensorFlow graph' '\010\001\022\300\012\012\200\001saved_model and so on'
other 'JSON' '{"layers": []}'
printf '\010\011\072\144\012\002' >other.onnx
expect 1 'where 2 are left; the file is cut off' "$DLC" compile other.onnx -o out.so
rm other.onnx
finish
