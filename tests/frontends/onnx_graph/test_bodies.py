import numpy as np
import pytest

from te_select import ModelError
from tests.support.models import model, read, tensor

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

from te_select.frontends.onnx_graph import flat  # noqa: E402

node = helper.make_node
COND = tensor("c", "bool", ["batch", 1])
X = tensor("x", "float32", ["batch", 4])
K = tensor("k", "bool", [])
TRIPS = tensor("trips", "int64", [])


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


def by_place(nodes):
    return {found.place: found for found in nodes}


def test_branches_of_if_see_the_tensors_around_them(tmp_path):
    out = [tensor("out", "float32", None)]
    then = graph([node("Where", ["c", "x", "y"], ["out"])], [], out)
    else_ = graph([node("Neg", ["x"], ["z"]), node("Where", ["c", "z", "x"], ["out"])], [], out)
    nodes = [
        node("Neg", ["x"], ["y"]),
        node("If", ["k"], ["both"], then_branch=then, else_branch=else_),
        node("Where", ["c", "both", "x"], ["end"]),
    ]
    found = by_place(read(model(nodes, [COND, X, K]), tmp_path))
    assert set(found) == {"graph/1:If.then_branch#0", "graph/1:If.else_branch#1", "graph#2"}
    for one in found.values():
        assert one.then_shape == ("batch", 4)
    assert found["graph/1:If.else_branch#1"].cond_producer == "graph input"
    assert found["graph#2"].cond_producer == "graph input"


def test_branches_that_differ_leave_a_size_open(tmp_path):
    out = [tensor("out", "float32", None)]
    then = graph([node("Identity", ["x"], ["out"])], [], out)
    else_ = graph([node("Concat", ["x", "x"], ["out"], axis=1)], [], out)
    nodes = [
        node("If", ["k"], ["both"], then_branch=then, else_branch=else_),
        node("Where", ["c", "both", "x"], ["end"]),
    ]
    found = by_place(read(model(nodes, [COND, X, K]), tmp_path))["graph#1"]
    assert (found.status, found.then_shape) == ("dispatched", ("batch", "?"))


def test_branch_that_cannot_run_is_no_error(tmp_path):
    """TorchScript exports both branches of a test of the rank, and one does not fit."""
    out = [tensor("out", "float32", None)]
    bad = graph([node("Where", ["m", "x", "x"], ["out"])], [], out)
    good = graph([node("Identity", ["x"], ["out"])], [], out)
    nodes = [node("If", ["k"], ["end"], then_branch=bad, else_branch=good)]
    found = by_place(read(model(nodes, [tensor("m", "bool", [3]), X, K]), tmp_path))
    assert found["graph/0:If.then_branch#0"].status == "dispatched"
    surely = [node("Where", ["m", "x", "x"], ["out"])]
    with pytest.raises(ModelError):
        read(model(surely, [tensor("m", "bool", [3]), X]), tmp_path)


def loop(body_nodes, state, outs=(), inputs=("trips", "k", "x"), results=("end",), on="goes_on"):
    body = graph(
        [node("Identity", ["going"], [on]), *body_nodes],
        [tensor("i", "int64", []), tensor("going", "bool", []), tensor("s", "float32", None)],
        [tensor(on, "bool", []), tensor(state, "float32", None), *outs],
    )
    return node("Loop", list(inputs), list(results), body=body)


def test_loop_inside_a_branch_that_cannot_run_is_no_error(tmp_path):
    """A loop is taken to run, but not where the branch around it does not."""
    where = node("Where", ["m", "s", "s"], ["t"])
    out = [tensor("end", "float32", None)]
    bad = graph([loop([where], "t", inputs=("trips", "k", "x"))], [], out)
    good = graph([node("Identity", ["x"], ["end"])], [], out)
    nodes = [node("If", ["k"], ["both"], then_branch=bad, else_branch=good)]
    inputs = [tensor("m", "bool", [3]), X, K, TRIPS]
    (found,) = read(model(nodes, inputs), tmp_path)
    assert found.status == "dispatched"
    assert found.place.startswith("graph/0:If.then_branch/0:Loop.body#")


def test_state_of_a_loop_is_not_known(tmp_path):
    """It may change from trip to trip."""
    nodes = [
        loop([node("Where", ["c", "s", "x"], ["t"])], "t"),
        node("Where", ["c", "end", "x"], ["o"]),
    ]
    inside, behind = read(model(nodes, [COND, X, K, TRIPS]), tmp_path)
    assert inside.place == "graph/0:Loop.body#1"
    assert (inside.cond_shape, inside.else_shape) == (("batch", 1), ("batch", 4))
    assert inside.then_shape is behind.then_shape is None
    assert (inside.dtype, inside.status) == ("float32", "dispatched")


