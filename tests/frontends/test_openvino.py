"""OpenVINO IR: the status, shapes and producer of every Select of a network."""

import sys

import pytest

from te_select import ModelError, ToolchainError, Workload
from tests.support.openvino_ir import layer, net, only, parameter, read, select

pytest.importorskip("defusedxml")


def test_select_is_read_with_its_place_and_producer(tmp_path):
    found = only(select("1,4", "2,4", ""), tmp_path)
    assert found.workload == Workload.openvino_select((1, 4), (2, 4), ())
    assert (found.place, found.op, found.name) == ("net#3", "Select-1", "select3")
    assert (found.status, found.cond_producer) == ("compiled", "graph input")


def test_numpy_mode_is_what_openvino_runs(tmp_path):
    found = only(select("5,4", "1,4", "4", auto_broadcast="numpy"), tmp_path)
    assert found.workload.auto_broadcast == "multidirectional"
    assert found.out_shape == (5, 4)


def test_none_wants_equal_shapes(tmp_path):
    found = only(select("?,4", "?,4", "?,4", auto_broadcast="none"), tmp_path)
    assert found.workload.auto_broadcast == "none"
    assert found.cond_shape == found.then_shape == found.else_shape
    with pytest.raises(ModelError, match="net#3"):
        read(select("4", "1,4", "4", auto_broadcast="none"), tmp_path)


@pytest.mark.parametrize("name", ["auto_broadcast__auto_broadcast_axis", "auto_broadcast_axis"])
def test_pdpd_has_an_axis(tmp_path, name):
    text = select("3", "2,3,4", "3,4", auto_broadcast="pdpd", **{name: "1"})
    found = only(text, tmp_path)
    assert found.workload == Workload.openvino_select((3,), (2, 3, 4), (3, 4), "float32", "pdpd", 1)


def test_open_dims_are_names_that_say_where_they_come_from(tmp_path):
    found = only(select("1..8,?", "", ""), tmp_path)
    assert found.status == "compiled"
    assert found.cond_shape == ("parameter0_0", "parameter0_1")
    assert found.dims["parameter0_0"] == "dim 0 of Parameter 'parameter0', 1..8"


def test_open_dims_of_two_parameters_are_not_taken_for_equal(tmp_path):
    assert only(select("?,4", "?,4", ""), tmp_path).status == "dispatched"


def test_rank_that_is_not_known_is_dispatched(tmp_path):
    found = only(select("...", "2", ""), tmp_path)
    assert (found.status, found.cond_shape, found.else_shape) == ("dispatched", None, ())


def test_missing_precisions_are_followed_along_the_edges(tmp_path):
    assert only(select("4", "4", "", precisions=False), tmp_path).dtype == "float32"


@pytest.mark.parametrize("precision", ["STRING", "I4", "U4", "NF4", "U1"])
def test_strings_and_parts_of_bytes_are_refused(tmp_path, precision):
    assert only(select("4", "4", "", precision), tmp_path).status == "refused"


def test_open_dim_of_a_layer_has_no_name(tmp_path):
    """Though IsNaN of a tensor is as large as the tensor."""
    layers = [
        parameter(0, "FP32", "?,4"),
        layer(1, "IsNaN", [("FP32", [-1, 4])], [("BOOL", [-1, 4])]),
        layer(2, "Const", outputs=[("FP32", [])], element_type="f32", shape="", offset="0"),
        layer(4, "Convert", [("FP32", [])], [("FP32", [])]),
        layer(
            3, "Select", [("BOOL", [-1, 4]), ("FP32", []), ("FP32", [-1, 4])], [("FP32", [-1, 4])]
        ),
    ]
    edges = [((0, 0), (1, 0)), ((1, 1), (3, 0)), ((2, 0), (4, 0)), ((4, 1), (3, 1))]
    found = only(net(layers, [*edges, ((0, 0), (3, 2))]), tmp_path)
    assert (found.status, found.cond_producer) == ("dispatched", "IsNaN")
    assert (found.cond_shape, found.else_shape) == (("?", 4), ("parameter0_0", 4))
    assert found.then_shape == ()  # made of scalars only, so it is one


