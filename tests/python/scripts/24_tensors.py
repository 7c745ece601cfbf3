import numpy as np
import onnxruntime as ort

x = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 1, 8, 8), np.float32))
assert x.tensor_size_in_bytes() == 2 * 64 * 4 and x.element_type() and x.data_type() == "tensor(float)"
x.update_inplace(np.ones((2, 1, 8, 8), np.float32))
sess = ort.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
binding = sess.io_binding()
binding.bind_ortvalue_input("image", x)
binding.bind_output("logits", "cpu")
binding.synchronize_inputs()
sess.run_with_iobinding(binding, ort.RunOptions())
binding.synchronize_outputs()
first = binding.get_outputs()[0]
assert first.shape() == [2, 10] and first.has_value() and first.is_tensor()
again = sess.run_with_ort_values(["logits"], {"image": x})[0]
np.testing.assert_allclose(first.numpy(), again.numpy())
assert not np.allclose(first.numpy(), sess.run(None, {"image": np.zeros((2, 1, 8, 8), np.float32)})[0])
ort.set_seed(0)
ort.set_default_logger_verbosity(0)
print(ort.get_version_string(), ort.get_build_info())
