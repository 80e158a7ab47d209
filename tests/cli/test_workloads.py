"""Shapes as they are written on the command line."""

from pytest import mark, raises

from te_select import BroadcastError, Workload
from te_select.cli.workloads import parse_shape


@mark.parametrize(
    "text, shape",
    [
        ("", ()),
        (" ", ()),
        ("4", (4,)),
        ("1, batch,0", (1, "batch", 0)),
        ("_a,007", ("_a", 7)),
        ("[4, 1]", (4, 1)),
        ("[]", ()),
    ],
)
def test_shapes_are_comma_lists(text, shape):
    assert parse_shape(text) == shape


@mark.parametrize("text", ["-1", "1.5", "1 2", ",", "1,", "2x", "[1", "1]", "[[1]]", "٣"])
def test_malformed_shapes_are_refused(text):
    with raises(BroadcastError, match=r"is not a name \(letters, digits, _\), and no int"):
        Workload(parse_shape(text), (), ())
