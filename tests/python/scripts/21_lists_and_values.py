import numpy as np
import onnxruntime as ort

ort.disable_telemetry_events()
assert set(ort.get_available_providers()) <= set(ort.get_all_providers())
sess = ort.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
assert list(sess.get_provider_options()) == sess.get_providers()

# lists of numbers become what the model wants
image = [[[[float(i * j % 17) / 16 for i in range(8)] for j in range(8)]]]
out = sess.run(None, {"image": image})[0]
same = sess.run(None, {"image": np.array(image, np.float32)})[0]
assert (out == same).all()

value = ort.OrtValue.ortvalue_from_numpy(np.array(image, np.float32))
assert value.is_tensor() and value.has_value() and not value.is_sparse_tensor() and not value.is_tensor_sequence()
result = sess.run_with_ort_values(["logits"], {"image": value})[0]
assert (result.numpy() == same).all()
