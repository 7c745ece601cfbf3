"""Cases of control flow that only the run decides, for make_cases.py: models and what they give, computed by plain Python."""
import numpy as np
from onnx import TensorProto as T, helper

node = helper.make_node


def info(name, dtype=T.FLOAT, dims=None):
    return helper.make_tensor_value_info(name, dtype, dims)


def body(nodes, inputs, outputs, name="body"):
    """A subgraph; an entry of inputs and outputs is a name or (name, dtype, dims)."""
    ins, outs = ([info(*([v] if isinstance(v, str) else v)) for v in values] for values in (inputs, outputs))
    return helper.make_graph(nodes, name, ins, outs)


def constant(name, value):
    return node("Constant", [], [name], value=helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype),
                                                                 np.asarray(value).shape, np.asarray(value).ravel().tolist()))


GOES_IN = [("i", T.INT64, []), ("go", T.BOOL, [])]
X = np.random.default_rng(11).standard_normal((5, 4)).astype(np.float32)


def branches(sign):
    yes = body([node("MatMul", ["x", "w"], ["m"]), node("Relu", ["m"], ["a"])], [], ["a"])
    no = body([node("Mul", ["x", "two"], ["p"]), node("Add", ["p", "b"], ["a"])], [], ["a"])
    nodes = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["c"]), node("Add", ["x", "one"], ["b"]),
             node("If", ["c"], ["r"], then_branch=yes, else_branch=no), node("Mul", ["r", "r"], ["y"])]
    w = np.arange(16, dtype=np.float32).reshape(4, 4) / 10
    x = np.abs(X) * np.float32(sign)
    given = {"zero": np.float32(0), "one": np.float32(1), "two": np.float32(2), "w": w}
    r = np.maximum(x @ w, 0) if sign > 0 else x * 2 + (x + 1)
    return nodes, {"x": x}, given, {"y": r * r}, {"x": ["n", 4]}


def branches_of_two_shapes(flag):
    """One gives what it finds, the other all: a size that only the run knows, and that readers have to go by."""
    yes = body([node("NonZero", ["x"], ["z"])], [], [("z", T.INT64, None)])
    no = body([node("Shape", ["x"], ["s"]), node("Unsqueeze", ["s", "last"], ["z"])], [], [("z", T.INT64, None)])
    nodes = [node("If", ["c"], ["r"], then_branch=yes, else_branch=no), node("Add", ["r", "r"], ["d"]), node("Shape", ["d"], ["n"])]
    x = np.where(X > 0, X, 0).astype(np.float32)
    r = np.array(np.nonzero(x)) if flag else np.array(x.shape)[:, None]
    return (nodes, {"x": x, "c": np.array(flag)}, {"last": np.array([-1])}, {"d": 2 * r, "n": np.array(r.shape)}, {"x": ["n", 4]})


def trips(n):
    """y = (x + i) * y, n times; all of them, too."""
    inner = body([node("Cast", ["i"], ["f"], to=T.FLOAT), node("Add", ["x", "f"], ["t"]), node("Mul", ["t", "s"], ["o"]),
                  node("Tanh", ["o"], ["k"]), node("ReduceSum", ["k"], ["q"], keepdims=0), node("Identity", ["go"], ["g"])],
                 [*GOES_IN, "s"], [("g", T.BOOL, []), "o", "k", "q"])
    nodes = [node("Loop", ["n", "", "x"], ["y", "all", "sums"], body=inner)]
    s, rows = X, []
    for i in range(n):
        s = (X + np.float32(i)) * s
        rows.append(np.tanh(s))
    stacked = np.array(rows, np.float32).reshape(n, *X.shape)
    return (nodes, {"x": X, "n": np.array(n)}, {}, {"y": s, "all": stacked, "sums": stacked.sum((1, 2))}, {"x": ["n", 4]})


