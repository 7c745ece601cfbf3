import numpy as np
import onnxruntime

sess = onnxruntime.InferenceSession("digits.onnx", providers=onnxruntime.get_available_providers())
assert "CPUExecutionProvider" in sess.get_providers()
image = np.load("digits_test.npz")["image"][:3]
outputs = sess.run(None, {"image": image})
assert outputs[0].shape == (3, 10) and outputs[0].dtype == np.float32
