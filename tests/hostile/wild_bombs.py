"""Bombs that a stranger might plant, for bombs.py: a table of functions that take the folder of the file and give its bytes, or
None where they made the file themselves."""
import io
import os
import socket
import struct
import zipfile

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, TypeProto, helper

from more_bombs import BOOL, FLOAT, INT64, STRING, array, info, ints, loop, model, node
from odd_bombs import ML, external, sized, text

ANY = helper.make_empty_tensor_value_info
SOME = np.ones(4, np.float32)


def neg(change=None, **more):
    return model([node("Neg", ["x"], ["y"])], change=change, **more)


def value(name, dims):
    """An input whose dimensions are numbers or names, whatever these are."""
    return info(name, FLOAT, list(dims))


# ---- graphs in graphs ----

def while_tower(depth):
    """Loops that nobody can unroll, each around the next."""
    def body(d):
        inner = node("Neg", [f"s{d}"], [f"t{d}"]) if d == depth else node("Loop", ["n", "b", f"s{d}"], [f"t{d}"], body=body(d + 1))
        return helper.make_graph([node("Identity", [f"c{d}"], [f"co{d}"]), inner], f"b{d}",
                                 [info(f"i{d}", INT64, []), info(f"c{d}", BOOL, []), info(f"s{d}", FLOAT, [4])],
                                 [info(f"co{d}", BOOL, []), info(f"t{d}", FLOAT, [4])])
    return model([node("Loop", ["n", "b", "x"], ["y"], body=body(1))], [info("x", FLOAT, [4]), info("n", INT64, []), info("b", BOOL, [])])


def scan_wide(n, scans=None):
    nodes = [node("Identity", [f"s{i}"], [f"t{i}"]) for i in range(n)]
    body = helper.make_graph(nodes, "body", [info(f"s{i}", FLOAT, []) for i in range(n)], [info(f"t{i}", FLOAT, []) for i in range(n)])
    return model([node("Scan", ["x"] * n, ["y", *(f"y{i}" for i in range(1, n))], body=body, num_scan_inputs=scans or n)])


def captures(n):
    """A branch that reads a great many values from outside."""
    def branch(name):
        return helper.make_graph([node("Sum", [f"v{i}" for i in range(n)], [name])], name, [], [info(name, FLOAT, [4])])
    return model([*(node("Neg", ["x"], [f"v{i}"]) for i in range(n)), node("If", ["b"], ["y"], then_branch=branch("p"), else_branch=branch("q"))],
                 [info("x", FLOAT, [4]), info("b", BOOL, [])])


def heavy_calls(ncalls, nelems):
    """One function with a large constant, called many times."""
    constant = node("Constant", [], ["c"], value=helper.make_tensor("v", FLOAT, [nelems], np.zeros(nelems, np.float32).tobytes(), raw=True))
    function = helper.make_function("d", "F", ["a"], ["r"], [constant, node("Add", ["a", "c"], ["r"])], [helper.make_opsetid("", 17)])
    return model([node("F", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < ncalls - 1 else "y"], domain="d") for i in range(ncalls)],
                 [info("x", FLOAT, [nelems])], functions=[function])


def attributed_calls(n):
    """A function of many attributes, all of them given by its caller and none read."""
    function = helper.make_function("d", "F", ["a"], ["r"], [node("Neg", ["a"], ["r"])], [helper.make_opsetid("", 17)], [f"a{i}" for i in range(n)])
    return model([node("F", ["x"], ["y"], domain="d", **{f"a{i}": float(i) for i in range(n)})], functions=[function])


