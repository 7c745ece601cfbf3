import numpy as np
import onnxruntime as ort

x = np.load("digits_test.npz")["image"][:4]
x_ortvalue = ort.OrtValue.ortvalue_from_numpy(x)
assert x_ortvalue.device_name() == "cpu"
assert x_ortvalue.shape() == [4, 1, 8, 8]
assert x_ortvalue.data_type() == "tensor(float)"
assert x_ortvalue.is_tensor()
assert np.array_equal(x_ortvalue.numpy(), x)
sess = ort.InferenceSession("digits.onnx")
results = sess.run(["logits"], {"image": x_ortvalue})
assert results[0].shape == (4, 10)
(value,) = sess.run_with_ort_values(["logits"], {"image": x_ortvalue})
np.testing.assert_array_equal(value.numpy(), results[0])
