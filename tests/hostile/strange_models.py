#!/usr/bin/env python3
"""strange_models.py DLC FOLDER [NAME...]: models that are right though nobody would write them; each is compiled and run, and gives what numpy
says; DLC_LONG: by the oracle, too. Prints those that are refused or give something else, and exits 1."""
import os
import pathlib
import subprocess
import sys

import numpy as np
from onnx import AttributeProto, StringStringEntryProto, TensorProto, helper, numpy_helper

FLOAT, INT64, INT32, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING
DLC, OUT = sys.argv[1], pathlib.Path(sys.argv[2])
info, node = helper.make_tensor_value_info, helper.make_node
A = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
X = info("x", FLOAT, [2, 3])


def array(values, name):
    return numpy_helper.from_array(np.asarray(values), name)


def anything(name):
    return helper.make_empty_tensor_value_info(name)


def model(nodes, outputs=("y",), inputs=(X,), weights=(), opset=20, functions=(), domains=(), change=None):
    graph = helper.make_graph(nodes, "", list(inputs), [anything(o) for o in outputs], list(weights))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, n) for d, n in [("", opset), *domains]], functions=list(functions), ir_version=10)
    if change:
        change(made)
    return made


def branch(nodes, *gives):
    return helper.make_graph(nodes, "b", [], [anything(g) for g in gives])


def step(nodes, states, gives):
    """A Loop's body: what goes in behind number and condition, what comes out behind the condition."""
    return helper.make_graph(nodes, "s", [info("i", INT64, []), info("c", BOOL, []), *(anything(s) for s in states)], [info("c", BOOL, []), *(anything(g) for g in gives)])


def function(name, nodes, inputs=("a",), outputs=("b",), attributes=(), **more):
    return helper.make_function("d", name, list(inputs), list(outputs), nodes, [helper.make_opsetid("", 20), helper.make_opsetid("d", 1)], list(attributes), **more)


def called(*functions, gives=("y",), **attributes):
    return model([node("F", ["x"], list(gives), domain="d", **attributes)], [g for g in gives if g], functions=functions, domains=[("d", 1)])


def elu(reference):
    made = node("Elu", ["a"], ["b"])
    made.attribute.append(AttributeProto(name="alpha", ref_attr_name=reference, type=AttributeProto.FLOAT))
    return made


def chosen(yes, then, other):
    return model([node("If", ["k"], ["y"], then_branch=then, else_branch=other)], weights=[array(np.array(yes), "k")])


N, YES = array(np.int64(3), "n"), array(np.array(True), "yes")
ELU = np.where(A > 0, A, np.exp(A) - 1)
neg = node("Neg", ["x"], ["y"])


