import numpy as np
import onnxruntime as ort

data = np.load("digits_test.npz")
sess = ort.InferenceSession("digits.onnx")
correct = 0
for i in range(0, len(data["image"]), 32):
    logits = sess.run(None, {"image": data["image"][i:i + 32]})[0]
    correct += int((logits.argmax(-1) == data["labels"][i:i + 32]).sum())
print("accuracy", correct / len(data["image"]))
assert correct / len(data["image"]) > 0.95