def ends_early(limit, most=20):
    """Doubles until the sum passes a limit; what every iteration saw is kept."""
    inner = body([node("Add", ["s", "s"], ["o"]), node("ReduceMax", ["o"], ["m"], keepdims=0), node("Less", ["m", "limit"], ["g"])],
                 [*GOES_IN, "s"], [("g", T.BOOL, []), "o", "o"])
    nodes = [node("ReduceMax", ["x"], ["first"], keepdims=0), node("Less", ["first", "limit"], ["c"]),
             node("Loop", ["most", "c", "x"], ["y", "all"], body=inner), node("Shape", ["all"], ["n"])]
    s, rows = np.abs(X), []
    while len(rows) < most and s.max() < limit:
        s = s + s
        rows.append(s)
    stacked = np.array(rows, np.float32).reshape(len(rows), *X.shape)
    return (nodes, {"x": np.abs(X), "limit": np.float32(limit), "most": np.array(most)}, {},
            {"y": s, "all": stacked, "n": np.array(stacked.shape)})


def while_alone():
    """No trip count; integers of two widths and a bool are carried; the states change places."""
    inner = body([node("Add", ["a", "b"], ["c"]), node("Less", ["c", "limit"], ["g"]), node("Not", ["t"], ["u"]),
                  node("Add", ["k", "step"], ["j"])],
                 [*GOES_IN, ("a", T.INT64, []), ("b", T.INT64, []), ("t", T.BOOL, []), ("k", T.INT8, [2])],
                 [("g", T.BOOL, []), ("b", T.INT64, []), ("c", T.INT64, []), ("u", T.BOOL, []), ("j", T.INT8, [2])])
    nodes = [node("Loop", ["", "yes", "zero", "one", "yes", "small"], ["a", "b", "t", "k"], body=inner)]
    a, b, t, k = 0, 1, True, np.array([1, -3], np.int8)
    while True:
        a, b, t, k = b, a + b, not t, k + np.int8(1)
        if not b < 100:
            break
    return (nodes, {"limit": np.array(100)}, {"yes": np.array(True), "zero": np.array(0), "one": np.array(1),
                                              "small": np.array([1, -3], np.int8), "step": np.int8(1)},
            {"a": np.array(a), "b": np.array(b), "t": np.array(t), "k": k})


def nested(n, m):
    """A loop in a branch in a loop: each sees names of all around it."""
    inmost = body([node("Add", ["v", "row"], ["p"]), node("Sin", ["p"], ["o"]), node("Identity", ["go2"], ["g2"])],
                  [("j", T.INT64, []), ("go2", T.BOOL, []), "v"], [("g2", T.BOOL, []), "o", "o"])
    yes = body([node("Loop", ["m", "", "s"], ["e", "each"], body=inmost), node("ReduceSum", ["each", "first"], ["r"], keepdims=0),
                node("Add", ["e", "r"], ["z"])], [], ["z"])
    no = body([node("Mul", ["s", "half"], ["z"])], [], ["z"])
    inner = body([node("Gather", ["x", "i"], ["row"], axis=0), node("Mod", ["i", "two"], ["odd"]), node("Cast", ["odd"], ["c"], to=T.BOOL),
                  node("If", ["c"], ["o"], then_branch=yes, else_branch=no), node("Identity", ["go"], ["g"])],
                 [*GOES_IN, "s"], [("g", T.BOOL, []), "o", "o"])
    nodes = [node("Loop", ["n", "", "s0"], ["y", "all"], body=inner)]
    s, rows = np.ones(4, np.float32), []
    for i in range(n):
        if i % 2:
            v, r = s, np.zeros(4, np.float32)
            for _ in range(m):
                v = np.sin(v + X[i])
                r = r + v
            s = v + r
        else:
            s = s * np.float32(0.5)
        rows.append(s)
    return (nodes, {"x": X, "n": np.array(n), "m": np.array(m)},
            {"two": np.array(2), "half": np.float32(0.5), "s0": np.ones(4, np.float32), "first": np.array([0])},
            {"y": s, "all": np.array(rows, np.float32).reshape(n, 4)}, {"x": ["rows", 4]})


