#!/usr/bin/env python3
"""make_models.py: writes the small ONNX files in tests/cli/models, which are committed. Each has one fault, named by the file."""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OUT = pathlib.Path(__file__).parent / "models"
FLOAT = TensorProto.FLOAT


def save(name, nodes, inputs, outputs, weights=(), opset=17, domains=()):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, name, [info(n, t, s) for n, t, s in inputs], [info(n, t, s) for n, t, s in outputs],
                              [numpy_helper.from_array(w, n) for n, w in weights])
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="make_models.py")
    (OUT / f"{name}.onnx").write_bytes(model.SerializeToString())
    return model


def main():
    OUT.mkdir(exist_ok=True)
    node, rng = helper.make_node, np.random.default_rng(1)
    x, y = ("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 3])
    weight = rng.standard_normal((3, 4)).astype(np.float32)
    good = save("good", [node("MatMul", ["x", "w"], ["h"], "project"), node("Relu", ["h"], ["y"], "act")],
                [("x", FLOAT, ["batch", 3])], [("y", FLOAT, ["batch", 4])], [("w", weight)])
    save("unknown_op", [node("FooBar", ["x"], ["y"], "my_foo")], [x], [y])
    save("two_unknown", [node("FooBar", ["x"], ["h"], "my_foo"), node("BarFoo", ["h"], ["y"], "my_bar")], [x], [y])
    value, state = helper.make_tensor_value_info, ("s", FLOAT, [2, 3])
    once = helper.make_graph([node("Looped", ["s"], ["s2"], "in_loop"), node("Identity", ["c"], ["c2"])], "once",
                             [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value(*state)],
                             [value("c2", TensorProto.BOOL, []), value("s2", FLOAT, [2, 3])])
    yes, no = (helper.make_graph([node(op, ["u"], ["b"], "in_" + op)], op, [], [value("b", FLOAT, None)]) for op in ("Yes", "No"))
    save("unknown_inside", [node("FooBar", ["x"], ["h"], "my_foo"), node("Loop", ["n", "", "h"], ["u"], "my_loop", body=once),
                            node("If", ["u"], ["t"], "my_if", then_branch=yes, else_branch=no), node("BarFoo", ["t"], ["y"], "my_bar")],
         [x], [y], [("n", np.int64(3))])
    save("custom_domain", [node("FancyAct", ["x"], ["y"], "my_act", domain="com.acme")], [x], [y], domains=["com.acme"])
    save("opset_99", [node("Relu", ["x"], ["y"], "act")], [x], [y], opset=99)
    save("matmul_k", [node("MatMul", ["x", "w"], ["y"], "my_matmul")], [("x", FLOAT, [2, 5])], [("y", FLOAT, [2, 4])],
         [("w", weight)])
    save("conv_kernel", [node("Conv", ["x", "w"], ["y"], "my_conv", kernel_shape=[5, 5])], [("x", FLOAT, [1, 3, 8, 8])],
         [("y", FLOAT, [1, 4, 4, 4])], [("w", rng.standard_normal((4, 3, 3, 3)).astype(np.float32))])
    save("conv_group", [node("Conv", ["x", "w"], ["y"], "my_conv", group=2)], [("x", FLOAT, [1, 3, 8, 8])],
         [("y", FLOAT, [1, 4, 6, 6])], [("w", rng.standard_normal((4, 1, 3, 3)).astype(np.float32))])
    save("undefined", [node("Add", ["x", "ghost"], ["y"], "my_add")], [x], [y])
    save("bad_attribute", [node("Relu", ["x"], ["y"], "my_relu", slope=0.5)], [x], [y])
    save("cycle", [node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second"),
                   node("Relu", ["b"], ["y"], "third")], [x], [y])
    save("complex_output", [node("Cast", ["x"], ["y"], "my_cast", to=TensorProto.COMPLEX64)], [x],
         [("y", TensorProto.COMPLEX64, [2, 3])])

    external = onnx.ModelProto.FromString(good.SerializeToString())
    w = external.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    w.external_data.add(key="location", value="weights.bin")
    (OUT / "external_missing.onnx").write_bytes(external.SerializeToString())
    w.external_data[0].value = "../../../../../../etc/passwd"
    (OUT / "external_outside.onnx").write_bytes(external.SerializeToString())

    (OUT / "truncated.onnx").write_bytes(good.SerializeToString()[:-20])
    (OUT / "text.onnx").write_text("this is no model\n")
    (OUT / "empty.onnx").write_bytes(b"")


if __name__ == "__main__":
    main()