def graph_attributes(n):
    """A call that hands a graph down through functions, each of which gives it twice."""
    functions = []
    for f in range(n):
        inner = [node("If", ["b"], ["r"], else_branch=None, then_branch=None)] if f == n - 1 else [
            node(f"F{f + 1}", ["a", "b"], ["m"], domain="d"), node(f"F{f + 1}", ["m", "b"], ["r"], domain="d")]
        for each in inner:
            for name in ("then_branch", "else_branch"):
                each.attribute.append(AttributeProto(name=name, ref_attr_name=name, type=AttributeProto.GRAPH))
        functions.append(helper.make_function("d", f"F{f}", ["a", "b"], ["r"], inner,
                                              [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)], ["then_branch", "else_branch"]))
    leaf = helper.make_graph([node("Constant", [], ["z"], value_floats=[1.0] * 4)], "leaf", [], [info("z", FLOAT, [4])])
    return model([node("F0", ["x", "b"], ["y"], domain="d", then_branch=leaf, else_branch=leaf)],
                 [info("x", FLOAT, [4]), info("b", BOOL, [])], functions=functions)


def unused_functions(n):
    return neg(functions=[helper.make_function("d", f"F{i}", ["a"], ["r"], [node("Neg", ["a"], ["r"])], [helper.make_opsetid("", 17)])
                          for i in range(n)])


# ---- types and shapes ----

def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def nested_type(depth, kind):
    made = TypeProto()
    made.tensor_type.elem_type = FLOAT
    for _ in range(depth):
        outer = TypeProto()
        if kind == "map":
            outer.map_type.key_type = INT64
            outer.map_type.value_type.CopyFrom(made)
        else:
            getattr(outer, f"{kind}_type").elem_type.CopyFrom(made)
        made = outer
    return model([node("Identity", ["x"], ["y"])], [onnx.ValueInfoProto(name="x", type=made)], [onnx.ValueInfoProto(name="y", type=made)])


def deep_type(depth):
    """The same in bytes: deeper than protobuf's own writers go."""
    made = b"\x0a\x02\x08\x01"
    for _ in range(depth):
        for tag in (b"\x0a", b"\x22"):  # elem_type of a sequence, sequence_type of a type
            made = tag + varint(len(made)) + made
    name = b"\x0a\x01x\x12" + varint(len(made)) + made
    graph = b"\x5a" + varint(len(name)) + name
    return b"\x08\x09\x3a" + varint(len(graph)) + graph + b"\x42\x02\x10\x11"


def long_sum(n, products):
    """A size of n terms, multiplied with itself: it would have n to the products terms."""
    nodes = [node("Concat", [f"x{i}" for i in range(n)], ["v0"], axis=0)]
    for k in range(products):
        nodes += [node("Unsqueeze", [f"v{k}", "one"], [f"c{k}"]), node("Mul", [f"c{k}", "v0"], [f"m{k}"]),
                  node("Reshape", [f"m{k}", "flat"], [f"v{k + 1}" if k < products - 1 else "y"])]
    return model(nodes, [value(f"x{i}", [f"n{i}"]) for i in range(n)], weights=[ints("one", [1]), ints("flat", [-1])])


def tiles(n):
    """A dimension times 2^40, n times."""
    return model([node("Tile", [f"v{i}" if i else "x", "r"], [f"v{i + 1}" if i < n - 1 else "y"]) for i in range(n)], [value("x", ["n"])],
                 weights=[ints("r", [2 ** 40])])


def symbols(names):
    return model([node("Sum", [f"x{i}" for i in range(len(names))], ["y"])], [value(f"x{i}", [name]) for i, name in enumerate(names)])


def reshaped(shape, dims):
    return model([node("Reshape", ["x", "s"], ["y"])], [value("x", dims)], weights=[ints("s", shape)])


# ---- expressions that double ----

def gathers(n):
    """An index that is read at an index, n times, each twice."""
    nodes = [m for i in range(n) for m in (node("Gather", ["w", f"v{i}" if i else "x"], [f"g{i}"]), node("Add", [f"g{i}", f"v{i}" if i else "x"], [f"v{i + 1}"]))]
    return model([*nodes, node("Cast", [f"v{n}"], ["y"], to=FLOAT)], [info("x", INT64, [4])], weights=[ints("w", [0, 1, 2, 3])])


def halves(n):
    """Each takes what was before apart and puts it together the other way round."""
    nodes = [m for i in range(n) for m in (node("Split", [f"v{i}" if i else "x"], [f"a{i}", f"b{i}"], axis=i % 2),
                                           node("Concat", [f"b{i}", f"a{i}", f"b{i}"], [f"v{i + 1}" if i < n - 1 else "y"], axis=i % 2))]
    return model(nodes, [info("x", FLOAT, [64, 64])])