def scan_both_ways(n):
    """Scanned along any axis and from either end, for any length."""
    inner = body([node("Mul", ["s", "half"], ["h"]), node("Add", ["h", "a"], ["t"]), node("Add", ["t", "b"], ["o"]),
                  node("Neg", ["o"], ["p"])], ["s", "a", "b"], ["o", "o", "p"])
    nodes = [node("Scan", ["s0", "u", "v"], ["y", "forth", "back"], body=inner, num_scan_inputs=2, scan_input_axes=[1, 0],
                  scan_input_directions=[0, 1], scan_output_axes=[0, 1], scan_output_directions=[1, 0])]
    u, v = np.resize(X, (4, n)).astype(np.float32), np.resize(X[::-1], (n, 4)).astype(np.float32)
    s, rows = np.ones(4, np.float32), []
    for i in range(n):
        s = s * np.float32(0.5) + u[:, i] + v[n - 1 - i]
        rows.append(s)
    rows = np.array(rows, np.float32).reshape(n, 4)
    return (nodes, {"u": u, "v": v}, {"half": np.float32(0.5), "s0": np.ones(4, np.float32)},
            {"y": s, "forth": rows[::-1], "back": -rows.T}, {"u": [4, "n"], "v": ["n", 4]})


def results_at_once():
    """What a region gives is also read inside of another, an input is given as it is, and a constant."""
    yes = body([node("Identity", ["x"], ["a"]), constant("k", np.float32(3))], [], ["a", "k"])
    no = body([node("Neg", ["x"], ["a"]), node("ReduceMax", ["x"], ["k"], keepdims=0)], [], ["a", "k"])
    inner = body([node("If", ["c"], ["a", "k"], then_branch=yes, else_branch=no), node("Mul", ["a", "k"], ["p"]),
                  node("Add", ["p", "s"], ["o"]), node("Identity", ["go"], ["g"])], [*GOES_IN, "s"], [("g", T.BOOL, []), "o", "x"])
    nodes = [node("Loop", ["n", "c", "x"], ["y", "same"], body=inner), node("Identity", ["x"], ["z"])]
    return nodes, inner, X


def given_as_they_are(c):
    nodes, _, x = results_at_once()
    n = 2 if c else 0
    s = x
    for _ in range(n):
        s = x * np.float32(3) + s
    return (nodes, {"x": x, "c": np.array(c), "n": np.array(2)}, {},
            {"y": s, "same": np.array([x] * n, np.float32).reshape(n, *x.shape), "z": x})


def removes_what_is_one():
    """As exporters squeeze a dimension that they do not know; the rest holds for either."""
    yes, no = body([node("Squeeze", ["x", "last"], ["s"])], [], ["s"]), body([node("Identity", ["x"], ["s"])], [], ["s"])
    nodes = [node("Shape", ["x"], ["n"]), node("Gather", ["n", "last"], ["d"]), node("Equal", ["d", "one"], ["c1"]), node("Squeeze", ["c1"], ["c"]),
             node("If", ["c"], ["r"], then_branch=yes, else_branch=no), node("Relu", ["r"], ["y"])]
    x = X[:, :1]
    return nodes, {"x": x}, {"last": np.array([-1]), "one": np.array([1])}, {"y": np.maximum(x[:, 0], 0)}, {"x": ["n", "m"]}


def while_below(n, words):
    """No trip count, a result of each iteration: the counter and its limit say how many there can be."""
    compare = {"i32": [node("Cast", ["k"], ["kf"], to=T.FLOAT), node("Cast", ["limit"], ["lf"], to=T.FLOAT), node("Less", ["kf", "lf"], ["go"])],
               "and": [node("Less", ["k", "limit"], ["a"]), node("Greater", ["six", "k"], ["b"]), node("And", ["a", "b"], ["go"])],
               "equal": [node("LessOrEqual", ["k", "limit"], ["go"])]}[words]
    inner = body([node("Add", ["count", "two"], ["k"]), *compare, node("Gather", ["x", "count"], ["row"]), node("Add", ["row", "s"], ["o"]),
                  node("Neg", ["o"], ["q"])], [("i", T.INT64, []), ("before", T.BOOL, []), ("count", T.INT32, []), ("limit", T.INT32, []), "s"],
                 [("go", T.BOOL, []), ("k", T.INT32, []), ("limit", T.INT32, []), "o", "q"])
    nodes = [node("Loop", ["", "first", "zero", "n", "s0"], ["k1", "n1", "y", "all"], body=inner)]
    count, s, rows = 0, np.zeros(4, np.float32), []
    while not rows or {"i32": count < n, "and": count < n and 6 > count, "equal": count <= n}[words]:
        s = s + X[count]
        rows.append(-s)
        count += 2
    return (nodes, {"x": X, "n": np.array(n, np.int32)},
            {"first": np.array(True), "zero": np.array(0, np.int32), "two": np.array(2, np.int32), "six": np.array(6, np.int32), "s0": np.zeros(4, np.float32)},
            {"k1": np.array(count, np.int32), "n1": np.array(n, np.int32), "y": s, "all": np.array(rows)}, {"x": ["n", 4]})


