#!/usr/bin/env python3
"""judge.py WORK DLC [--long] [--bless]: the importer's judge. From the schemas of the package onnx it makes models of one node: operator
x version x type x absent, scalar or empty operand x attributes x operands that are constant or the run's. ONNX's reference evaluator
or numpy says what must come out. The node tests and dlc's own cases are declared again at each version that means the same.

WORK holds the folders `node` and `cases`. Prints how many pairs of operator and version are covered: a case of theirs passes. That
number may not fall below the one in judge-coverage.txt. Without --long: two types of each schema, each try in one form.
"""
import argparse
import collections
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnx.defs
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import judge_nets
import judge_ops
import judge_try

HERE = pathlib.Path(__file__).parent
RTOL = {"float16": 4e-3, "bfloat16": 2e-2}
NEWEST = onnx.defs.onnx_opset_version()


def pair(schema):
    return schema.domain, schema.name, schema.since_version


def all_schemas():
    return sorted((s for s in onnx.defs.get_all_schemas_with_history() if not s.deprecated), key=pair)


# --- models ---

def elem(array):
    return T.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)


def proto_of(array, name):
    if array.dtype == object:
        return helper.make_tensor(name, T.STRING, array.shape, [str(v).encode() for v in array.reshape(-1)])
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def build(nodes, domain, version, inputs, expected, constants, symbols):
    """inputs: name -> array. Names among the constants are initializers; with symbols the first input's dimensions are names."""
    infos, weights = [], []
    for name, array in inputs.items():
        if name in constants:
            weights.append(proto_of(array, name))
        else:
            shape = [f"{name}_{i}" if symbols and name == "in0" and d != 1 and (i != 1 or array.ndim < 4) else d for i, d in enumerate(array.shape)]
            infos.append(helper.make_tensor_value_info(name, elem(array), shape))
    outs = [helper.make_tensor_value_info(f"out{i}", elem(e), None) for i, e in enumerate(expected)]
    opsets = [helper.make_opsetid(domain, version)] + ([helper.make_opsetid("", 17)] if domain else [])
    return helper.make_model(helper.make_graph(nodes, "case", infos, outs, weights), opset_imports=opsets, ir_version=10)


def the_node(op, domain, given, attributes, outputs):
    names = ["" if v is None else f"in{i}" for i, v in enumerate(given)]
    node = helper.make_node(op, names, [f"out{i}" for i in range(outputs)], domain=domain)
    for name, value in attributes.items():
        node.attribute.append(helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS if value == [] else None))
    return node


def evaluate(op, domain, version, given, attributes, outputs):
    inputs = {f"in{i}": v for i, v in enumerate(given) if v is not None}
    dummy = [np.zeros(0, np.float32)] * outputs
    model = build([the_node(op, domain, given, attributes, outputs)], domain, version, inputs, dummy, (), False)
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run([f"out{i}" for i in range(outputs)], inputs)


def expectation(asked, t):
    """By the reference evaluator: of the node itself, or of what it is like today; half precision through f32. None: it cannot."""
    schema = asked.schema
    op, attributes, given = t.like or (asked.op, t.attributes, t.inputs)
    given = t.inputs if given is None else given
    version = NEWEST if t.like and not schema.domain else schema.since_version
    half = str(asked.dtype) in RTOL and not t.exact
    if half:
        given = [v.astype(np.float32) if v is not None and v.dtype == asked.dtype else v for v in given]
    try:
        found = [np.asarray(v) for v in evaluate(op, schema.domain, version, given, attributes, t.outputs)]
    except Exception: # it has no such operator, version or type
        return None
    if any(v.dtype.kind in "SU" for v in found):
        found = [v.astype(object) if v.dtype.kind in "SU" else v for v in found]
    return [v.astype(asked.dtype) if half and v.dtype == np.float32 else v for v in found]


def forms(inputs, is_long, turn):
    """Which inputs are constants, and whether dimensions have names."""
    small = {n for n, v in inputs.items() if n != "in0" and v.size <= 64}
    ways = [("run", set(), False), ("const", small, False), ("symbols", set(), True)]
    ways = [w for w in ways if w[0] != "const" or small]
    ways = [w for w in ways if w[0] != "symbols" or "in0" in inputs and inputs["in0"].ndim]
    return ways if is_long else [ways[turn % len(ways)]]


def write(folder, model, inputs, expected, rtol, atol):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": rtol, "atol": atol}))
    for kind, values in (("input", inputs), ("output", {f"out{i}": e for i, e in enumerate(expected)})):
        for j, (name, value) in enumerate(values.items()):
            (data / f"{kind}_{j}.pb").write_bytes(proto_of(np.asarray(value), name).SerializeToString())


# --- cases from schemas ---

