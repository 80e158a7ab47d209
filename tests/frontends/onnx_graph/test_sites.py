"""Names that a model defines twice: refused where ONNX's own checker refuses them."""

import numpy as np
from pytest import importorskip, mark, raises

onnx = importorskip("onnx")

from onnx import TensorProto, checker, helper, numpy_helper  # noqa: E402

from te_select import ModelError  # noqa: E402
from tests.support.models import read  # noqa: E402

OPSET = helper.make_opsetid("", 17)


def tensor(name, dtype=TensorProto.FLOAT, shape=(2,)):
    return helper.make_tensor_value_info(name, dtype, shape)


def initializer(name):
    return numpy_helper.from_array(np.zeros(2, "f4"), name)


def identity(source, target):
    return helper.make_node("Identity", [source], [target])


def body(*nodes, out="o", inputs=(), held=()):
    return helper.make_graph(list(nodes), "b", list(inputs), [tensor(out)], list(held))


def either(then):
    other = body(identity("x", "other"), out="other")
    return helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)


def model(*nodes, held=(), functions=(), inputs=("x",), out="y"):
    given = [*map(tensor, inputs), tensor("c", TensorProto.BOOL, ()), tensor("k", 7, (1,))]
    graph = helper.make_graph(list(nodes), "g", given, [tensor(out)], list(held))
    imports = [OPSET, helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=8)


def function(*nodes, inputs=("p",)):
    return helper.make_function("own", "f", list(inputs), ["q"], list(nodes), [OPSET])


def calling(made, count=1):
    return model(helper.make_node("f", ["x"] * count, ["y"], domain="own"), functions=[made])


def loop(name):
    made = helper.make_graph(
        [identity("going", "on"), identity(name, "s")],
        "b",
        [tensor("i", 7, ()), tensor("going", TensorProto.BOOL, ()), tensor(name)],
        [tensor("on", TensorProto.BOOL, ()), tensor("s")],
    )
    return helper.make_node("Loop", ["", "c", "x"], ["y"], body=made)


BRANCH = "graph/0:If.then_branch#"
FUNCTION = "function:own::f"
TWICE = {
    "two nodes": (model(identity("x", "a"), identity("x", "a"), identity("a", "y")),
        "graph#0", "graph#1"),
    "one node": (model(helper.make_node("TopK", ["x", "k"], ["a", "a"]), identity("x", "y")),
        "graph#0", "graph#0"),
    "node and input": (model(identity("x", "x"), identity("x", "y")),
        "an input of graph", "graph#0"),
    "node and initializer": (
        model(identity("x", "w"), identity("w", "y"), held=[initializer("w")]),
        "an initializer of graph", "graph#0"),
    "two inputs": (model(identity("x", "y"), inputs=("x", "x")),
        "an input of graph", "an input of graph"),
    "two initializers": (model(identity("w", "y"), held=[initializer("w")] * 2),
        "an initializer of graph", "an initializer of graph"),
    "two nodes of a body": (
        model(either(body(identity("x", "a"), identity("x", "a"), identity("a", "o")))),
        f"{BRANCH}0", f"{BRANCH}1"),
    "node of a body and input of the graph": (
        model(either(body(identity("x", "x"), identity("x", "o")))),
        "an input of graph", f"{BRANCH}0"),
    "node of a body and node before": (
        model(identity("x", "a"), either(body(identity("x", "a"), identity("a", "o")))),
        "graph#0", "graph/1:If.then_branch#0"),
    "two nodes of a function": (
        calling(function(identity("p", "a"), identity("p", "a"), identity("a", "q"))),
        f"{FUNCTION}#0", f"{FUNCTION}#1"),
    "node and input of a function": (calling(function(identity("p", "p"), identity("p", "q"))),
        f"an input of {FUNCTION}", f"{FUNCTION}#0"),
    "two inputs of a function": (calling(function(identity("p", "q"), inputs=("p", "p")), 2),
        f"an input of {FUNCTION}", f"an input of {FUNCTION}"),
}  # fmt: skip
DROPOUTS = (helper.make_node("Dropout", *each) for each in ((["x"], ["a", ""]), (["a"], ["y", ""])))
ONCE = {
    "default of an input": model(identity("x", "y"), held=[initializer("x")]),
    "bodies side by side": model(
        either(body(identity("x", "a"), identity("a", "other"), out="other"))),
    "node of a body and node behind": model(
        either(body(identity("x", "a"), identity("a", "o"))),
        identity("y", "a"), identity("a", "z"), out="z"),
    "node of a body and its own output": model(
        either(body(identity("x", "y"), identity("y", "o")))),
    "initializer of a body": model(
        identity("x", "a"), either(body(identity("a", "o"), held=[initializer("a")]))),
    "input of a body and input of the graph": model(loop("x")),
    "input of a body and node": model(identity("x", "a"), loop("a")),
    "outputs that are left out": model(*DROPOUTS),
}  # fmt: skip


@mark.parametrize("case", TWICE)
def test_name_that_is_defined_twice_is_refused_with_both(tmp_path, case):
    made, first, second = TWICE[case]
    with raises(checker.ValidationError, match=r"multiple times|not unique"):
        checker.check_model(made)
    with raises(ModelError, match=f"' is defined twice, by {first} and by {second}"):
        read(made, tmp_path)


@mark.parametrize("case", ONCE)
def test_name_may_hide_what_onnx_lets_it_hide(tmp_path, case):
    checker.check_model(ONCE[case])
    assert read(ONCE[case], tmp_path) == []