def windows(n):
    """Pools whose windows overlap, each read twice."""
    nodes = [m for i in range(n) for m in (
        node("AveragePool", [f"v{i}" if i else "x"], [f"p{i}"], kernel_shape=[3, 3], pads=[1] * 4),
        node("Add", [f"p{i}", f"v{i}" if i else "x"], [f"v{i + 1}" if i < n - 1 else "y"]))]
    return model(nodes, [info("x", FLOAT, [1, 2, 8, 8])])


def wheres(n):
    nodes = [m for i in range(n) for m in (node("Greater", [f"v{i}" if i else "x", "k"], [f"c{i}"]), node("Neg", [f"v{i}" if i else "x"], [f"n{i}"]),
                                           node("Where", [f"c{i}", f"v{i}" if i else "x", f"n{i}"], [f"v{i + 1}" if i < n - 1 else "y"]))]
    return model(nodes, weights=[array(np.float32(0.5), "k")])


def repeated(op, n, inputs=1, shape=(8, 8), **attributes):
    return model([node(op, [f"v{i}" if i else "x"] * inputs, [f"v{i + 1}" if i < n - 1 else "y"], **attributes) for i in range(n)], [value("x", shape)])


# ---- constants that fold to much ----

def folded(op, *more, elems=2 ** 27, extra=(), outputs=("m",), fill=None, **attributes):
    """An operator over a constant of so many elements, made from one."""
    start = node("ConstantOfShape", ["s"], ["a"], **({"value": fill} if fill else {}))
    return model([start, node(op, ["a", *more], list(outputs), **attributes), node("Identity", ["m"], ["y"])], [], [ANY("y")],
                 [ints("s", [elems]), *extra], opset=18)


def sparse(dims, indices, count=None):
    tensor = onnx.SparseTensorProto(dims=dims)
    indices = np.array(indices, np.int64)
    tensor.values.CopyFrom(helper.make_tensor("w", FLOAT, [count or len(indices)], [1.0] * (count or len(indices))))
    tensor.indices.CopyFrom(helper.make_tensor("w_i", INT64, list(indices.shape), indices.reshape(-1).tolist()))
    return model([node("Neg", ["w"], ["y"])], [], change=lambda m: m.graph.sparse_initializer.append(tensor))


def scattered(indices):
    """Constant indices that lie anywhere."""
    return model([node("ScatterND", ["w", "i", "u"], ["s"]), node("GatherElements", ["w", "j"], ["g"]), node("Add", ["s", "g"], ["y"])], [], weights=[
        array(SOME, "w"), ints("i", [[i] for i in indices]), array(SOME[:len(indices)], "u"), ints("j", indices)])


# ---- data in other files ----

