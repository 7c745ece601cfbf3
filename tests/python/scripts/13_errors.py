import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("digits.onnx")
for feed in ({"picture": np.zeros((1, 1, 8, 8), np.float32)}, {"image": np.zeros((1, 3, 8, 8), np.float32)},
             {"image": np.zeros((1, 1, 8, 8), np.float64)}, {}):
    try:
        sess.run(None, feed)
    except Exception as e:
        assert str(e)
    else:
        raise AssertionError(feed)
try:
    ort.InferenceSession("nowhere.onnx")
except Exception as e:
    assert "nowhere.onnx" in str(e)
else:
    raise AssertionError("a file that is not there")