def types_of(schema, is_long, turn):
    """Of the first input: f32 and another one (of which every third try), or all of them."""
    if not schema.inputs:
        return [np.dtype(np.float32)]
    types = judge_try.Asked(schema, np.dtype(np.float32)).types(0)
    if is_long or len(types) < 3:
        return types
    first = [d for d in types if d == np.float32] or types[:1]
    rest = [d for d in types if d not in first]
    return first + [rest[turn % len(rest)]]


def second_type(schema, dtype, turn):
    """Of an operator whose second input has a type of its own: the first input's if it may, else any in turn."""
    if len(schema.inputs) < 2:
        return dtype
    types = judge_try.Asked(schema, dtype).types(1)
    return types[turn % len(types)] if types else dtype


def from_schema(schema, is_long, turn, out, cases):
    recipe = judge_try.OPS.get(schema.name)
    nmade = 0
    for index, dtype in enumerate(types_of(schema, is_long, turn) if recipe else ()):
        asked = judge_try.Asked(schema, dtype)
        asked.second = second_type(schema, dtype, turn + index)
        for number, t in enumerate(recipe(asked)):
            if not is_long and index and (number + turn) % 3:
                continue
            expected = t.expected or expectation(asked, t)
            if expected is None:
                continue
            expected = [np.asarray(e) for e in expected]
            inputs = {f"in{i}": np.asarray(v) for i, v in enumerate(t.inputs) if v is not None}
            nodes = t.nodes or [the_node(schema.name, schema.domain, t.inputs, t.attributes, t.outputs)]
            rtol = RTOL.get(str(dtype), 1e-3 if dtype != np.float64 else 1e-7)
            atol = max(t.atol, {"float16": 4e-3, "bfloat16": 3e-2}.get(str(dtype), 1e-6))
            for way, constants, symbols in forms(inputs, is_long, turn + nmade):
                nmade += 1
                model = build(nodes, schema.domain, schema.since_version, inputs, expected, constants, symbols)
                name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{schema.name}-{schema.since_version}-{dtype}-{t.label}-{way}")
                shown = {n: v for n, v in inputs.items() if n not in constants}
                write(out / name, model, shown, expected, rtol, atol)
                cases[name] = pair(schema)


# --- cases that are there, at other versions ---

# Since which version an operator means the same, where only types were added.
SAME = {"LSTM": 7, "GRU": 7, "RNN": 7, "GridSample": 20, "MaxUnpool": 9, "NonMaxSuppression": 10, "RoiAlign": 16, "DeformConv": 19, "Attention": 23,
        "NegativeLogLikelihoodLoss": 12, "SoftmaxCrossEntropyLoss": 12, "If": 1, "Loop": 1, "Scan": 9, "Optional": 15, "OptionalGetElement": 15,
        "OptionalHasElement": 15, "SplitToSequence": 11, "DFT": 20, "Range": 11, "Col2Im": 18, "AffineGrid": 20, "STFT": 17, "TfIdfVectorizer": 9,
        "Unique": 11, "TreeEnsembleClassifier": 1, "TreeEnsembleRegressor": 1, "LabelEncoder": 2, "StringNormalizer": 10, "Einsum": 12,
        "ReverseSequence": 10, "Compress": 9, "OneHot": 11, "LpPool": 18, "BitShift": 11, "Celu": 12}


def sole_node(model):
    """The first of nodes that are all of one operator, constants aside."""
    nodes = [n for n in model.graph.node if n.op_type != "Constant"] or list(model.graph.node)
    return nodes[0] if len({n.op_type for n in nodes}) == 1 else None


def domain_of(node):
    return "" if node.domain == "ai.onnx" else node.domain


def fits(node, schema):
    return all(a.name in schema.attributes for a in node.attribute) and schema.min_input <= len(node.input) <= schema.max_input


def inner_fit(node, version):
    """Whether nodes of subgraphs, too, are of this version as they stand."""
    for attribute in node.attribute:
        for inner in attribute.g.node:
            try:
                now, then = (onnx.defs.get_schema(inner.op_type, v, "") for v in (NEWEST, version))
            except onnx.defs.SchemaError:
                return False
            if not fits(inner, then) or not inner_fit(inner, version) or inner.op_type in ("Unsqueeze", "Squeeze", "Slice") and then.since_version < 13 \
                    or now.since_version > 13 and inner.op_type not in SAME and then.since_version < 13:
                return False
    return True


def redeclare(folder, schemas, out, cases, known):
    model = onnx.load(folder / "model.onnx")
    versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    node = sole_node(model)
    if node is None:
        if folder.parent.name == "cases":
            for n in model.graph.node:
                known[folder.name].add((domain_of(n), n.op_type, versions.get(domain_of(n))))
        return
    key = domain_of(node), node.op_type
    known[folder.name].add((*key, versions[key[0]]))
    if key[1] not in SAME:
        return
    for schema in schemas[key]:
        since = schema.since_version
        if versions[key[0]] < SAME[key[1]] or since < SAME[key[1]] or since == at(schemas, *key, versions[key[0]]) or not fits(node, schema) or not inner_fit(node, since):
            continue
        for o in model.opset_import:
            if o.domain in (key[0], "ai.onnx"[len(key[0]) * 9:]) or (not key[0] and o.domain == "ai.onnx"):
                o.version = since
        name = f"{key[1]}-{since}-as-{folder.name}"
        (out / name).mkdir()
        (out / name / "model.onnx").write_bytes(model.SerializeToString())
        shutil.copy(folder / "data.json", out / name)
        shutil.copytree(folder / "test_data_set_0", out / name / "test_data_set_0")
        cases[name] = pair(schema)


