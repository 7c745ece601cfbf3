"""What can be wrong with graphs and tensors: (name, whether it is right, the file's bytes, what must be said)."""
import onnx
from onnx import AttributeProto, StringStringEntryProto, TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info, node = helper.make_tensor_value_info, helper.make_node
X, Y = info("x", FLOAT, [2, 3]), info("y", FLOAT, [2, 3])


def make(nodes, inputs=(X,), outputs=(Y,), weights=(), opset=17, change=None, functions=()):
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("d", 1)] if functions else [])
    model = helper.make_model(helper.make_graph(nodes, "g", list(inputs), list(outputs), list(weights)), opset_imports=opsets,
                              functions=list(functions), ir_version=9)
    if change:
        change(model)
    return model.SerializeToString()


def add(weight):
    """y = x + w."""
    return make([node("Add", ["x", "w"], ["y"], "the_node")], weights=[weight])


def raw(dims, size, dtype=FLOAT, **more):
    tensor = TensorProto(name="w", data_type=dtype, dims=dims, **more)
    tensor.raw_data = b"\0" * size
    return tensor


def floats(dims, n, **more):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims, **more)
    tensor.float_data.extend([1.0] * n)
    return tensor


def external(**entries):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.append(StringStringEntryProto(key=key, value=str(value)))
    return tensor


def sparse(values, indices, dims, index_dims):
    made = onnx.SparseTensorProto(dims=dims)
    made.values.CopyFrom(helper.make_tensor("w", FLOAT, [len(values)], values))
    made.indices.CopyFrom(helper.make_tensor("w_i", INT64, index_dims, indices))
    return make([node("Add", ["x", "w"], ["y"], "the_node")], change=lambda m: m.graph.sparse_initializer.append(made))


def branch(op, name, dtype=FLOAT, n=1, reads="x", shape=(2, 3)):
    return helper.make_graph([node(op, [reads], [f"{name}{i}"], f"{name}_node{i}") for i in range(n)], name, [],
                             [info(f"{name}{i}", dtype, shape) for i in range(n)])


def choose(condition=("c", BOOL, []), then=None, other=None, outputs=1):
    return make([node("If", ["c"], ["y", "z"][:outputs], "the_node", then_branch=then or branch("Neg", "t"), else_branch=other or branch("Abs", "e"))],
                inputs=[X, info(*condition)])


def loop(body_inputs=None, body_outputs=None, trips=("n", INT64, []), start="x"):
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), node("Neg", ["s"], ["t"])], "body",
                             body_inputs or [info("i", INT64, []), info("ci", BOOL, []), info("s", FLOAT, [2, 3])],
                             body_outputs or [info("co", BOOL, []), info("t", FLOAT, [2, 3])])
    return make([node("Loop", ["n", "c", start], ["y"], "the_node", body=body)], inputs=[X, info("c", BOOL, []), info(*trips)])


def scan(n=1, length=2, more=()):
    body = helper.make_graph([node("Neg", ["s"], ["t"])], "body", [info("s", FLOAT, [3]), *more], [info("t", FLOAT, [3])])
    return make([node("Scan", ["x"], ["y"], "the_node", body=body, num_scan_inputs=n)])


def function(nodes, inputs=("a",), outputs=("b",), calls=("x",), attributes=(), call=None):
    made = helper.make_function("d", "F", list(inputs), list(outputs), nodes, [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)],
                                list(attributes))
    return make([node("F", list(calls), ["y"], "the_node", domain="d", **(call or {}))], functions=[made])


def with_reference(name="alpha", call=None, attributes=("alpha",)):
    elu = node("Elu", ["a"], ["b"], "the_node")
    elu.attribute.append(AttributeProto(name="alpha", ref_attr_name=name, type=AttributeProto.FLOAT))
    return function([elu], attributes=attributes, call=call)


def neg(n=1, **more):
    return [node("Neg", ["x"], ["y"], "the_node")]