def structure():
    deep = [node("Neg", ["x"], ["q"])]
    for depth in range(6):
        deep = [node("If", ["k"], [f"q{depth}" if depth < 5 else "y"], then_branch=branch(deep, deep[-1].output[0]), else_branch=branch([node("Abs", ["x"], [f"e{depth}"])], f"e{depth}"))]
    accumulate = step([node("Add", ["s", "x"], ["t"])], ["s"], ["t", "t"])
    return {
        "output_is_input": (model([neg], ["x", "y"]), [A, -A]), "output_is_weight": (model([neg], ["w", "y"], weights=[array(A, "w")]), [A, -A]),
        "no_nodes": (model([], ["x"]), [A]), "no_inputs": (model([node("Neg", ["w"], ["y"])], inputs=[], weights=[array(A, "w")]), [-A], {}),
        "unused": (model([neg, node("Exp", ["x"], ["z"])], inputs=[X, info("nobody", INT64, [0, 5])]), [-A], {"x": A, "nobody": np.zeros((0, 5), np.int64)}),
        "one_name": (model([node("Neg", ["x"], ["a"], "n"), node("Abs", ["a"], ["y"], "n")]), [abs(A)]),
        "nameless_outputs": (model([node("TopK", ["x", "k"], ["", "y"])], weights=[array(np.array([1]), "k")]), [np.array([[2], [2]])]),
        "left_out": (model([node("Clip", ["x", "", "m"], ["y", ]), ], weights=[array(np.float32(1), "m")]), [np.minimum(A, 1)]),
        "left_out_last": (model([node("Clip", ["x", "", ""], ["y"])]), [A]), "domain_spelt": (model([node("Neg", ["x"], ["y"], domain="ai.onnx")]), [-A]),
        "domain_unused": (model([neg], domains=[("nobody.knows", 7)]), [-A]), "odd_names": (model([node("Neg", ["x"], ["a b/c:\n%"]), node("Abs", ["a b/c:\n%"], ["y"])]), [abs(A)]),
        "deep": (model(deep, weights=[array(np.array(True), "k")]), [-A]), "branch_captures_weight": (model(
            [node("If", ["k"], ["y"], then_branch=branch([node("Add", ["x", "w"], ["t"])], "t"), else_branch=branch([node("Identity", ["w"], ["e"])], "e"))],
            inputs=[X, info("k", BOOL, [])], weights=[array(A * 10, "w")]), [A * 11], {"x": A, "k": np.array(True)}),
        "branch_passes": (model([node("If", ["k"], ["y"], then_branch=branch([], "x"), else_branch=branch([node("Neg", ["x"], ["e"])], "e"))], inputs=[X, info("k", BOOL, [])]), [A],
                          {"x": A, "k": np.array(True)}),
        "branches_differ": (chosen(False, branch([node("Flatten", ["x"], ["t"], axis=0)], "t"), branch([node("Neg", ["x"], ["e"])], "e")), [-A]),
        "result_twice": (model([node("Loop", ["n", "", "x"], ["y", "all"], body=accumulate)], ["y", "all"], weights=[N]), [A * 4, np.stack([A * 2, A * 3, A * 4])]),
        "no_turns": (model([node("Loop", ["n", "yes", "x"], ["y"], body=step([node("Add", ["s", "x"], ["t"])], ["s"], ["t"]))], weights=[array(np.int64(0), "n"), YES]), [A]),
        "negative_turns": (model([node("Loop", ["n", "", "x"], ["y"], body=step([node("Add", ["s", "x"], ["t"])], ["s"], ["t"]))], weights=[array(np.int64(-4), "n")]), [A]),
        "never_begun": (model([node("Loop", ["n", "no", "x"], ["y"], body=step([node("Add", ["s", "x"], ["t"])], ["s"], ["t"]))], weights=[N, array(np.array(False), "no")]), [A]),
        "states_swap": (model([node("Neg", ["x"], ["z"]), node("Loop", ["n", "", "x", "z"], ["y", "w"], body=step([], ["s", "t"], ["t", "s"]))], ["y", "w"], weights=[N]), [-A, A]),
        "scan_backwards": (model([node("Scan", ["zero", "x"], ["y", "all"], num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1], body=helper.make_graph(
            [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["u"])], "s", [anything("s"), anything("e")], [anything("t"), anything("u")]))], ["y", "all"],
            weights=[array(np.zeros(3, np.float32), "zero")]), [A.sum(0), np.stack([A[1] + A[0], A[1]])]),
        "sequence_of_none": (model([node("SequenceEmpty", [], ["q"]), node("SequenceLength", ["q"], ["y"])]), [np.int64(0)]),
        "sequence_at_end": (model([node("Neg", ["x"], ["z"]), node("SequenceConstruct", ["x", "z"], ["q"]), node("SequenceAt", ["q", "p"], ["y"])],
                                  weights=[array(np.int64(-1), "p")]), [-A]),
    }


def functions():
    inner = function("G", [node("Neg", ["a"], ["b"])])
    return {
        "function_attribute_absent": (called(function("F", [elu("k")], attributes=["k"])), [ELU]), "function_attribute": (called(function("F", [elu("k")], attributes=["k"]), k=2.0),
                                                                                                                    [np.where(A > 0, A, 2 * (np.exp(A) - 1))]),
        "function_default": (called(function("F", [elu("k")], attribute_protos=[helper.make_attribute("k", 3.0)])), [np.where(A > 0, A, 3 * (np.exp(A) - 1))]),
        "function_of_function": (called(inner, function("F", [node("G", ["a"], ["t"], domain="d"), node("G", ["t"], ["b"], domain="d")])), [A]),
        "function_passes": (called(function("F", [], outputs=("a",))), [A]), "function_output_unused": (called(function("F", [node("Neg", ["a"], ["b"]), node("Abs", ["a"], ["c"])],
                                                                                                                   outputs=("b", "c")), gives=("", "y")), [abs(A)]),
        "function_input_left_out": (called(function("F", [node("Clip", ["a", "lo", "hi"], ["b"])], ("a", "lo", "hi"))), [A]),
        "function_same_names": (called(function("F", [node("Neg", ["x"], ["y"]), node("Abs", ["y"], ["b"])], ("x",))), [abs(A)]),
        "function_hides_operator": (model([node("Relu", ["x"], ["y"], domain="d")], functions=[function("Relu", [node("Neg", ["a"], ["b"])])], domains=[("d", 1)]), [-A]),
        "function_uncalled": (model([neg], functions=[function("F", [node("NoSuchThing", ["a"], ["b"])])], domains=[("d", 1)]), [-A]),
        "function_in_branch": (model([node("If", ["k"], ["y"], then_branch=branch([node("G", ["x"], ["t"], domain="d")], "t"), else_branch=branch([node("Abs", ["x"], ["e"])], "e"))],
                                     weights=[array(np.array(True), "k")], functions=[inner], domains=[("d", 1)]), [-A]),
    }


