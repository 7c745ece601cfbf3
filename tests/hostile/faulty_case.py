"""A model of one node, and changes to it."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NODE = "the_node"
TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "j": TensorProto.INT32, "b": TensorProto.BOOL, "u": TensorProto.UINT8,
         "c": TensorProto.INT8, "h": TensorProto.FLOAT16, "d": TensorProto.DOUBLE, "s": TensorProto.STRING, "k": TensorProto.UINT32}


class A:
    """Other attributes; None: without it."""

    def __init__(self, **attributes):
        self.attributes = attributes

    def apply(self, case):
        for name, value in self.attributes.items():
            case.attributes.pop(name, None)
            if value is not None:
                case.attributes[name] = value
        return "_".join(self.attributes)


class I:
    """Another input: a type and shape, or a constant's values."""

    def __init__(self, index, text):
        self.index, self.text = index, text

    def apply(self, case):
        case.inputs[self.index] = self.text
        return f"input{self.index}_{self.text.replace(',', 'x')[:24]}"


class Case:
    def __init__(self, op, inputs, attributes, outputs=1, opset=17, domain=""):
        self.op, self.inputs, self.attributes = op, inputs.split(), dict(attributes)
        self.outputs, self.opset, self.domain = outputs, opset, domain

    def model(self, change=None):
        names, inputs, weights = [], [], []
        for i, text in enumerate(self.inputs):
            if text == "-":
                names.append("")
                continue
            names.append(f"in{i}")
            if text[0] == "=":
                weights.append(constant(text[1:], names[-1]))
            else:
                inputs.append(helper.make_tensor_value_info(names[-1], TYPES[text[0]], [int(d) for d in text[1:].split(",") if d]))
        node = helper.make_node(self.op, names, [f"out{i}" for i in range(self.outputs)], NODE, domain=self.domain, **self.attributes)
        if change:
            change(node)
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        for output in outputs:  # of any type: what the operator gives
            output.type.tensor_type.elem_type = 0
            output.type.ClearField("value")
        graph = helper.make_graph([node], "faulty", inputs, outputs[:1], weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return made.SerializeToString()


def constant(text, name):
    """'i1,2' a list, 'i:3' a number of rank 0, 'f2x2:1' a shape filled with one number."""
    kind, rest = helper.tensor_dtype_to_np_dtype(TYPES[text[0]]), text[1:]
    if ":" in rest:
        shape, value = rest.split(":")
        values = np.full([int(d) for d in shape.split("x") if d], float(value)).astype(kind)
    else:
        values = np.array([float(v) for v in rest.split(",") if v]).astype(kind)
    return numpy_helper.from_array(values, name)