def test_output_of_open_rank_is_no_scalar(tmp_path):
    layers = [
        parameter(0, "BOOL", "4"),
        parameter(1, "FP32", "?"),
        parameter(2, "I64", "?"),
        layer(4, "Reshape", [("FP32", [-1]), ("I64", [-1])], [("FP32", [])]),
        layer(3, "Select", [("BOOL", [4]), ("FP32", []), ("FP32", [])], [("FP32", [])]),
    ]
    edges = [((1, 0), (4, 0)), ((2, 0), (4, 1)), ((0, 0), (3, 0)), ((4, 2), (3, 1))]
    assert only(net(layers, [*edges, ((4, 2), (3, 2))]), tmp_path).status == "dispatched"


@pytest.mark.parametrize("between", [0, 1, 3])
def test_shape_is_followed_through_arithmetic_of_ints(tmp_path, between):
    """From a Select, by any number of layers, to where a shape is read."""
    vector = ("I64", [3])
    layers = [
        *(parameter(0, "BOOL", "3"), parameter(1, "I64", "3"), parameter(2, "FP32", "?")),
        layer(3, "Select", [("BOOL", [3]), vector, vector], [vector]),
        *(layer(10 + k, "Add", [vector, vector], [vector]) for k in range(between)),
        layer(4, "Reshape", [("FP32", [-1]), vector], [("FP32", [-1, -1, -1])]),
    ]
    edges = [((0, 0), (3, 0)), ((1, 0), (3, 1)), ((1, 0), (3, 2)), ((2, 0), (4, 0))]
    last = (3, 3)
    for k in range(between):
        edges += [(last, (10 + k, 0)), ((1, 0), (10 + k, 1))]
        last = (10 + k, 2)
    assert only(net(layers, [*edges, (last, (4, 1))]), tmp_path).status == "shape"


def test_arithmetic_of_shapes_is_not_built(tmp_path):
    layers = [
        parameter(0, "FP32", "?,1,4"),
        layer(1, "ShapeOf", [("FP32", [-1, 1, 4])], [("I64", [3])]),
        layer(2, "Const", outputs=[("I64", [3])], element_type="i64", shape="3", offset="0"),
        layer(4, "Equal", [("I64", [3]), ("I64", [3])], [("BOOL", [3])]),
        layer(3, "Select", [("BOOL", [3]), ("I64", [3]), ("I64", [3])], [("I64", [3])]),
        layer(5, "Broadcast", [("FP32", [-1, 1, 4]), ("I64", [3])], [("FP32", [-1, -1, -1])]),
    ]
    edges = [((0, 0), (1, 0)), ((1, 1), (4, 0)), ((2, 0), (4, 1)), ((0, 0), (5, 0))]
    edges += [((4, 2), (3, 0)), ((1, 1), (3, 1)), ((2, 0), (3, 2)), ((3, 3), (5, 1))]
    assert only(net(layers, edges), tmp_path).status == "shape"


def test_constants_are_folded(tmp_path):
    element = {0: "BOOL", 1: "FP32", 2: "FP32"}
    layers = [layer(i, "Const", outputs=[(p, [2])], shape="2") for i, p in element.items()]
    layers.append(layer(3, "Select", [(p, [2]) for p in element.values()], [("FP32", [2])]))
    found = only(net(layers, [((i, 0), (3, i)) for i in range(3)]), tmp_path)
    assert (found.status, found.cond_producer) == ("folded", "initializer")


def test_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "defusedxml", None)
    monkeypatch.setitem(sys.modules, "defusedxml.sax", None)
    with pytest.raises(ToolchainError, match=r"te-select\[models\]"):
        read(select("4", "4", ""), tmp_path)
