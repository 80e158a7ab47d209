"""Bodies and functions of ONNX: a node of theirs is read as it runs (`flat` and `inference`)."""

import numpy as np
from pytest import importorskip, mark, raises

from te_select import ModelError
from tests.frontends.told import check
from tests.support.models import model, read, tensor

onnx = importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

from tests.frontends.test_onnx import COMPILED, COND, DISPATCHED, FOLDED, X, node  # noqa: E402

K = tensor("k", "bool", [])
MASK = tensor("m", "bool", [3])
LOOP_INPUTS = [COND, X, K, tensor("trips", "int64", [])]
OPSETS = {"": 17, "local": 1}
BATCH, OPEN = ("batch", 4), ("batch", "?")


def where(cond, then, else_, out):
    return node("Where", [cond, then, else_], [out])


def graph(nodes, inputs, *outputs):
    return helper.make_graph(
        nodes, "body", inputs, [tensor(out, "float32", None) for out in outputs]
    )


def either(then, else_, out):
    return node("If", ["k"], [out], then_branch=then, else_branch=else_)


def loop(body_nodes, state, inputs=("trips", "k", "x"), results=("end",), on="goes_on"):
    body = helper.make_graph(
        [node("Identity", ["going"], [on]), *body_nodes],
        "body",
        [tensor("i", "int64", []), tensor("going", "bool", []), tensor("s", "float32", None)],
        [tensor(on, "bool", []), tensor(state, "float32", None)],
    )
    return node("Loop", list(inputs), list(results), body=body)


def nested(depth, nodes):
    for level in range(depth):
        nodes = [loop(nodes, "t", results=("t",), on=f"goes_on_{level}")]
    return nodes


def function(name, nodes, inputs=("m", "v"), outputs=("o",), **parts):
    imports = [helper.make_opsetid(*each) for each in OPSETS.items()]
    return helper.make_function("local", name, inputs, outputs, nodes, imports, **parts)


def call(name, inputs, out, **attributes):
    return node(name, inputs, [out], domain="local", **attributes)


def reshaped(size):
    """A branch of a size that it says in tensors of the same names as the other one."""
    nodes = [
        node("Constant", [], ["n"], value_ints=[size]),
        node("Constant", [], ["four"], value_ints=[4]),
        node("Concat", ["n", "four"], ["sizes"], axis=0),
        node("Reshape", ["z", "sizes"], ["y"]),
        where("c", "y", "y", "out"),
    ]
    return graph(nodes, [], "out")


def along(axis):
    inner = node("Concat", ["v", "v"], ["w"])
    reference = inner.attribute.add(name="axis", ref_attr_name=axis)
    reference.type = onnx.AttributeProto.INT
    return function("both", [inner, where("m", "w", "w", "o")], attributes=[axis])


def numbers(name, number):
    return graph([node("Constant", [], [name], value_floats=[number, number])], [], name)


SAME = graph([node("Identity", ["x"], ["out"])], [], "out")
UNFIT = graph([where("m", "x", "x", "out")], [], "out")
WIDER = graph([node("Concat", ["x", "x"], ["out"], axis=1)], [], "out")
NEGATED = graph([node("Neg", ["x"], ["z"]), where("c", "z", "x", "out")], [], "out")
UNFIT_LOOP = graph([loop([where("m", "s", "s", "t")], "t")], [], "end")
CHOICE = [either(numbers("then", 1.0), numbers("else", 2.0), "v"), where("flags", "v", "v", "o")]
FLAGS, FIXED = (
    numpy_helper.from_array(np.ones(shape, bool), name) for shape, name in ((2, "flags"), ((), "k"))
)
ROW = tensor("row", "float32", None)
TRIPS = numpy_helper.from_array(np.array(2), "trips")


def scan(nodes):
    return node("Scan", ["flags"], ["v"], body=graph(nodes, [ROW], "t"), num_scan_inputs=1)


