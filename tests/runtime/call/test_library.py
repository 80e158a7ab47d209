"""A library that was built for a model: its kernels by the names and places of the nodes."""

from pathlib import Path

from pytest import mark, raises

from te_select.operator.family import FUNCTION
from te_select.runtime.artifact.manifest import NodeRecord
from te_select.runtime.call.loading import Library

KERNELS = {"select_a": object(), "select_b": object()}


def node(name, place, symbol, status="compiled"):
    reason = "" if status == "compiled" else f"why {place} is {status}"
    return NodeRecord(place, name, "Where-16", status, reason, symbol)


LIBRARY = Library(
    Path("model.so"),
    KERNELS,
    tuple,
    [
        node("attn_where", "graph#0", "select_a"),
        node("", "graph#1", "select_b"),
        node("twice", "graph#2", "select_b"),
        node("twice", "graph/3:If.then_branch#0", "select_b"),
        node("differs", "graph#4", "select_a"),
        node("differs", "graph#5", None, "folded"),
        node("late", "graph#6", FUNCTION, "dispatched"),
        node("constant", "graph#7", None, "folded"),
        node("select_b", "graph#8", "select_a"),
        node("graph#1", "graph#9", "select_a"),
        node("a\n\x1b[31m", "graph\n#10", None, "refused"),
    ],
)


@mark.parametrize(
    "name, kernel",
    [
        ("select_a", "select_a"),
        ("graph#1", "select_b"),  # a place comes before a name
        ("twice", "select_b"),
        ("graph/3:If.then_branch#0", "select_b"),
        ("select_b", "select_b"),  # a workload's name comes before a node's
    ],
)
def test_kernel_is_found_by_name_and_place_of_a_node(name, kernel):
    assert LIBRARY[name] is KERNELS[kernel]
    assert LIBRARY.get(name) is KERNELS[kernel]


@mark.parametrize(
    "name, said",
    [
        ("differs", "is the name of 2 nodes that differ in kernel; expected a place: graph#4, gra"),
        ("graph#5", "has no kernel of its own, its status is folded: why graph#5 is folded"),
        ("late", "its status is dispatched: why graph#6 is dispatched; te_select.where.use takes"),
        ("attn_were", "is none of the 2 kernels of model.so; expected one such as attn_where"),
        ("foo", "'foo' is none of the 2 kernels of model.so; expected one such as select_a"),
        ("a\n\x1b[31m", r"its status is refused: why graph\n#10 is refused"),
    ],
)
def test_name_without_one_kernel_is_a_key_error_that_says_why(name, said):
    with raises(KeyError) as caught:
        LIBRARY[name]
    assert said in caught.value.args[0]
    assert "\n" not in caught.value.args[0] and "\x1b" not in caught.value.args[0]
    assert LIBRARY.get(name) is None


def test_in_iteration_and_len_know_workloads_only():
    assert list(LIBRARY) == list(KERNELS)
    assert len(LIBRARY) == 2
    assert "attn_where" not in LIBRARY and "graph#0" not in LIBRARY and "select_a" in LIBRARY
