"""Graphs of oneDNN: the status, shapes and producer of every Select."""

import pytest

from te_select import ModelError, Workload, read_model
from tests.support.onednn_graph import OPEN, only, op, read, select, tensor


def test_select_is_read_with_its_place_and_producer(tmp_path):
    compare = op("GreaterEqual", [tensor(7, [4]), tensor(8, [4])], [tensor(0, [4], "boolean")])
    found = only([compare, select([4], [2, 4], [])], tmp_path)
    assert found.workload == Workload.onednn_select((4,), (2, 4), ())
    assert (found.place, found.op, found.name) == ("graph#1", "Select", "mask")
    assert (found.status, found.cond_producer) == ("compiled", "GreaterEqual")


@pytest.mark.parametrize(
    ("mode", "shapes"), [("numpy", ([4], [2, 4], [])), ("none", ([2, 4], [2, 4], [2, 4]))]
)
def test_mode_is_the_rule_of_the_workload(tmp_path, mode, shapes):
    """oneDNN's numpy is the two-step one, and none wants equal shapes."""
    found = only([select(*shapes, auto_broadcast=mode)], tmp_path)
    assert found.workload.auto_broadcast == mode


def test_open_shape_is_an_open_rank(tmp_path):
    found = only([select([4], [OPEN], [])], tmp_path)
    assert (found.status, found.then_shape) == ("dispatched", None)


def test_open_dim_is_a_name(tmp_path):
    found = only([select([1, 1], [OPEN, 4], [])], tmp_path)
    assert (found.status, found.then_shape) == ("compiled", ("t1_0", 4))
    assert found.dims == {"t1_0": "dim 0 of tensor 1"}


def test_open_dim_of_a_tensor_has_one_name_wherever_it_is_met(tmp_path):
    also = op("SoftMax", [tensor(1, [OPEN, 4])], [tensor(8, [OPEN, 4])])
    found = only([also, select([1, 1], [OPEN, 4], [])], tmp_path)
    assert (found.then_shape, found.dims) == (("t1_0", 4), {"t1_0": "dim 0 of tensor 1"})


def test_tensor_is_known_by_what_the_file_says_of_it_anywhere(tmp_path):
    made = op("MatMul", [tensor(8, [2, 3]), tensor(9, [3, 4])], [tensor(1, [2, 4])])
    found = only([made, select([4], [OPEN], [])], tmp_path)
    assert found.then_shape == (2, 4)


def test_output_that_the_file_leaves_open_is_not_known(tmp_path):
    made = op("SoftMax", [tensor(8, [2, 4])], [tensor(1, [OPEN])])
    found = only([made, select([4], [OPEN], [])], tmp_path)
    assert (found.status, found.then_shape) == ("dispatched", None)
    made = op("SoftMax", [tensor(8, [2, 4])], [tensor(1, [OPEN, 4])])
    found = only([made, select([4], [OPEN, 4], [])], tmp_path)
    assert (found.status, found.then_shape, found.dims) == ("dispatched", ("?", 4), {})


@pytest.mark.parametrize("dtype", ["s4", "u4", "f4_e2m1"])
def test_parts_of_bytes_are_refused(tmp_path, dtype):
    assert only([select([4], [4], [], dtype=dtype)], tmp_path).status == "refused"


def test_type_that_is_not_said_is_dispatched(tmp_path):
    assert only([select([4], [4], [], dtype="undef")], tmp_path).status == "dispatched"


def test_file_without_a_select_has_no_nodes(tmp_path):
    assert read([], tmp_path) == []


# Bad input


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        ([select([3], [4], [])], "do not broadcast"),
        ([select([5, 4], [4], [])], "cond"),
        ([select([4], [4], [], [5])], "the output of Select graph#0 is [5]"),
        ([select([4], [4], [], [1, 4])], "the output of Select graph#0 is [1, 4]"),
        ([select([4], [4], [], [])], "the output of Select graph#0 is []"),
        ([select([4], [4], [], auto_broadcast="pdpd")], "expected none or numpy"),
        ([op("Select", [tensor(0, [4], "boolean")], [tensor(1, [4])])], "expected three and one"),
        ([op("Abs", [tensor(1, [3])], [tensor(9, [3])]), select([4], [4], [])], "tensor 1 is [3]"),
        ([op("Abs", [tensor(1, [4], "s8")], [tensor(9, [4])]), select([4], [4], [])], "int8"),
        (
            [
                op("Abs", [tensor(1, [4])], [tensor(2, [4])]),
                op("Abs", [tensor(2, [4])], [tensor(1, [4])]),
            ],
            "cycle",
        ),
        ([op("Abs", [tensor(1, [4])], [tensor(2, [4])])] * 2, "is made by"),
        ([{"kind": 3}], "no operation"),
        ([op("Abs", [tensor(1, [-4])], [])], "expected tensors"),
        ([op("Abs", [tensor(1, [True])], [])], "expected tensors"),
        ([op("Abs", [tensor("x", [4])], [])], "expected tensors"),
        ([{"kind": "Abs", "attrs": 7}], "expected an object"),
    ],
)  # fmt: skip
def test_graph_that_contradicts_itself_is_one_clear_line(tmp_path, ops, said):
    with pytest.raises(ModelError) as caught:
        read(ops, tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"graph": 3}', "[" * 100_000, "\xff", "NaN"]
)
def test_file_that_is_no_graph_is_one_clear_line(tmp_path, text):
    path = tmp_path / "graph.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ModelError, match="no oneDNN graph"):
        read_model(path)
