"""What the importer's judge asks of one operator: a schema, a type, and tries, models of one node with numbers and what must come out."""
import dataclasses
import zlib

import ml_dtypes
import numpy as np
from onnx import TensorProto as T, helper

SMALL_FLOATS = np.array([0, 0.5, 1, 1.5, 2, 3, -0.5, -1, -1.5, -2, -3])
WORDS = np.array(["", "a", "Ab", "abc", "b c", "été", "Zoë", "1.5"], dtype=object)


@dataclasses.dataclass
class Try:
    """inputs: arrays, None where one is absent. expected: arrays, or None: the reference evaluator says. like: (operator, attributes,
    inputs) of today that mean the same. nodes: instead of the one node. atol: beside that of the type."""
    label: str
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    expected: list = None
    like: tuple = None
    nodes: list = None
    lists: dict = None
    exact: bool = False
    atol: float = 0


def dtype_of(text):
    """Of "tensor(float16)"; None: no tensor, or of what is no number."""
    if not text.startswith("tensor("):
        return None
    name = text[7:-1].upper()
    if name.startswith("COMPLEX"):
        return None
    if name == "STRING":
        return np.dtype(object)
    return np.dtype(helper.tensor_dtype_to_np_dtype(T.DataType.Value(name)))


class Asked:
    """A schema asked with one type for the constraint of its first input."""

    def __init__(self, schema, dtype):
        self.schema, self.dtype = schema, dtype
        self.op, self.version = schema.name, schema.since_version
        self.rng = np.random.default_rng(zlib.crc32(f"{schema.domain}.{self.op}.{self.version}.{dtype}".encode()))
        self.kind = "b" if dtype == np.bool_ else dtype.kind if dtype.kind in "fiuO" else \
            ("i" if "int" in str(dtype) and str(dtype)[0] == "i" else "u" if "uint" in str(dtype) else "f")

    @property
    def is_wide(self):
        """A float that has infinities and more than a byte."""
        return self.kind == "f" and self.dtype.itemsize > 1

    def has(self, attribute):
        return attribute in self.schema.attributes

    def types(self, i):
        """What input i may be."""
        text = self.schema.inputs[i].type_str
        for c in self.schema.type_constraints:
            if c.type_param_str == text:
                return [d for d in map(dtype_of, sorted(c.allowed_type_strs)) if d is not None]
        return [dtype_of(text)]

    def x(self, *shape, low=-3.0, high=3.0, dtype=None):
        """Numbers of the type asked (or another)."""
        dtype = np.dtype(dtype or self.dtype)
        name = str(dtype)
        if dtype == object:
            return np.asarray(self.rng.choice(WORDS, shape), dtype=object)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if name.startswith(("int", "uint")):
            bits = int("".join(c for c in name if c.isdigit()))
            lo, hi = (0, 2 ** bits) if name[0] == "u" else (-2 ** (bits - 1), 2 ** (bits - 1))
            lo, hi = max(lo, int(np.ceil(low)), -9), min(hi, int(high) + 1, 10)
            return self.rng.integers(lo, hi, shape).astype(dtype)
        if dtype.itemsize == 1:
            return self.rng.choice(np.array([1, 2, 4, 0.5]) if "e8m0" in name else SMALL_FLOATS, shape).astype(dtype)
        return self.rng.uniform(low, high, shape).astype(dtype)

    def f(self, *shape, low=-3.0, high=3.0):
        return self.x(*shape, low=low, high=high, dtype=np.float32)

    def like_scalar(self, value):
        return np.asarray(value).astype(self.dtype)


OPS = {}


def recipe(names):
    def add(function):
        for name in names.split():
            OPS[name] = function
        return function
    return add


def i64(*values):
    return np.array(values, np.int64)


__all__ = ["Asked", "OPS", "Try", "dtype_of", "i64", "recipe", "ml_dtypes", "np"]
