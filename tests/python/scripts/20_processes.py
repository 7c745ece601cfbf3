import multiprocessing

import numpy as np
import onnxruntime as ort

session = None


def init_worker(path):
    global session
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def work(image):
    return int(session.run(None, {"image": image[None]})[0].argmax())


images = np.load("digits_test.npz")["image"][:8]
with multiprocessing.get_context("fork").Pool(2, initializer=init_worker, initargs=("digits.onnx",)) as pool:
    labels = pool.map(work, list(images))
init_worker("digits.onnx")
assert labels == [work(image) for image in images]