def shared_weights(out):
    """Ten thousand tensors of the same MiB of a file."""
    (out / "shared.bin").write_bytes(bytes(1 << 20))
    weights = []
    for i in range(10_000):
        tensor = TensorProto(name=f"w{i}", data_type=FLOAT, dims=[1 << 18], data_location=TensorProto.EXTERNAL)
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value="shared.bin"))
        weights.append(tensor)
    return model([node("Add", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}" if i < 9_999 else "y"]) for i in range(10_000)],
                 [info("x", FLOAT, [1 << 18])], weights=weights)


def holes(out):
    """A file of a TiB that takes no room on the disk, read as one tensor."""
    with open(out / "holes.bin", "wb") as file:
        file.truncate(1 << 40)
    return external("holes.bin", dims=(1 << 38,))


def model_of_holes(out):
    with open(out / "model_of_holes.onnx", "wb") as file:
        file.write(neg())
        file.truncate(1 << 36)


def listening(out):
    path = out / "socket.bin"
    path.unlink(missing_ok=True)
    here = os.open(".", os.O_RDONLY)
    os.chdir(out)  # a socket's path is short
    socket.socket(socket.AF_UNIX).bind("socket.bin")
    os.fchdir(here)
    os.close(here)
    return external("socket.bin")


def through_link(out):
    path = out / "away"
    path.unlink(missing_ok=True)
    path.symlink_to("/dev")
    return external("away/zero")


# ---- archives ----

def npz(name, data, method=zipfile.ZIP_STORED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr(name, data)
    return made.getvalue()


def npy(header, data=b""):
    header = header.encode() + b"\n"
    return b"\x93NUMPY\2\0" + struct.pack("<I", len(header)) + header + data


def npy_bytes(array_):
    made = io.BytesIO()
    np.save(made, array_)
    return made.getvalue()


def zip64(size, offset):
    """An entry whose sizes and place stand in the extension for large files, and are lies."""
    data = npy_bytes(SOME)
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 0x21, 0, 0xffffffff, 0xffffffff, 5, 20) + b"x.npy" + struct.pack("<2H2Q", 1, 16, size, size) + data
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 0, 0, 0x21, 0, 0xffffffff, 0xffffffff, 5, 28, 0, 0, 0, 0, 0xffffffff)
    entry += b"x.npy" + struct.pack("<2H3Q", 1, 24, size, size, offset)
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1 << 60, 1 << 60, len(entry), len(local))
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(local) + len(entry), 1)
    return local + entry + end64 + locator + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 65535, 65535, 0xffffffff, 0xffffffff, 0)


def changed(data, at, form, *values):
    data = bytearray(data)
    struct.pack_into(form, data, at, *values)
    return bytes(data)


def props(m, n):
    helper.set_model_props(m, {f"k{i}": "v" for i in range(n)})
    for each in range(n):
        m.graph.node[0].metadata_props.add(key=f"k{each}", value="v")


def trained(m):
    for _ in range(50_000):
        m.training_info.add().algorithm.node.add(op_type="Neg", input=["x"], output=["z"])


def annotated(m):
    for i in range(100_000):
        m.graph.quantization_annotation.add(tensor_name=f"t{i}").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x")