def at(schemas, domain, name, version):
    """The version of the schema that an opset means."""
    since = [s.since_version for s in schemas.get((domain, name), ()) if version and s.since_version <= version]
    return max(since, default=None)


# --- the whole ---

def make(work, is_long, out):
    schemas = collections.defaultdict(list)
    for s in all_schemas():
        schemas[s.domain, s.name].append(s)
    cases, known = {}, collections.defaultdict(set)
    for turn, s in enumerate(all_schemas()):
        from_schema(s, is_long, turn, out, cases)
    for suite in ("node", "cases"):
        for folder in sorted(p.parent for p in (work / suite).glob("*/model.onnx")):
            redeclare(folder, schemas, out, cases, known)
    there = {name: sorted({(d, o, at(schemas, d, o, v)) for d, o, v in found if at(schemas, d, o, v)}) for name, found in known.items()}
    (out / "pairs.json").write_text(json.dumps({"cases": cases, "there": there}))


def sources():
    files = sorted([*HERE.glob("judge*.py"), *HERE.glob("*case*.py")])
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest() + onnx.__version__


def listed(path):
    return {line.split()[0] for line in path.read_text().splitlines() if line.strip() and line[0] != "#"}


def covered(out, failed):
    """Pairs with a case that passes. `cases` and `node` are run by other tests, against lists of their own."""
    pairs = json.loads((out / "pairs.json").read_text())
    result = {tuple(p) for name, p in pairs["cases"].items() if name not in failed}
    others = listed(HERE / "expected-node-interpreted.txt") | listed(HERE / "expected-cases-interpreted.txt")
    for name, found in pairs["there"].items():
        if name not in others:
            result |= {tuple(p) for p in found}
    return result


def blessed(found, bad):
    """The list of what does not pass, with reasons."""
    lines = []
    for line in found.splitlines():
        refused, failed = re.match(r"UNSUPPORTED\((.*)\) (\S+)$", line), re.match(r"FAIL (\S+?): (.*)", line)
        if refused and refused[2] in bad:
            lines.append(f"{refused[2]} UNSUPPORTED # {refused[1]}")
        elif failed:
            lines.append(f"{failed[1]} FAIL # {failed[2]}")
    return "# Cases of the importer's judge that do not pass yet, and why; --bless writes it anew.\n" + "\n".join(sorted(lines)) + "\n"


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("work", type=pathlib.Path)
    args.add_argument("dlc")
    args.add_argument("--long", action="store_true")
    args.add_argument("--compiled", action="store_true", help="compiled code instead of the interpreter")
    args.add_argument("--bless", action="store_true", help="take what is found as the list and the number")
    args = args.parse_args()
    out = args.work / ("judge-long" if args.long else "judge")
    stamp = out / "version"
    if not stamp.exists() or stamp.read_text() != sources():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        make(args.work, args.long, out)
        stamp.write_text(sources())
    known = HERE / "expected-judge.txt"
    command = [args.dlc, "test", str(out), "--quiet"] + ([] if args.compiled else ["--interpret"])
    found = subprocess.run(command, capture_output=True, text=True).stdout
    bad = dict(re.findall(r"^(?:UNSUPPORTED\(.*\)|FAIL) (\S+?):?(?: |$)(.*)", found, re.M))
    new = sorted(set(bad) - listed(known))
    if args.bless:
        known.write_text(blessed(found, bad))
    for line in found.splitlines():
        if line.startswith(("FAIL ", "UNSUPPORTED(")) and any(f" {n}" in line for n in new):
            print(line)
    everything = {pair(s) for s in all_schemas()}
    have = covered(out, set(bad)) & everything
    if args.bless:
        (HERE / "judge-coverage.txt").write_text(f"{len(have)}\n")
    wanted = int((HERE / "judge-coverage.txt").read_text())
    print(found.splitlines()[-1] if found else "no output")
    better = sorted(n for n in listed(known) - set(bad) if not args.long and (out / n).exists())
    print("".join(f"passes by now: {n}\n" for n in better), end="")
    print("without a case: " + ", ".join(f"{n}-{v}" for _, n, v in sorted(everything - have)))
    print(f"{len(have)} of {len(everything)} pairs of operator and version covered ({100 * len(have) / len(everything):.1f} %), wanted {wanted}")
    sys.exit(1 if new or len(have) < wanted else 0)


assert judge_ops and judge_nets
if __name__ == "__main__":
    main()