def grows(n):
    """States that a loop puts something behind, along a first and a second axis; sequences that it fills and takes apart."""
    inner = body([node("SequenceAt", ["parts", "i"], ["part"]), node("Cast", ["i"], ["f"], to=T.FLOAT), node("Add", ["part", "f"], ["row"]),
                  node("Unsqueeze", ["row", "first"], ["wide"]), node("Cast", ["rows"], ["same"], to=T.FLOAT), node("Concat", ["same", "wide"], ["rows1"], axis=0),
                  node("Unsqueeze", ["row", "last"], ["tall"]), node("Concat", ["cols", "tall"], ["cols1"], axis=-1), node("Neg", ["row"], ["less"]),
                  node("SequenceInsert", ["list", "less"], ["list1"]), node("Identity", ["go"], ["g"]), node("ReduceSum", ["row"], ["sum"], keepdims=0)],
                 [*GOES_IN, "rows", "cols", "list"], [("g", T.BOOL, []), "rows1", "cols1", "list1", "sum"])
    nodes = [node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=0), node("SequenceLength", ["parts"], ["n"]), node("SequenceEmpty", [], ["none"]),
             node("Loop", ["n", "", "rows0", "cols0", "none"], ["rows_", "cols_", "list_", "sums"], body=inner), node("SequenceLength", ["list_"], ["count"]),
             node("ConcatFromSequence", ["list_"], ["stacked"], axis=1, new_axis=1), node("ConcatFromSequence", ["list_"], ["joined"], axis=0),
             node("Relu", ["rows_"], ["y"])]
    x = np.resize(X, (n, 4)).astype(np.float32)
    rows = x + np.arange(n, dtype=np.float32)[:, None]
    before = np.ones((2, 4), np.float32)
    return (nodes, {"x": x}, {"first": np.array([0]), "last": np.array([-1]), "rows0": before, "cols0": before.T},
            {"y": np.maximum(np.concatenate([before, rows]), 0), "cols_": np.concatenate([before, rows]).T, "sums": rows.sum(1), "count": np.array(n),
             "stacked": -rows.T, "joined": -rows.ravel()}, {"x": ["n", 4]})


def cut_to_a_size():
    """Rows of which only data says how long they are, cut to one length: what is stacked has it."""
    inner = body([node("Gather", ["lengths", "i"], ["m"]), node("Unsqueeze", ["m", "first"], ["m1"]), node("Expand", ["one", "m1"], ["ones"]),
                  node("Slice", ["ones", "first", "three", "first"], ["part"]), node("Gather", ["x", "i"], ["v"]), node("Mul", ["part", "v"], ["row"]),
                  node("Unsqueeze", ["row", "first"], ["wide"]), node("Concat", ["rows", "wide"], ["rows1"], axis=0), node("Identity", ["go"], ["g"])],
                 [*GOES_IN, "rows"], [("g", T.BOOL, []), "rows1"])
    nodes = [node("Size", ["x"], ["n"]), node("Loop", ["n", "", "rows0"], ["y"], body=inner)]
    x = X.ravel()[:4]
    return (nodes, {"x": x, "lengths": np.array([5, 3, 9, 4])}, {"first": np.array([0]), "three": np.array([3]), "one": np.ones(1, np.float32),
            "rows0": np.zeros((0, 3), np.float32)}, {"y": np.repeat(x[:, None], 3, 1)}, {"x": ["n"], "lengths": ["n"]})


