import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("digits.onnx")
X = ort.OrtValue.ortvalue_from_numpy(np.load("digits_test.npz")["image"][:2])
Y = ort.OrtValue.ortvalue_from_shape_and_type([2, 10], np.float32)
binding = sess.io_binding()
binding.bind_input(name="image", device_type=X.device_name(), device_id=0, element_type=np.float32, shape=X.shape(), buffer_ptr=X.data_ptr())
binding.bind_output(name="logits", device_type=Y.device_name(), device_id=0, element_type=np.float32, shape=Y.shape(), buffer_ptr=Y.data_ptr())
sess.run_with_iobinding(binding)
np.testing.assert_allclose(Y.numpy(), sess.run(None, {"image": X.numpy()})[0], rtol=1e-5)
