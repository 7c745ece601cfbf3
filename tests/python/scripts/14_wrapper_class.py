import time

import numpy as np
import onnxruntime


class Classifier:
    def __init__(self, path, device="cpu"):
        providers = ["CUDAExecutionProvider", "CPUExecutionProvider"] if device == "cuda" else ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(path, providers=providers)
        self.input_names = [x.name for x in self.session.get_inputs()]
        self.output_names = [x.name for x in self.session.get_outputs()]

    def __call__(self, image):
        start = time.perf_counter()
        outputs = self.session.run(self.output_names, {self.input_names[0]: image})
        print(f"inference: {(time.perf_counter() - start) * 1000:.2f} ms")
        scores = np.exp(outputs[0] - outputs[0].max(-1, keepdims=True))
        return scores / scores.sum(-1, keepdims=True)


np.testing.assert_allclose(Classifier("digits.onnx")(np.load("digits_test.npz")["image"][:5]).sum(1), 1, rtol=1e-5)
