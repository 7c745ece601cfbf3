"""What a case of make_cases.py is made of: a function that builds a small model, and says what must come out."""
import numpy as np
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

node, info = helper.make_node, helper.make_tensor_value_info
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def rng():
    return np.random.default_rng(7)


def normal(*shape, dtype=np.float32):
    return rng().standard_normal(shape).astype(dtype)


def model(nodes, inputs, outputs, weights=None, opset=17, domains=(), shapes=None):
    """inputs: name -> array; shapes: name -> dimensions where names stand for symbols; outputs: names."""
    of = helper.np_dtype_to_tensor_dtype
    shapes = shapes or {}
    ins = [info(n, of(v.dtype), shapes.get(n, v.shape)) for n, v in inputs.items()]
    outs = [info(n, T.UNDEFINED, None) if isinstance(n, str) else info(n[0], n[1], None) for n in outputs]
    consts = [numpy_helper.from_array(np.asarray(v), n) for n, v in (weights or {}).items()]
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    return helper.make_model(helper.make_graph(nodes, "case", ins, outs, consts), opset_imports=opsets, ir_version=10)


def run(nodes, inputs, outputs, expected=None, rtol=1e-4, atol=1e-6, **options):
    """A case; what is expected comes from the reference evaluator where the case does not say."""
    typed = list(outputs)
    if expected is None:
        names = [o if isinstance(o, str) else o[0] for o in outputs]
        expected = ReferenceEvaluator(model(nodes, inputs, [(n, T.FLOAT) for n in names], **options)).run(names, inputs)
    expected = [np.asarray(e) for e in expected]
    typed = [(n if isinstance(n, str) else n[0], helper.np_dtype_to_tensor_dtype(e.dtype)) for n, e in zip(typed, expected)]
    return model(nodes, inputs, typed, **options), inputs, dict(zip([n for n, _ in typed], expected)), rtol, atol