def test_tensors_of_one_name_in_two_bodies_are_told_apart(tmp_path):
    """ONNX's inference would take the values of the first one for those of the second."""
    out = [tensor("out", "float32", None)]
    branches = {}
    for name, size in (("then_branch", 2), ("else_branch", 3)):
        nodes = [
            node("Constant", [], ["n"], value_ints=[size]),
            node("Constant", [], ["four"], value_ints=[4]),
            node("Concat", ["n", "four"], ["sizes"], axis=0),
            node("Reshape", ["z", "sizes"], ["y"]),
            node("Where", ["c", "y", "y"], ["out"]),
        ]
        branches[name] = graph(nodes, [], out)
    nodes = [node("If", ["k"], ["end"], **branches)]
    inputs = [tensor("z", "float32", ["n"]), tensor("c", "bool", [1, 1]), K]
    found = by_place(read(model(nodes, inputs), tmp_path))
    assert found["graph/0:If.then_branch#4"].then_shape == (2, 4)
    assert found["graph/0:If.else_branch#4"].then_shape == (3, 4)


def test_body_of_a_scan_sees_one_row(tmp_path):
    body = graph(
        [node("Where", ["m", "s", "row"], ["t"]), node("Identity", ["t"], ["u"])],
        [tensor("s", "float32", None), tensor("row", "float32", None)],
        [tensor("t", "float32", None), tensor("u", "float32", None)],
    )
    nodes = [
        node("Scan", ["first", "x"], ["end", "rows"], body=body, num_scan_inputs=1),
        node("Where", ["k", "rows", "x"], ["o"]),
    ]
    inputs = [tensor("m", "bool", [4]), tensor("first", "float32", [4]), X, K]
    inside, behind = read(model(nodes, inputs), tmp_path)
    assert (inside.place, inside.then_shape) == ("graph/0:Scan.body#0", (4,))
    assert behind.then_shape == ("batch", 4)


def test_scan_along_another_axis_has_its_length_of_rows(tmp_path):
    body = graph(
        [node("Neg", ["row"], ["u"])],
        [tensor("row", "float32", None)],
        [tensor("u", "float32", None)],
    )
    scan = node("Scan", ["x"], ["rows"], body=body, num_scan_inputs=1, scan_input_axes=[1])
    nodes = [scan, node("Where", ["k", "rows", "rows"], ["o"])]
    (behind,) = read(model(nodes, [X, K]), tmp_path)
    assert behind.then_shape == (4, "batch")


def test_what_an_if_chooses_at_the_call_is_not_constant(tmp_path):
    """Though it is one of two constants."""
    branches = {
        f"{branch}_branch": graph(
            [node("Constant", [], [branch], value_floats=[number, number])],
            [],
            [tensor(branch, "float32", None)],
        )
        for branch, number in (("then", 1.0), ("else", 2.0))
    }
    flags = onnx.numpy_helper.from_array(np.ones(2, bool), "flags")
    nodes = [node("If", ["k"], ["v"], **branches), node("Where", ["flags", "v", "v"], ["o"])]
    (found,) = read(model(nodes, [K], initializer=[flags]), tmp_path)
    assert found.status == "compiled"
    fixed = onnx.numpy_helper.from_array(np.array(True), "k")
    (found,) = read(model(nodes, [], initializer=[flags, fixed]), tmp_path)
    assert found.status == "folded"


def function(name, nodes, inputs=("m", "v"), outputs=("o",), **parts):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, inputs, outputs, nodes, imports, **parts)


MASKED = function("masked", [node("Where", ["m", "v", "v"], ["o"])])
OPSETS = {"": 17, "local": 1}


def test_local_function_sees_what_it_is_called_with(tmp_path):
    nodes = [
        node("masked", ["c", "x"], ["y"], domain="local"),
        node("Where", ["c", "y", "x"], ["o"]),
    ]
    found = by_place(read(model(nodes, [COND, X], functions=[MASKED], opsets=OPSETS), tmp_path))
    assert list(found) == ["graph#1", "function:local::masked#0"]
    assert found["function:local::masked#0"].workload == found["graph#1"].workload
    assert found["function:local::masked#0"].cond_producer == "function input"


def test_function_called_with_two_shapes_is_dispatched(tmp_path):
    nodes = [
        node("masked", ["c", "x"], ["y"], domain="local"),
        node("masked", ["c5", "x5"], ["z"], domain="local"),
    ]
    inputs = [COND, X, tensor("c5", "bool", ["batch", 1]), tensor("x5", "float32", ["batch", 5])]
    (found,) = read(model(nodes, inputs, functions=[MASKED], opsets=OPSETS), tmp_path)
    assert (found.cond_shape, found.then_shape) == (("batch", 1), ("batch", "?"))
    assert found.status == "dispatched"