def branch_of_nothing(flag):
    """An empty constant, or as many as the run finds."""
    yes = body([constant("z", np.zeros(0, np.int64))], [], [("z", T.INT64, None)])
    no = body([node("NonZero", ["p"], ["i"]), node("Squeeze", ["i", "zero"], ["z"])], [], [("z", T.INT64, None)])
    nodes = [node("Greater", ["x", "limit"], ["p"]), node("If", ["c"], ["r"], then_branch=yes, else_branch=no), node("Add", ["r", "r"], ["y"])]
    x = X.ravel()
    r = np.zeros(0, np.int64) if flag else np.nonzero(x > 0)[0]
    return nodes, {"x": x, "c": np.array(flag)}, {"limit": np.float32(0), "zero": np.array([0])}, {"y": 2 * r}, {"x": ["n"]}


def finds(flag):
    """Each branch and what is behind both finds sizes of its own: memory of the later ones lies behind that of the branch taken."""
    def find(x, tag):
        return [node("Greater", [x, "zero"], [tag + "g"]), node("NonZero", [tag + "g"], [tag + "z"]), node("Transpose", [tag + "z"], [tag + "t"]),
                node("GatherND", [x, tag + "t"], [tag + "v"]), node("CumSum", [tag + "v", "first"], [tag + "c"]), node("Add", [tag + "c", tag + "v"], [tag + "o"])]
    yes, no = (body(find(x, x), [], [(x + "o", T.FLOAT, ["found_" + x])]) for x in "ab")
    nodes = [node("If", ["flag"], ["r"], then_branch=yes, else_branch=no), *find("c", "c"), node("CumSum", ["r", "first"], ["rr"]), *find("rr", "rr"),
             node("Concat", ["r", "rro", "co"], ["y"], axis=0), node("Concat", ["rro", "r"], ["z"], axis=0)]
    draw = np.random.default_rng(5)
    given = {k: np.where(draw.random(n) < p, draw.random(n), 0).astype(np.float32) for k, n, p in (("a", 200, .2), ("b", 300, .3), ("c", 400, .5))}

    def found(x):
        v = x[x > 0]
        return np.cumsum(v, dtype=np.float32) + v
    r = found(given["a" if flag else "b"])
    rro, co = found(np.cumsum(r, dtype=np.float32)), found(given["c"])
    return (nodes, {**given, "flag": np.array(flag)}, {"zero": np.float32(0), "first": np.array(0)},
            {"y": np.concatenate([r, rro, co]), "z": np.concatenate([rro, r])})


CASES = {
    "if_finds": lambda: finds(True),
    "if_finds_other": lambda: finds(False),
    "loop_cuts_to_a_size": cut_to_a_size,
    "loop_grows": lambda: grows(6),
    "loop_grows_of_none": lambda: grows(0),
    "if_nothing": lambda: branch_of_nothing(True),
    "if_nothing_other": lambda: branch_of_nothing(False),
    "if_removes_what_is_one": removes_what_is_one,
    "while_below_a_limit": lambda: while_below(4, "i32"),
    "while_below_none": lambda: while_below(0, "i32"),
    "while_below_two_limits": lambda: while_below(3, "and"),
    "while_up_to_a_limit": lambda: while_below(2, "equal"),
    "if_taken": lambda: branches(1),
    "if_not_taken": lambda: branches(-1),
    "if_of_two_shapes": lambda: branches_of_two_shapes(True),
    "if_of_two_shapes_other": lambda: branches_of_two_shapes(False),
    "loop_of_no_trip": lambda: trips(0),
    "loop_of_one_trip": lambda: trips(1),
    "loop_of_many_trips": lambda: trips(7),
    "loop_ends_early": lambda: ends_early(30),
    "loop_ends_at_once": lambda: ends_early(0.001),
    "loop_ends_by_count": lambda: ends_early(1e9, 3),
    "loop_while_alone": while_alone,
    "loops_nested": lambda: nested(5, 3),
    "loops_nested_of_none": lambda: nested(3, 0),
    "loop_gives_what_it_got": lambda: given_as_they_are(True),
    "loop_gives_what_it_got_of_none": lambda: given_as_they_are(False),
    "scan_both_ways": lambda: scan_both_ways(37),
    "scan_both_ways_of_one": lambda: scan_both_ways(1),
    "scan_both_ways_of_none": lambda: scan_both_ways(0),
}
