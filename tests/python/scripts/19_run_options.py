import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(3)
ro = ort.RunOptions()
ro.log_severity_level = 3
ro.logid = "request 7"
ro.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
sess = ort.InferenceSession("digits.onnx", None, [("CPUExecutionProvider", {"use_arena": "1"})])
sess.disable_fallback()
out = sess.run(["logits"], {"image": np.zeros((1, 1, 8, 8), np.float32)}, ro)
assert np.isfinite(out[0]).all()
assert sess.get_session_options().intra_op_num_threads == 0
assert ort.get_device() in ("CPU", "GPU", "CPU-DNNL") and ort.__version__
