import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("digits.onnx")
x = np.load("digits_test.npz")["image"][:4]
io_binding = session.io_binding()
io_binding.bind_cpu_input("image", x)
io_binding.bind_output("logits")
session.run_with_iobinding(io_binding)
y = io_binding.copy_outputs_to_cpu()[0]
np.testing.assert_allclose(y, session.run(None, {"image": x})[0], rtol=1e-5)
