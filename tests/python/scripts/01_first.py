import numpy as np
import onnxruntime as ort

data = np.load("digits_test.npz")
session = ort.InferenceSession("digits.onnx")
input_name = session.get_inputs()[0].name
label_name = session.get_outputs()[0].name
pred = session.run([label_name], {input_name: data["image"].astype(np.float32)})[0]
assert (np.argmax(pred, axis=1) == data["labels"]).mean() > 0.95