def tensors():
    three = TensorProto(name="w", data_type=TensorProto.INT4, dims=[3], raw_data=bytes([0x2F, 0x07]))
    half = TensorProto(name="w", data_type=TensorProto.FLOAT16, dims=[2], int32_data=[0x3C00, 0xC000])
    sparse = helper.make_sparse_tensor(helper.make_tensor("w", FLOAT, [2], [5, 7]), helper.make_tensor("i", INT64, [2, 2], [0, 2, 1, 0]), [2, 3])
    outside = TensorProto(name="w", data_type=FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL,
                          external_data=[StringStringEntryProto(key=k, value=v) for k, v in (("location", "here/w.bin"), ("length", "24"), ("offset", "4096"), ("checksum", "no"))])
    (OUT / "here").mkdir(exist_ok=True)
    (OUT / "here/w.bin").write_bytes(bytes(4096) + A.tobytes() + bytes(10))
    add = [node("Add", ["x", "w"], ["y"])]
    empty = np.zeros((0, 3), np.float32)
    scalar = helper.make_tensor("w", FLOAT, [], [3.0])
    return {
        "nibbles": (model([node("Cast", ["w"], ["y"], to=INT32)], inputs=[], weights=[three], opset=21), [np.array([-1, 2, 7], np.int32)], {}),
        "halves": (model([node("Cast", ["w"], ["y"], to=FLOAT)], inputs=[], weights=[half]), [np.array([1, -2], np.float32)], {}),
        "sparse": (model(add, change=lambda m: m.graph.sparse_initializer.append(sparse)), [A + np.array([[0, 0, 5], [7, 0, 0]], np.float32)]),
        "outside": (model(add, weights=[outside]), [A * 2]), "scalar": (model(add, weights=[scalar]), [A + 3]),
        "weight_is_input": (model(add, inputs=[X, info("w", FLOAT, [2, 3])], weights=[array(A * 3, "w")]), [A * 4], {"x": A}),
        "nothing": (model([node("Concat", ["x", "w"], ["y"], axis=0)], weights=[array(empty, "w")]), [A]), "nothing_left": (model(
            [node("Slice", ["x", "a", "a"], ["y"])], weights=[array(np.array([1]), "a")]), [empty]),
        "sum_of_nothing": (model([node("ReduceSum", ["w"], ["y"], keepdims=0), node("Slice", ["x", "a", "a"], ["w"])][::-1], weights=[array(np.array([1]), "a")]), [np.float32(0)]),
        "product_of_nothing": (model([node("Slice", ["x", "a", "a", "a"], ["l"]), node("Transpose", ["l"], ["r"]), node("MatMul", ["l", "r"], ["y"])], weights=[array(np.array([1]), "a")]),
                               [np.zeros((2, 2), np.float32)]),
        "rank_eight": (model([node("Reshape", ["x", "s"], ["a"]), node("ReduceSum", ["a"], ["y"], keepdims=0)], weights=[array(np.array([1, 1, 2, 1, 1, 3, 1, 1]), "s")]), [A.sum()]),
        "steps_back": (model([node("Slice", ["x", "a", "b", "c", "d"], ["y"])], weights=[array(np.array([2 ** 62]), "a"), array(np.array([-2 ** 62]), "b"), array(np.array([1]), "c"),
                                                                                         array(np.array([-2]), "d")]), [A[:, ::-2]]),
        "indices_from_end": (model([node("Gather", ["x", "i"], ["y"], axis=-1)], weights=[array(np.array([[-1, 0], [-3, 2]]), "i")]), [A[:, [[-1, 0], [-3, 2]]]]),
        "zeros_kept": (model([node("Reshape", ["x", "s"], ["y"])], weights=[array(np.array([0, 1, -1]), "s")]), [A.reshape(2, 1, 3)]),
        "pads_negative": (model([node("Pad", ["x", "p", "v"], ["y"])], weights=[array(np.array([-1, 1, 0, -2]), "p"), array(np.float32(9), "v")]), [np.array([[9, 1]], np.float32)]),
        "einsum_of_one": (model([node("Einsum", ["x"], ["y"], equation=" i j -> j ")]), [A.sum(0)]), "einsum_implicit": (model([node("Einsum", ["x", "x"], ["y"], equation="ij,kj")]), [A @ A.T]),
        "expand_smaller": (model([node("Expand", ["x", "s"], ["y"])], weights=[array(np.array([1, 1]), "s")]), [A]), "axes_of_none": (model(
            [node("ReduceSum", ["x", "a"], ["y"], noop_with_empty_axes=1)], weights=[array(np.zeros(0, np.int64), "a")]), [A]),
        "not_numbers": (model([node("Max", ["x", "w"], ["y"])], weights=[array(np.full((2, 3), np.nan, np.float32), "w")]), [np.full((2, 3), np.nan, np.float32)]),
        "sum_of_one": (model([node("Sum", ["x"], ["y"])]), [A]), "identities": (model([node("Identity", ["x"], ["a"]), node("Identity", ["a"], ["y"])], ["y", "a"]), [A, A]),
        "integers_wrap": (model([node("Mul", ["w", "w"], ["y"])], inputs=[], weights=[array(np.array([2 ** 62, -3]), "w")]), [np.array([0, 9])], {}),
        "divides_down": (model([node("Mod", ["w", "v"], ["y"])], inputs=[], weights=[array(np.array([-7, 7]), "w"), array(np.array([3, -3]), "v")]), [np.array([2, -2])], {}),
        "texts": (model([node("StringConcat", ["w", "w"], ["y"])], inputs=[], weights=[array(np.array(["", "ä\n"], object), "w")]), [np.array(["", "ä\nä\n"])], {}),
        "labels": (model([node("LabelEncoder", ["w"], ["y"], domain="ai.onnx.ml", keys_int64s=[5, 5, 1], values_strings=["first", "again", ""], default_string="?")], inputs=[],
                         weights=[array(np.array([5, 1, 2]), "w")], domains=[("ai.onnx.ml", 3)]), [np.array(["first", "", "?"])], {}),
        "leaf_alone": (model([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=[-3], nodes_nodeids=[8], nodes_featureids=[0], nodes_values=[0.0],
                                   nodes_modes=["LEAF"], nodes_truenodeids=[0], nodes_falsenodeids=[0], target_treeids=[-3], target_nodeids=[8], target_ids=[0], target_weights=[4.0])],
                             domains=[("ai.onnx.ml", 3)]), [np.full((2, 1), 4, np.float32)]),
    }


