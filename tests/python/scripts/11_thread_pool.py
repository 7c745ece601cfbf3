from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort

images = np.load("digits_test.npz")["image"][:64]
opts = ort.SessionOptions()
opts.intra_op_num_threads = 1
session = ort.InferenceSession("digits.onnx", opts)


def predict(image):
    return session.run(None, {"image": image[None]})[0][0].argmax()


with ThreadPoolExecutor(max_workers=8) as pool:
    found = list(pool.map(predict, images))
assert found == session.run(None, {"image": images})[0].argmax(1).tolist()
