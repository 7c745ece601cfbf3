import numpy as np
import onnx
import onnxruntime as ort

model = onnx.load("digits.onnx")
onnx.checker.check_model(model)
sess = ort.InferenceSession(model.SerializeToString())
assert [i.name for i in sess.get_inputs()] == [i.name for i in model.graph.input]
assert sess.run(None, {sess.get_inputs()[0].name: np.zeros((1, 1, 8, 8), "float32")})[0].size == 10