def is_right(name, made, expected, given):
    made_at, in_at, out_at = (OUT / f"m.{end}" for end in ("onnx", "in.npz", "out.npz"))
    made_at.write_bytes(made.SerializeToString())
    np.savez(in_at, **given)
    np.savez(out_at, **{o.name: v for o, v in zip(made.graph.output, expected)})
    inputs = ["--inputs", in_at] if given else []
    for how in ([], ["--interpret"])[: 2 if os.environ.get("DLC_LONG") else 1]:
        done = subprocess.run([DLC, "run", made_at, *inputs, *how, "--expect", out_at, "--quiet"], capture_output=True, text=True, errors="replace")
        if done.returncode:
            print(f"{name}{' '.join(['', *how])}: exit {done.returncode}: {' '.join((done.stderr + done.stdout).split())[:300]}", flush=True)
            return False
    return True


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rows = {**structure(), **functions(), **tensors()}
    bad = 0
    for name in sys.argv[3:] or rows:
        made, expected, *given = rows[name]
        bad += not is_right(name, made, [np.asarray(e) for e in expected], given[0] if given else {"x": A})
    for path in ("m.onnx", "m.in.npz", "m.out.npz"):
        (OUT / path).unlink(missing_ok=True)
    print(f"{bad} of {len(sys.argv[3:] or rows)} are not right")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
