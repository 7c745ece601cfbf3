#!/usr/bin/env python3
"""make_faulty.py DLC FOLDER [NAME...]: models that are wrong in one way each, over most operators, beside the right model that each was made
of. Every right one must load, every wrong one must be refused when it is loaded, in a sentence that names its node; prints those that are not
and exits 1. DLC_SAMPLE=N takes every Nth operator."""
import copy
import os
import pathlib
import subprocess
import sys

from onnx import AttributeProto, defs, helper

from faulty_case import NODE
from faulty_graphs import GRAPHS
from faulty_late import LATE
from faulty_more import MORE
from faulty_nodes import ROWS
from faulty_strange import STRANGE

# --- what can be wrong with any node ---

def unknown_attribute(node, _):
    node.attribute.append(helper.make_attribute("no_such_attribute", 1))


def many_inputs(node, schema):
    if schema.max_input > 40:
        return False
    node.input.extend([node.input[0]] * (schema.max_input + 1 - len(node.input)))


def many_outputs(node, schema):
    if schema.max_output > 40:
        return False
    node.output.extend(f"more{i}" for i in range(schema.max_output + 1 - len(node.output)))


def undefined_input(node, _):
    node.input[0] = "nobody"


def missing_input(node, schema):
    if not schema.min_input:
        return False
    node.input[0] = ""


def no_inputs(node, schema):
    if not schema.min_input:
        return False
    del node.input[:]


def reference(node, _):
    if not node.attribute:
        return False
    name, kind = node.attribute[0].name, node.attribute[0].type
    node.attribute[0].CopyFrom(AttributeProto(name=name, ref_attr_name="outer", type=kind))


def two_values(node, _):
    if not node.attribute:
        return False
    attribute = node.attribute[0]
    if attribute.type == AttributeProto.INT:
        attribute.s = b"two"
    else:
        attribute.i = 3


def twice(node, _):
    if not node.attribute:
        return False
    node.attribute.append(copy.deepcopy(node.attribute[0]))


def other_type(node, _):
    if not node.attribute:
        return False
    name, kind = node.attribute[0].name, node.attribute[0].type
    value = 1 if kind in (AttributeProto.STRING, AttributeProto.STRINGS, AttributeProto.GRAPH, AttributeProto.TENSOR) else "text"
    node.attribute[0].CopyFrom(helper.make_attribute(name, value))


def no_such_operator(node, _):
    node.op_type += "X"


def no_such_domain(node, _):
    node.domain = "nobody.knows"


def same_output(node, _):
    node.output[0] = node.input[0]


GENERIC = [unknown_attribute, many_inputs, many_outputs, undefined_input, missing_input, no_inputs, reference, two_values, twice,
           other_type, no_such_operator, no_such_domain, same_output]


def main():
    dlc, out = sys.argv[1], pathlib.Path(sys.argv[2])
    only, sample = sys.argv[3:], int(os.environ.get("DLC_SAMPLE", "1"))
    out.mkdir(parents=True, exist_ok=True)
    counts = {"wrong": 0, "right": 0, "accepted": 0, "late": 0, "unnamed": 0, "refused though right": 0, "crashed": 0}

    def say(verdict, name, code, text):
        counts[verdict] += 1
        print(f"{verdict}: {name}: exit {code}: {' '.join(text.split())[:200]}", flush=True)

    def load(name, data):
        (out / "m.onnx").write_bytes(data)
        done = subprocess.run([dlc, "opt", out / "m.onnx", "--passes", "dce", "-o", out / "m.dlc", "--quiet"], capture_output=True, text=True,
                              errors="replace")
        return done.returncode, done.stderr

    def right(name, data):
        if only and name not in only:
            return
        counts["right"] += 1
        code, text = load(name, data)
        if code != 0:
            say("refused though right", name, code, text)

    def wrong(name, data, says):
        if only and name not in only:
            return
        counts["wrong"] += 1
        code, text = load(name, data)
        if code == 0:
            say("accepted", name, code, text)
        elif code not in (1, 3, 5, 7):
            say("crashed", name, code, text)
        elif not all(word in text for word in ([says] if isinstance(says, str) else says)):
            say("unnamed", name, code, text)
        elif only:
            print(f"{name}: exit {code}: {text}")

    turn = 0
    for number, (case, changes) in enumerate(ROWS):
        schema = defs.get_schema(case.op, case.opset, case.domain)
        if number % sample:
            turn += 2
            continue
        right(case.op, case.model())
        for change in changes:
            other = copy.deepcopy(case)
            what = change.apply(other)
            wrong(f"{case.op}:{what}", other.model(), NODE)
        for _ in range(2):
            for _ in GENERIC:
                kind = GENERIC[turn % len(GENERIC)]
                turn += 1
                applied = []
                data = case.model(lambda node, kind=kind: applied.append(kind(node, schema)))
                if applied[0] is not False:
                    wrong(f"{case.op}:{kind.__name__}", data, NODE)
                    break
    for number, (name, is_right, data, says) in enumerate([*GRAPHS(out), *MORE(), *STRANGE(), *LATE()]):
        if number % sample:
            continue
        if is_right:
            right(name, data)
        else:
            wrong(name, data, says)
    (out / "m.onnx").unlink(missing_ok=True)
    (out / "m.dlc").unlink(missing_ok=True)
    print(", ".join(f"{n} {what}" for what, n in counts.items()), "of", len({c.op for c, _ in ROWS}), "operators")
    return any(counts[what] for what in list(counts)[2:])


if __name__ == "__main__":
    sys.exit(main())
