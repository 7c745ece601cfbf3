import onnxruntime as ort

sess = ort.InferenceSession("digits.onnx")
for arg in sess.get_inputs() + sess.get_outputs():
    print("%s %s %s" % (arg.name, arg.shape, arg.type))
    assert arg.type == "tensor(float)"
    assert isinstance(arg.shape[0], str)
dims = [d if isinstance(d, int) else 1 for d in sess.get_inputs()[0].shape]
assert dims == [1, 1, 8, 8]
