import numpy as np
import onnxruntime as rt

so = rt.SessionOptions()
so.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_ALL
so.intra_op_num_threads = 1
so.inter_op_num_threads = 1
so.execution_mode = rt.ExecutionMode.ORT_SEQUENTIAL
so.log_severity_level = 3
so.enable_profiling = False
so.add_session_config_entry("session.intra_op.allow_spinning", "0")
sess = rt.InferenceSession("digits.onnx", sess_options=so, providers=["CPUExecutionProvider"])
sess.run([], {"image": np.zeros((1, 1, 8, 8), dtype=np.float32)})
