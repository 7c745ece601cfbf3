import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
         helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
         helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
         helper.make_node("Mul", ["rows", "wide"], ["last_hidden_state"]),
         helper.make_node("ReduceMean", ["last_hidden_state", "middle"], ["pooled"], keepdims=0)]
graph = helper.make_graph(
    nodes, "embed",
    [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask")],
    [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", 6]),
     helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", 6])],
    initializer=[onnx.numpy_helper.from_array(np.arange(60, dtype=np.float32).reshape(10, 6), "table"),
                 onnx.numpy_helper.from_array(np.array([2]), "last"), onnx.numpy_helper.from_array(np.array([1]), "middle")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "embed.onnx")

session = ort.InferenceSession("embed.onnx")
ort_inputs = {"input_ids": [[1, 2, 3], [4, 5, 0]], "attention_mask": [[1, 1, 1], [1, 1, 0]]}
ort_inputs = {name: np.array(rows, dtype=np.int64) for name, rows in ort_inputs.items()}
assert {i.name: i.type for i in session.get_inputs()} == dict.fromkeys(ort_inputs, "tensor(int64)")
hidden, pooled = session.run(["last_hidden_state", "pooled"], ort_inputs)
np.testing.assert_allclose(hidden.mean(1), pooled, rtol=1e-5)
only = session.run(["pooled"], ort_inputs)
assert len(only) == 1 and hidden[1, 2].sum() == 0