def test_function_of_another_opset_is_dispatched(tmp_path):
    """ONNX's inference knows one version of its operators in a model."""
    imports = [helper.make_opsetid("", 16)]
    where = node("Where", ["m", "v", "v"], ["o"])
    old = helper.make_function("local", "masked", ["m", "v"], ["o"], [where], imports)
    nodes = [node("masked", ["c", "x"], ["y"], domain="local")]
    (found,) = read(model(nodes, [COND, X], functions=[old], opsets=OPSETS), tmp_path)
    assert (found.status, found.op, found.then_shape) == ("compiled", "Where-16", ("batch", 4))
    nodes.append(node("Where", ["c", "y", "y"], ["z"]))
    behind = by_place(read(model(nodes, [COND, X], functions=[old], opsets=OPSETS), tmp_path))
    assert behind["graph#1"].status == "dispatched"


def test_function_that_is_called_with_two_ranks_is_dispatched(tmp_path):
    nodes = [
        node("masked", ["c", "x"], ["y"], domain="local"),
        node("masked", ["k", "x"], ["z"], domain="local"),
    ]
    (found,) = read(model(nodes, [COND, X, K], functions=[MASKED], opsets=OPSETS), tmp_path)
    assert (found.status, found.cond_shape) == ("dispatched", None)


def test_function_that_is_never_called_is_dispatched(tmp_path):
    made = model([node("Neg", ["x"], ["o"])], [X], functions=[MASKED], opsets=OPSETS)
    (found,) = read(made, tmp_path)
    assert found.status == "dispatched"


def test_attribute_of_the_call_is_used_in_the_function(tmp_path):
    inner = node("Concat", ["v", "v"], ["w"])
    reference = inner.attribute.add(name="axis", ref_attr_name="along")
    reference.type = onnx.AttributeProto.INT
    both = function("both", [inner, node("Where", ["m", "w", "w"], ["o"])], attributes=["along"])
    nodes = [node("both", ["c", "x"], ["y"], domain="local", along=1)]
    (found,) = read(model(nodes, [COND, X], functions=[both], opsets=OPSETS), tmp_path)
    assert found.then_shape == ("batch", 8)


def test_function_that_calls_itself_is_an_error(tmp_path):
    itself = function("again", [node("again", ["m", "v"], ["o"], domain="local")])
    made = model(
        [node("again", ["c", "x"], ["y"], domain="local")],
        [COND, X],
        functions=[itself],
        opsets=OPSETS,
    )
    with pytest.raises(ModelError, match="calls itself"):
        read(made, tmp_path)


def test_functions_called_a_billion_times_are_refused(tmp_path, monkeypatch):
    """Thirty functions, each of which calls the one before twice."""
    monkeypatch.setattr(flat, "MOST_STEPS", 1000)
    functions = [function("f0", MASKED.node)]
    for i in range(1, 31):
        calls = [
            node(f"f{i - 1}", ["m", "v"], ["a"], domain="local"),
            node(f"f{i - 1}", ["m", "a"], ["o"], domain="local"),
        ]
        functions.append(function(f"f{i}", calls))
    nodes = [node("f30", ["c", "x"], ["y"], domain="local")]
    (found,) = read(model(nodes, [COND, X], functions=functions, opsets=OPSETS), tmp_path)
    assert found.place == "function:local::f0#0"
    assert found.status == "dispatched"


def nested(depth, nodes):
    for level in range(depth):
        nodes = [loop(nodes, "t", results=("t",), on=f"goes_on_{level}")]
    return nodes


def test_bodies_in_bodies_have_a_depth_that_onnx_sees(tmp_path):
    where = [node("Where", ["c", "s", "s"], ["t"])]
    (found,) = read(model(nested(25, where), [COND, X, K, TRIPS]), tmp_path)
    assert (found.cond_shape, found.status) == (("batch", 1), "dispatched")
    assert found.place.count("Loop.body") == 25
    inside = function("deep", nested(16, where), ("c", "x", "k", "trips"), ("t",))
    call = node("deep", ["c", "x", "k", "trips"], ["t"], domain="local")
    made = model(nested(16, [call]), [COND, X, K, TRIPS], functions=[inside], opsets=OPSETS)
    (found,) = read(made, tmp_path)
    assert (found.cond_shape, found.status) == (None, "dispatched")


def test_functions_in_functions_have_a_depth_that_onnx_sees(tmp_path):
    functions = [function("f0", MASKED.node)]
    for i in range(1, 2000):
        functions.append(function(f"f{i}", [node(f"f{i - 1}", ["m", "v"], ["o"], domain="local")]))
    nodes = [
        node("f1999", ["c", "x"], ["y"], domain="local"),
        node("Where", ["c", "x", "x"], ["z"]),
    ]
    outer, inner = read(model(nodes, [COND, X], functions=functions, opsets=OPSETS), tmp_path)
    assert (outer.status, inner.status) == ("compiled", "dispatched")
