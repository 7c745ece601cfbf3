import threading

import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
data = np.load("digits_test.npz")
done, found = threading.Event(), {}


def callback(results, user_data, err):
    if err:
        found["error"] = err
    else:
        found[user_data] = results[0].argmax()
    done.set()


sess.run_async(None, {"image": data["image"][:1]}, callback, "first")
assert done.wait(60) and found == {"first": data["logits"][0].argmax()}, found
done.clear()
sess.run_async(None, {"image": data["image"][:1, 0]}, callback, None)
assert done.wait(60) and found["error"]

ro = ort.RunOptions()
ro.terminate = True
ended = []
try:
    sess.run(None, {"image": data["image"][:1]}, ro)
except Exception as error:
    ended.append(str(error))
assert ended, "a terminated run ended well"
ro.terminate = False
assert sess.run(None, {"image": data["image"][:1]}, ro)[0].shape == (1, 10)
assert sess.run(None, {"image": data["image"][:1]})[0].shape == (1, 10)
