import numpy as np
import onnx
import onnxruntime as ort

model = onnx.load("digits.onnx")
onnx.save_model(model, "outside.onnx", save_as_external_data=True, all_tensors_to_one_file=True, location="outside.data", size_threshold=0)
x = np.load("digits_test.npz")["image"][:2]
a = ort.InferenceSession("digits.onnx").run(None, {"image": x})[0]
b = ort.InferenceSession("outside.onnx").run(None, {"image": x})[0]
np.testing.assert_array_equal(a, b)
