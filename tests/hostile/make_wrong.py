#!/usr/bin/env python3
"""make_wrong.py FOLDER: models that must be refused when they are loaded, and TABLE: name|exit|what must be said."""
import pathlib
import sys

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info, node = helper.make_tensor_value_info, helper.make_node
OUT = pathlib.Path(sys.argv[1])
ROWS = []


def save(name, says, nodes, inputs, outputs, weights=(), opset=17, code=1):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    (OUT / f"{name}.onnx").write_bytes(model.SerializeToString())
    ROWS.append(f"{name}|{code}|{says}")


def array(name, values, dtype):
    return numpy_helper.from_array(np.array(values, dtype), name)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    x, y = info("x", FLOAT, [2, 3]), info("y", FLOAT, None)

    wrong = node("Elu", ["x"], ["y"], "my_elu")
    wrong.attribute.append(AttributeProto(name="alpha", ref_attr_name="outer", type=AttributeProto.FLOAT))
    save("reference", "my_elu;alpha;outer", [wrong], [x], [y])
    wrong = node("Elu", ["x"], ["y"], "my_elu", alpha=1.5)
    wrong.attribute[0].i = 3
    save("two_values", "my_elu;alpha", [wrong], [x], [y])
    for op, opset in (("Split", 13), ("Tile", 1)):
        more = ["s"] if op != "Tile" else ["s", "s"]
        save(f"strings_{op.lower()}", "my_node;'s'", [node(op, ["x", *more], ["y"], "my_node")], [x, info("s", TensorProto.STRING, [2])], [y], opset=opset)
    save("negative_perm", "my_transpose;perm;-1", [node("Transpose", ["x"], ["y"], "my_transpose", perm=[-1, 0])], [x], [y])

    add = [node("Add", ["x", "w"], ["y"], "my_add")]
    save("initializer_shape", "'w';f32[3];f32[2]", add, [x, info("w", FLOAT, [2])], [y], [array("w", [1, 2, 3], np.float32)])
    save("initializer_type", "'w';i64;f32", add, [x, info("w", FLOAT, [3])], [y], [array("w", [1, 2, 3], np.int64)])

    def branch(n):
        return helper.make_graph([node("Identity", ["x"], [f"b{i}"]) for i in range(n)], f"branch{n}", [],
                                 [info(f"b{i}", FLOAT, [2, 3]) for i in range(n)])
    choose = [node("If", ["c"], ["y"], "my_if", then_branch=branch(1), else_branch=branch(2))]
    save("branches", "my_if;1;2", choose, [x], [y], [array("c", True, bool)])
    choose = [node("If", ["c"], ["y"], "my_if", then_branch=branch(1), else_branch=branch(1))]
    save("float_condition", "my_if;f32", choose, [x], [y], [array("c", 1.0, np.float32)])
    body = helper.make_graph([node("Identity", ["ci"], ["co"]), node("Neg", ["s"], ["t"])], "body",
                             [info("i", INT64, []), info("ci", BOOL, []), info("s", FLOAT, [2, 3])],
                             [info("co", BOOL, []), info("t", FLOAT, [2, 3])])
    save("float_loop", "my_loop;f32", [node("Loop", ["n", "c", "x"], ["y"], "my_loop", body=body)], [x], [y],
         [array("n", 2, np.int64), array("c", 1.0, np.float32)])

    def scan(depth):
        inner = node("Scan", [f"s{depth}"], [f"t{depth}"], num_scan_inputs=1, body=scan(depth + 1)) if depth < 6 else node("Neg", ["s6"], ["t6"])
        return helper.make_graph([inner], "body", [info(f"s{depth}", FLOAT, None)], [info(f"t{depth}", FLOAT, None)])
    save("scans", "a scalar, which has none (10000 times);more than 10000 problems",
         [node("Scan", ["x"], ["y"], num_scan_inputs=1, body=scan(1))], [info("x", FLOAT, [11] * 5)], [info("y", FLOAT, None)])

    save("gather", "my_gather;7;3", [node("Gather", ["x", "i"], ["y"], "my_gather", axis=1)], [x], [y], [array("i", [0, 7], np.int64)])
    save("gather_low", "my_gather;-4;3", [node("Gather", ["x", "i"], ["y"], "my_gather", axis=1)], [x], [y],
         [array("i", [-4], np.int32)])
    save("gather_elements", "my_gather;9;2", [node("GatherElements", ["x", "i"], ["y"], "my_gather", axis=0)], [x], [y],
         [array("i", [[0, 9, 1]], np.int64)])
    save("gather_nd", "my_gather;5;3", [node("GatherND", ["x", "i"], ["y"], "my_gather")], [x], [y], [array("i", [[1, 5]], np.int64)])
    save("scatter_elements", "my_scatter;9;2", [node("ScatterElements", ["x", "i", "u"], ["y"], "my_scatter", axis=0)], [x], [y],
         [array("i", [[9]], np.int64), array("u", [[1]], np.float32)])
    save("scatter_nd", "my_scatter;4;2", [node("ScatterND", ["x", "i", "u"], ["y"], "my_scatter")], [x], [y],
         [array("i", [[4]], np.int64), array("u", [[1, 2, 3]], np.float32)])
    (OUT / "TABLE").write_text("\n".join(ROWS) + "\n")


if __name__ == "__main__":
    main()
