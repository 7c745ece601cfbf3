import json
import os

import numpy as np
import onnxruntime as ort

so = ort.SessionOptions()
so.enable_profiling = True
so.profile_file_prefix = "digits_profile_"
so.add_free_dimension_override_by_name("batch", 1)
sess = ort.InferenceSession("digits.onnx", so, providers=["CPUExecutionProvider"])
for _ in range(3):
    sess.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
path = sess.end_profiling()
assert os.path.basename(path).startswith("digits_profile_") and sess.get_profiling_start_time_ns() > 0
with open(path) as f:
    events = json.load(f)
nodes = [e for e in events if e.get("cat") == "Node" and "dur" in e]
assert nodes and sum(e["dur"] for e in nodes) > 0
for e in sorted(nodes, key=lambda e: -e["dur"])[:3]:
    print(e["name"], e["dur"], "us")