READS_X = [node("Identity", ["x"], ["t"])]
OF_X = [
    either(graph(READS_X, [], "t"), numbers("else", 2.0), "v"),
    loop(READS_X, "t", ("trips", "k", "flags"), ("v",)),
    scan(READS_X),
]
ROWS = [tensor("s", "float32", None)]
SCANNED = graph(
    [where("m", "s", "row", "t"), node("Identity", ["t"], ["u"])], [*ROWS, ROW], "t", "u"
)
NEGATED_ROWS = graph([node("Neg", ["row"], ["u"])], [ROW], "u")
WHERES = [where("m", "v", "v", "o")]
MASKED = function("masked", WHERES)
OF_16 = helper.make_function(
    "local", "masked", ["m", "v"], ["o"], WHERES, [helper.make_opsetid("", 16)]
)
CALLED = [call("masked", ["c", "x"], "y")]
OTHERS = [tensor("c5", "bool", ["batch", 1]), tensor("x5", "float32", ["batch", 5])]
DEEP = function("deep", nested(16, [where("c", "s", "s", "t")]), ("c", "x", "k", "trips"), ("t",))
CHAIN = [function("f0", WHERES)]
CHAIN += [function(f"f{k}", [call(f"f{k - 1}", ["m", "v"], "o")]) for k in range(1, 2000)]
DOUBLING = [function("f0", WHERES)]  # each calls the one before twice
DOUBLING += [
    function(f"f{k}", [call(f"f{k - 1}", ["m", "v"], "a"), call(f"f{k - 1}", ["m", "a"], "o")])
    for k in range(1, 31)
]
OF_INPUT = {"then_shape": BATCH, "cond_producer": "graph input"}
READ = {
    "branches see the tensors around them": (
        [node("Neg", ["x"], ["y"]),
         either(graph([where("c", "x", "y", "out")], [], "out"), NEGATED, "both"),
         where("c", "both", "x", "end")],
        [COND, X, K], {},
        OF_INPUT | {"place": "graph/1:If.else_branch#1"},
        {"place": "graph/1:If.then_branch#0", "then_shape": BATCH},
        OF_INPUT | {"place": "graph#2"}),
    "branches that differ leave a size open": (
        [either(SAME, WIDER, "both"), where("c", "both", "x", "end")], [COND, X, K], {},
        DISPATCHED | {"then_shape": OPEN}),
    # TorchScript exports both branches of a test of the rank, and one does not fit.
    "branch that cannot run": ([either(UNFIT, SAME, "end")], [MASK, X, K], {},
        DISPATCHED | {"place": "graph/0:If.then_branch#0"}),
    # A loop is taken to run, but not where the branch around it does not.
    "loop inside a branch that cannot run": (
        [either(UNFIT_LOOP, graph([node("Identity", ["x"], ["end"])], [], "end"), "both")],
        [MASK, *LOOP_INPUTS[1:]], {},
        DISPATCHED | {"place": "graph/0:If.then_branch/0:Loop.body#1"}),
    # It may change from trip to trip.
    "state of a loop": (
        [loop([where("c", "s", "x", "t")], "t"), where("c", "end", "x", "o")], LOOP_INPUTS, {},
        DISPATCHED | {
            "place": "graph/0:Loop.body#1", "cond_shape": ("batch", 1), "then_shape": None,
            "else_shape": BATCH, "dtype": "float32"},
        {"then_shape": None}),
    # ONNX's inference would take the values of the first one for those of the second.
    "tensors of one name in two bodies": (
        [either(reshaped(2), reshaped(3), "end")],
        [tensor("z", "float32", ["n"]), tensor("c", "bool", [1, 1]), K], {},
        {"place": "graph/0:If.else_branch#4", "then_shape": (3, 4)},
        {"place": "graph/0:If.then_branch#4", "then_shape": (2, 4)}),
    "body of a scan sees one row": (
        [node("Scan", ["first", "x"], ["end", "rows"], body=SCANNED, num_scan_inputs=1),
         where("k", "rows", "x", "o")],
        [tensor("m", "bool", [4]), tensor("first", "float32", [4]), X, K], {},
        {"place": "graph/0:Scan.body#0", "then_shape": (4,)}, {"then_shape": BATCH}),
    "scan along another axis has its length of rows": (
        [node("Scan", ["x"], ["r"], body=NEGATED_ROWS, num_scan_inputs=1, scan_input_axes=[1]),
         where("k", "r", "r", "o")], [X, K], {}, {"then_shape": (4, "batch")}),
    "constant that the call chooses": (CHOICE, [K], {"initializer": [FLAGS]}, COMPILED),
    "constant that the file chooses": (CHOICE, [], {"initializer": [FLAGS, FIXED]}, FOLDED),
    **{f"input that the file chooses by {made.op_type}": (
        [made, where("k", "v", "v", "o")], [X], {"initializer": [FLAGS, FIXED, TRIPS]},
        COMPILED if made.op_type == "Scan" else DISPATCHED)
       for made in OF_X},
    "scan that reads nothing": (
        [scan([node("Constant", [], ["t"], value_float=1.0)]), where("k", "v", "v", "o")], [],
        {"initializer": [FLAGS, FIXED]}, COMPILED),
    "function sees what it is called with": (
        [*CALLED, where("c", "y", "x", "o")], [COND, X], {"functions": [MASKED]},
        COMPILED | {"place": "graph#1", "cond_shape": ("batch", 1), "then_shape": BATCH},
        COMPILED | {
            "place": "function:local::masked#0", "cond_shape": ("batch", 1), "then_shape": BATCH,
            "cond_producer": "function input"}),
    "function of two shapes": (
        [*CALLED, call("masked", ["c5", "x5"], "z")], [COND, X, *OTHERS], {"functions": [MASKED]},
        DISPATCHED | {"cond_shape": ("batch", 1), "then_shape": OPEN}),
    "function of two ranks": (
        [*CALLED, call("masked", ["k", "x"], "z")], [COND, X, K], {"functions": [MASKED]},
        DISPATCHED | {"cond_shape": None}),
    "function that is never called": (
        [node("Neg", ["x"], ["o"])], [X], {"functions": [MASKED]}, DISPATCHED),
    "function of another opset": (CALLED, [COND, X], {"functions": [OF_16]},
        COMPILED | {"op": "Where-16", "then_shape": BATCH}),
    # ONNX's inference knows one version of its operators in a model.
    "behind a function of another opset": (
        [*CALLED, where("c", "y", "y", "z")], [COND, X], {"functions": [OF_16]},
        DISPATCHED | {"place": "graph#1"}, COMPILED),
    "attribute of the call": (
        [call("both", ["c", "x"], "y", along=1)], [COND, X], {"functions": [along("along")]},
        {"then_shape": ("batch", 8)}),
    "bodies of a depth that ONNX sees": (
        nested(25, [where("c", "s", "s", "t")]), LOOP_INPUTS, {},
        DISPATCHED | {
            "cond_shape": ("batch", 1),
            "place": "graph/0:Loop.body" + "/1:Loop.body" * 24 + "#1"}),
    "bodies of a depth that it does not see": (
        nested(16, [call("deep", ["c", "x", "k", "trips"], "t")]), LOOP_INPUTS,
        {"functions": [DEEP]}, DISPATCHED | {"cond_shape": None}),
    "functions of a depth that it does not see": (
        [call("f1999", ["c", "x"], "y"), where("c", "x", "x", "z")], [COND, X],
        {"functions": CHAIN}, COMPILED, DISPATCHED),
}  # fmt: skip


@mark.parametrize("case", READ)
def test_bodies_and_functions_are_read_as_they_run(tmp_path, case):
    nodes, inputs, parts, *expected = READ[case]
    check(read(model(nodes, inputs, opsets=OPSETS, **parts), tmp_path), *expected)


def test_functions_called_a_billion_times_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.frontends.onnx_graph.flat.MOST_STEPS", 1000)
    made = model([call("f30", ["c", "x"], "y")], [COND, X], functions=DOUBLING, opsets=OPSETS)
    check(read(made, tmp_path), DISPATCHED | {"place": "function:local::f0#0"})


AGAIN = function("again", [call("again", ["m", "v"], "o")])


@mark.parametrize(
    "nodes, functions, said",
    [
        ([where("m", "x", "x", "out")], [], "graph#0"),  # which surely runs
        ([call("again", ["m", "x"], "y")], [AGAIN], "calls itself"),
    ],
)
def test_node_that_runs_and_cannot_is_an_error(tmp_path, nodes, functions, said):
    with raises(ModelError, match=said):
        read(model(nodes, [MASK, X], functions=functions, opsets=OPSETS), tmp_path)