IMAGE = info("x", FLOAT, [1, 1, 4, 4])
ODD_NAMES = ["", "-1", "0", "2*n", "n + m - 7", "n n", "%s%n", "\x1b[2J", "a" * 1_000_000, "(" * 200_000, "1/0", "n" + "*n" * 5000, "9" * 400, "-" * 50_000 + "n", "\u202e"]
WILD = {
    "while_tower_25": lambda out: while_tower(25), "while_tower_8": lambda out: while_tower(8), "scan_wide": lambda out: scan_wide(2000),
    "scan_count": lambda out: scan_wide(2, 2 ** 62), "captures": lambda out: captures(5000),
    "heavy_calls": lambda out: heavy_calls(2000, 10 ** 6), "attributed_calls": lambda out: attributed_calls(100_000),
    "graph_attributes_20": lambda out: graph_attributes(20), "graph_attributes_4": lambda out: graph_attributes(4),
    "unused_functions": lambda out: unused_functions(100_000),
    "unrolled": lambda out: loop(10 ** 6, [node("Pad", ["s", "p"], ["q"]), node("Constant", [], ["p"], value_ints=[0, 1])][::-1] +
                                 [node("Identity", ["q"], ["t"])], state=1),
    **{f"{kind}s_{depth}": lambda out, kind=kind, depth=depth: nested_type(depth, kind)
       for kind, depth in (("sequence", 40), ("optional", 20), ("map", 30))},
    "type_5000": lambda out: deep_type(5000),
    "long_sum": lambda out: long_sum(150, 3), "tiles": lambda out: tiles(200), "symbols_odd": lambda out: symbols(ODD_NAMES),
    **{f"symbol_{i}": lambda out, name=name: symbols([name]) for i, name in enumerate(ODD_NAMES)},
    "reshape_wraps": lambda out: reshaped([2 ** 32, 2 ** 32, -1], ["n", "m"]), "reshape_long": lambda out: reshaped([1] * 100_000 + [-1], ["n"]),
    "gathers": lambda out: gathers(150), "halves": lambda out: halves(16), "halves_40": lambda out: halves(40), "windows": lambda out: windows(60),
    "wheres": lambda out: wheres(500), "softmaxes": lambda out: repeated("Softmax", 1000), "grams": lambda out: repeated("MatMul", 400, 2),
    "roots": lambda out: repeated("Erf", 3000, shape=["n"]),
    "unique_large": lambda out: folded("Unique", outputs=("m", "i", "j", "k")), "nonzero_large": lambda out: folded(
        "NonZero", fill=helper.make_tensor("v", FLOAT, [1], [1.0])), "sorted_large": lambda out: folded(
        "TopK", "k", extra=[ints("k", [2 ** 24])], elems=2 ** 24, outputs=("m", "i")), "expanded": lambda out: folded(
        "Expand", "e", elems=1, extra=[ints("e", [2 ** 15, 2 ** 15])]), "reduced": lambda out: folded("ReduceLogSumExp", elems=2 ** 29),
    "tiled_dims": lambda out: folded("Tile", "r", elems=1, extra=[ints("r", [1] * 100_000)]),
    "trilu": lambda out: sized("Trilu", [ints("k", -2 ** 63)], [info("x", FLOAT, [2 ** 20, 2 ** 20])]),
    "outer": lambda out: model([node("ConstantOfShape", ["s"], ["a"]), node("Einsum", ["a"] * 4, ["y"], equation="a,b,c,d->abcd")], [],
                               weights=[ints("s", [1000])]),
    "sparse_beyond": lambda out: sparse([4, 4], [2 ** 40, -1]), "sparse_pairs": lambda out: sparse([2 ** 31, 2], [[2 ** 31, 0], [0, -2 ** 63]]),
    "sparse_many": lambda out: sparse([2 ** 20], np.arange(2 ** 20)[::-1]), "sparse_counts": lambda out: sparse([2 ** 20], [0, 1], 10 ** 6),
    "scattered": lambda out: scattered([2 ** 62, -2 ** 63]),
    "pad_reflects": lambda out: sized("Pad", [ints("p", [0, 0, 2 ** 40, 0, 0, 0, 2 ** 40, 0])], [IMAGE], mode="reflect"),
    "pad_wraps": lambda out: sized("Pad", [ints("p", [0, 0, 2 ** 14, 0, 0, 0, 2 ** 14, 0])], [IMAGE], mode="wrap"),
    "resize_tiny": lambda out: sized("Resize", [array(SOME, "r"), array(np.array([1, 1, 1e-30, 1e-30], np.float32), "s")], [IMAGE], mode="cubic"),
    "resize_roi": lambda out: sized("Resize", [array(np.array([-1e38, 0, 0, 0, 1e38, 1, 1, 1], np.float32), "r"), array(np.array([1, 1, 1e4, 1e4], np.float32), "s")],
                                    [IMAGE], coordinate_transformation_mode="tf_crop_and_resize"),
    "grid": lambda out: sized("GridSample", [], [IMAGE, info("g", FLOAT, [1, 2 ** 31, 2 ** 31, 2])]),
    "crop": lambda out: sized("CenterCropPad", [ints("s", [1, 1, 2 ** 62, 2])], [IMAGE]),
    "lrn": lambda out: sized("LRN", [], [IMAGE], size=2 ** 62 + 1), "groups": lambda out: sized(
        "GroupNormalization", [array(np.ones(1, np.float32), "s"), array(np.ones(1, np.float32), "b")], [IMAGE], num_groups=2 ** 62, opset=21),
    "conv_transpose": lambda out: sized("ConvTranspose", [array(np.ones((1, 1, 3, 3), np.float32), "w")], [IMAGE], strides=[2 ** 40] * 2, output_padding=[2 ** 39] * 2),
    "tfidf": lambda out: sized("TfIdfVectorizer", [], [info("x", INT64, [4])], mode="TF", min_gram_length=1, max_gram_length=2 ** 62, max_skip_count=2 ** 62,
                               ngram_counts=[0], ngram_indexes=[2 ** 62], pool_int64s=[1]),
    "one_hot_encoder": lambda out: sized("OneHotEncoder", [], [info("x", INT64, [2 ** 30])], domain=ML, cats_int64s=list(range(10 ** 6))),
    "svm": lambda out: sized("SVMRegressor", [], [value("x", [1, 4])], domain=ML, coefficients=[1.0] * 10 ** 6, support_vectors=[1.0] * 10, n_supports=2 ** 62,
                             kernel_params=[1.0, 0.0, 3.0]),
    "name_100mb": lambda out: model([node("Neg", ["x"], ["y"], "n" * 10 ** 8)]),
    "output_100mb": lambda out: model([node("Neg", ["x"], ["y" * 10 ** 8])], outputs=[info("y" * 10 ** 8, FLOAT, None)]),
    "kind_100mb": lambda out: model([node("N" * 10 ** 8, ["x"], ["y"])]),
    "props_100000": lambda out: neg(lambda m: props(m, 100_000)), "training": lambda out: neg(trained), "annotations": lambda out: neg(annotated),
    "attribute_dims": lambda out: model([node("Constant", [], ["y"], value=TensorProto(name="v", data_type=FLOAT, dims=[1] * 100_000, raw_data=bytes(4)))], []),
    "attribute_product": lambda out: model([node("Constant", [], ["y"], value=TensorProto(name="v", data_type=FLOAT, dims=[2 ** 31] * 4, raw_data=bytes(4)))], []),
    "attribute_large": lambda out: model([node("Constant", [], ["c"], value=helper.make_tensor("v", FLOAT, [10 ** 8 // 4], bytes(10 ** 8), raw=True)),
                                          node("Neg", ["c"], ["y"])], []),
    "strings_few": lambda out: neg(lambda m: m.graph.initializer.append(TensorProto(name="s", data_type=STRING, dims=[2 ** 40], string_data=[b"a"] * 3))),
    "shared_weights": shared_weights, "holes": holes, "model_of_holes": model_of_holes, "socket": listening, "through_link": through_link,
    "offset_beyond": lambda out: ((out / "four.bin").write_bytes(bytes(16)), external("four.bin", 16, (4,), 2 ** 40))[1],
    "offset_digits": lambda out: external("four.bin", "9" * 10 ** 6, (4,), "-" + "1" * 10 ** 6), "location_long": lambda out: external("a/" * 5 * 10 ** 6),
    "zip64.npz": lambda out: zip64(2 ** 62, 0), "zip64_place.npz": lambda out: zip64(144, 2 ** 63 - 1), "zip64_wraps.npz": lambda out: zip64(2 ** 64 - 1, 2 ** 64 - 16),
    "objects.npz": lambda out: npz("x.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", b"cos\nsystem\n(S'true'\ntR.")),
    "dims.npz": lambda out: npz("x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1, " * 100_000 + "), }", bytes(4))),
    "header_nested.npz": lambda out: npz("x.npy", npy("{'descr': " + "[" * 200_000 + "]" * 200_000 + ", 'fortran_order': False, 'shape': (4,), }")),
    "method.npz": lambda out: npz("x.npy", npy_bytes(np.zeros(10 ** 7, np.float32)), zipfile.ZIP_LZMA),
    "named.npz": lambda out: npz("../" * 20_000 + "x.npy", npy_bytes(SOME)), "nested.npz": lambda out: npz("x.npy", npz("x.npy", npy_bytes(SOME))),
    "place.npz": lambda out: (lambda data: changed(data, data.rindex(b"PK\1\2") + 42, "<I", 0xfffffff0))(npz("x.npy", npy_bytes(SOME))),
    "lines.dlc": lambda out: text("graph @g(%v0: f32[4]) -> %v200000 {\n" + "".join(f"  %v{i + 1}: f32[4] = neg %v{i}\n" for i in range(200_000)) + "}\n"),
    "list.dlc": lambda out: text("graph @g(%x: f32[4]) -> %y {\n  %y: f32[4] = transpose %x {perm=[" + "0," * 10 ** 6 + "0]}\n}\n"),
    "digits.dlc": lambda out: text(f"graph @g(%x: f32[{'9' * 10 ** 6}]) -> %y {{\n  %y: f32[4] = neg %x\n}}\n"),
}
