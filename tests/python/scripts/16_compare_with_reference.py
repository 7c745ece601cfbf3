import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

model = onnx.load("digits.onnx")
x = np.load("digits_test.npz")["image"][:2]
expected = ReferenceEvaluator(model).run(None, {"image": x})
found = ort.InferenceSession(model.SerializeToString()).run(None, {"image": x})
for e, f in zip(expected, found):
    np.testing.assert_allclose(e, f, rtol=1e-3, atol=1e-4)