def GRAPHS(folder):
    (folder / "w.bin").write_bytes(b"\0" * 24)
    (folder / "link.bin").unlink(missing_ok=True)
    (folder / "link.bin").symlink_to("/etc/passwd")
    two = [node("Neg", ["x"], ["a"], "first"), node("Abs", ["a"], ["y"], "the_node")]
    rows = [
        ("raw", 1, add(raw([2, 3], 24)), ""),
        ("raw_short", 0, add(raw([2, 3], 23)), "w"), ("raw_long", 0, add(raw([2, 3], 25)), "w"), ("raw_none", 0, add(raw([2, 3], 0)), "w"),
        ("raw_negative", 0, add(raw([-2, 3], 24)), "w"), ("raw_huge", 0, add(raw([2 ** 62, 8], 24)), "w"),
        ("raw_wraps", 0, add(raw([2 ** 32, 2 ** 32], 0)), "w"), ("raw_type", 0, add(raw([2, 3], 24, 99)), "w"),
        ("raw_no_type", 0, add(raw([2, 3], 24, 0)), "w"), ("raw_other_type", 0, add(raw([2, 3], 48, TensorProto.DOUBLE)), "the_node"),
        ("raw_bool", 0, add(raw([2, 3], 6, BOOL)), "the_node"), ("raw_string", 0, add(raw([2, 3], 24, TensorProto.STRING)), "w"),
        ("raw_complex", 0, add(raw([2, 3], 48, TensorProto.COMPLEX64)), "w"),
        ("floats", 1, add(floats([2, 3], 6)), ""),
        ("floats_few", 0, add(floats([2, 3], 5)), "w"), ("floats_many", 0, add(floats([2, 3], 7)), "w"), ("floats_none", 0, add(floats([2, 3], 0)), "w"),
        ("floats_and_raw", 0, add(floats([2, 3], 6, raw_data=b"\0" * 24)), "w"),
        ("floats_as_ints", 0, add(TensorProto(name="w", data_type=FLOAT, dims=[2, 3], int64_data=[1] * 6)), "w"),
        ("segment", 0, add(floats([2, 3], 6, segment=TensorProto.Segment(begin=0, end=3))), "w"),
        ("initializer_twice", 0, make([node("Add", ["x", "w"], ["y"], "the_node")], weights=[floats([2, 3], 6)] * 2), "w"),
        ("initializer_nameless", 0, make(neg(), weights=[helper.make_tensor("", FLOAT, [1], [1.0])]), "initializer"),
        ("initializer_is_output", 0, make([node("Neg", ["x"], ["w"], "the_node")], outputs=[info("w", FLOAT, [2, 3])], weights=[floats([2, 3], 6)]), "w"),
        ("initializer_shape", 0, make([node("Add", ["x", "w"], ["y"], "the_node")], inputs=[X, info("w", FLOAT, [3])], weights=[floats([2, 3], 6)]), "w"),
        ("initializer_type", 0, make([node("Add", ["x", "w"], ["y"], "the_node")], inputs=[X, info("w", INT64, [2, 3])], weights=[floats([2, 3], 6)]), "w"),
        ("external", 1, add(external(location="w.bin")), ""), ("external_part", 1, add(external(location="w.bin", offset=0, length=24)), ""),
        ("external_short", 0, add(external(location="w.bin", length=20)), "w"), ("external_long", 0, add(external(location="w.bin", length=28)), "w"),
        ("external_offset", 0, add(external(location="w.bin", offset=8)), "w"), ("external_far", 0, add(external(location="w.bin", offset=2 ** 40, length=24)), "w"),
        ("external_wraps", 0, add(external(location="w.bin", offset=2 ** 64 - 8, length=24)), "w"),
        ("external_negative", 0, add(external(location="w.bin", offset=-8, length=24)), "w"), ("external_word", 0, add(external(location="w.bin", offset="eight")), "w"),
        ("external_missing", 0, add(external(location="none.bin")), "w"), ("external_nowhere", 0, add(external(offset=0)), "w"),
        ("external_empty", 0, add(external(location="")), "w"), ("external_up", 0, add(external(location="../w.bin")), "w"),
        ("external_absolute", 0, add(external(location="/etc/passwd")), "w"), ("external_link", 0, add(external(location="link.bin")), "w"),
        ("external_folder", 0, add(external(location=".")), "w"), ("external_key", 1, add(external(location="w.bin", speed=3)), "w"),
        ("sparse", 1, sparse([1.0], [5], [2, 3], [1]), ""), ("sparse_pairs", 1, sparse([1.0], [1, 2], [2, 3], [1, 2]), ""),
        ("sparse_far", 0, sparse([1.0], [6], [2, 3], [1]), "w"), ("sparse_negative", 0, sparse([1.0], [-1], [2, 3], [1]), "w"),
        ("sparse_counts", 0, sparse([1.0, 2.0], [5], [2, 3], [1]), "w"), ("sparse_unsorted", 0, sparse([1.0, 2.0], [5, 4], [2, 3], [2]), "w"),
        ("sparse_twice", 0, sparse([1.0, 2.0], [4, 4], [2, 3], [2]), "w"), ("sparse_rank", 0, sparse([1.0], [1, 2, 0], [2, 3], [1, 3]), "w"),
        ("sparse_pair_far", 0, sparse([1.0], [1, 3], [2, 3], [1, 2]), "w"), ("sparse_dims", 0, sparse([1.0], [0], [-2, 3], [1]), "w"),
        ("chain", 1, make(two), ""),
        ("order", 0, make(two[::-1]), "a"), ("cycle", 0, make([node("Add", ["x", "b"], ["a"], "first"), node("Abs", ["a"], ["b"], "the_node"), *neg()]), "first"),
        ("own_input", 0, make([node("Add", ["x", "y"], ["y"], "the_node")]), "the_node"),
        ("name_twice", 0, make([*neg(), node("Abs", ["x"], ["y"], "second")]), "y"),
        ("output_is_input", 0, make([node("Neg", ["x"], ["x"], "the_node")], outputs=[X]), "x"),
        ("output_undefined", 0, make(neg(), outputs=[info("z", FLOAT, [2, 3])]), "z"), ("output_twice", 0, make(neg(), outputs=[Y, Y]), "y"),
        ("output_shape", 1, make(neg(), outputs=[info("y", FLOAT, [2, 4])]), "y"), ("output_rank", 1, make(neg(), outputs=[info("y", FLOAT, [2])]), "y"),
        ("output_type", 0, make(neg(), outputs=[info("y", INT64, [2, 3])]), "y"), ("input_twice", 0, make(neg(), inputs=[X, X]), "x"),
        ("input_no_type", 0, make(neg(), inputs=[onnx.ValueInfoProto(name="x")]), "x"), ("input_negative", 1, make(neg(), inputs=[info("x", FLOAT, [-2, 3])]), "x"),
        ("input_type", 0, make(neg(), inputs=[info("x", 99, [2, 3])]), "x"), ("input_huge", 0, make(neg(), inputs=[info("x", FLOAT, [2 ** 62, 8])]), "x"),
        ("input_nameless", 0, make(neg(), inputs=[X, info("", FLOAT, [1])]), "input"),
        ("no_outputs", 0, make(neg(), outputs=[]), "output"), ("no_graph", 0, make(neg(), change=lambda m: m.ClearField("graph")), "graph"),
        ("no_opset", 0, make(neg(), change=lambda m: m.ClearField("opset_import")), "opset"),
        ("opset_twice", 1, make(neg(), change=lambda m: m.opset_import.append(helper.make_opsetid("", 11))), "opset"),
        ("opset_zero", 0, make(neg(), opset=0), "opset"), ("opset_far", 0, make(neg(), opset=2 ** 40), "opset"), ("opset_negative", 0, make(neg(), opset=-1), "opset"),
        ("no_op_type", 0, make(neg(), change=lambda m: m.graph.node[0].ClearField("op_type")), "the_node"),
        ("inner_type", 0, make([node("Neg", ["x"], ["a"], "first"), node("Abs", ["a"], ["y"], "the_node")],
                               change=lambda m: m.graph.value_info.append(info("a", INT64, [2, 3]))), "a"),
        ("inner_shape", 1, make([node("Neg", ["x"], ["a"], "first"), node("Abs", ["a"], ["y"], "the_node")],
                                change=lambda m: m.graph.value_info.append(info("a", FLOAT, [2, 4]))), "a"),
        ("if", 1, choose(), ""),
        ("if_float", 0, choose(("c", FLOAT, [])), "the_node"), ("if_vector", 0, choose(("c", BOOL, [2])), "the_node"),
        ("if_types", 0, choose(other=helper.make_graph([node("Cast", ["x"], ["e0"], to=INT64)], "e", [], [info("e0", INT64, [2, 3])])), "the_node"),
        ("if_counts", 0, choose(other=branch("Abs", "e", n=2)), "the_node"), ("if_outputs", 0, choose(outputs=2), "the_node"),
        ("if_undefined", 0, choose(other=branch("Abs", "e", reads="nobody")), "nobody"), ("if_inner", 0, choose(other=branch("Absent", "e")), "e_node0"),
        ("if_inputs", 0, choose(other=helper.make_graph([node("Abs", ["q"], ["e0"])], "e", [info("q", FLOAT, [2, 3])], [info("e0", FLOAT, [2, 3])])), "the_node"),
        ("if_empty", 0, choose(other=helper.make_graph([], "e", [], [])), "the_node"),
        ("loop", 1, loop(), ""),
        ("loop_trips", 0, loop(trips=("n", FLOAT, [])), "the_node"), ("loop_trips_shape", 0, loop(trips=("n", INT64, [2])), "the_node"),
        ("loop_few", 0, loop([info("i", INT64, []), info("ci", BOOL, [])]), "the_node"), ("loop_no_condition", 0, loop(None, [info("t", FLOAT, [2, 3])]), "the_node"),
        ("loop_state_type", 0, loop([info("i", INT64, []), info("ci", BOOL, []), info("s", INT64, [2, 3])]), "the_node"),
        ("loop_more", 0, loop([info("i", INT64, []), info("ci", BOOL, []), info("s", FLOAT, [2, 3]), info("q", FLOAT, [2, 3])]), "the_node"),
        ("loop_start", 0, loop(start="nobody"), "the_node"),
        ("scan", 1, scan(), ""),
        ("scan_none", 0, scan(0), "the_node"), ("scan_many", 0, scan(2), "the_node"), ("scan_body", 0, scan(more=[info("q", FLOAT, [3])]), "the_node"),
        ("function", 1, function([node("Neg", ["a"], ["b"], "the_node")]), ""), ("attribute", 1, with_reference(call={"alpha": 0.5}), ""),
        ("function_recursive", 0, function([node("F", ["a"], ["b"], "the_node", domain="d")]), "F"),
        ("function_inputs", 0, function([node("Neg", ["a"], ["b"], "the_node")], calls=("x", "x")), "the_node"),
        ("function_output", 0, function([node("Neg", ["a"], ["c"], "the_node")]), "F"), ("function_undefined", 0, function([node("Neg", ["q"], ["b"], "the_node")]), "the_node"),
        ("function_input_twice", 0, function([node("Neg", ["a"], ["b"], "the_node")], inputs=("a", "a"), calls=("x", "x")), "F"),
        ("function_attribute", 0, with_reference(call={"beta": 0.5}), "the_node"), ("function_attribute_type", 0, with_reference(call={"alpha": 1}), "the_node"),
        ("function_no_such", 0, make([node("G", ["x"], ["y"], "the_node", domain="d")]), "the_node"),
        ("function_twice", 0, make([node("F", ["x"], ["y"], "the_node", domain="d")], functions=[helper.make_function(
            "d", "F", ["a"], ["b"], [node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)])] * 2), "F"),
    ]
    return rows
