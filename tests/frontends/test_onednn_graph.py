"""Graphs of oneDNN: the status, shapes and producer of every Select; and files that are refused."""

from pytest import mark, raises

from te_select import ModelError, Workload, read_model
from tests.frontends.told import check, check_refused
from tests.support.onednn_graph import OPEN, op, read, select, tensor


def made(kind, source, out):
    """An operation between two tensors, which are a number and a shape each."""
    return op(kind, [tensor(*source)], [tensor(*out)])


COMPARE = op("GreaterEqual", [tensor(7, [4]), tensor(8, [4])], [tensor(0, [4], "boolean")])
MATMUL = op("MatMul", [tensor(8, [2, 3]), tensor(9, [3, 4])], [tensor(1, [2, 4])])
DISPATCHED, REFUSED = {"status": "dispatched"}, {"status": "refused"}
NAMED = {"then_shape": ("t1_0", 4), "dims": {"t1_0": "dim 0 of tensor 1"}}
READ = {
    "all that a table needs": ([COMPARE, select([4], [2, 4], [])], {
        "workload": Workload.onednn_select((4,), (2, 4), ()), "place": "graph#1", "op": "Select",
        "name": "mask", "status": "compiled", "cond_producer": "GreaterEqual"}),
    "open shape": ([select([4], [OPEN], [])], DISPATCHED | {"then_shape": None}),
    "open dim": ([select([1, 1], [OPEN, 4], [])], NAMED | {"status": "compiled"}),
    "open dim of one name wherever it is met": (
        [made("SoftMax", (1, [OPEN, 4]), (8, [OPEN, 4])), select([1, 1], [OPEN, 4], [])], NAMED),
    "what is said of a tensor anywhere": (
        [MATMUL, select([4], [OPEN], [])], {"then_shape": (2, 4)}),
    "dim that is said where the Select reads it": (
        [made("SoftMax", (8, [2, 4]), (1, [OPEN, 4])), select([4], [2, 4], [])],
        {"status": "compiled", "then_shape": (2, 4)}),
    "output that is left open": (
        [made("SoftMax", (8, [2, 4]), (1, [OPEN])), select([4], [OPEN], [])],
        DISPATCHED | {"then_shape": None}),
    "dim of an output that is left open": (
        [made("SoftMax", (8, [2, 4]), (1, [OPEN, 4])), select([4], [OPEN, 4], [])],
        DISPATCHED | {"then_shape": ("?", 4), "dims": {}}),
    **{each: ([select([4], [4], [], dtype=each)], REFUSED) for each in ("s4", "u4", "f4_e2m1")},
    "type that is not said": ([select([4], [4], [], dtype="undef")], DISPATCHED),
    "no Select": ([],),
}  # fmt: skip


@mark.parametrize("case", READ)
def test_select_is_read_as_the_graph_says(tmp_path, case):
    ops, *expected = READ[case]
    check(read(ops, tmp_path), *expected)


@mark.parametrize(
    "mode, shapes", [("numpy", ([4], [2, 4], [])), ("none", ([2, 4], [2, 4], [2, 4]))]
)
def test_mode_is_the_rule_of_the_workload(tmp_path, mode, shapes):
    """oneDNN's numpy is the two-step one, and none wants equal shapes."""
    (found,) = read([select(*shapes, auto_broadcast=mode)], tmp_path)
    assert found.workload.auto_broadcast == mode


@mark.parametrize(
    "ops, said",
    [
        ([select([3], [4], [])], "do not broadcast"),
        ([select([5, 4], [4], [])], "cond"),
        ([select([4], [4], [], [5])], "the output of Select graph#0 is [5]"),
        ([select([4], [4], [], [1, 4])], "the output of Select graph#0 is [1,4]"),
        ([select([4], [4], [], [])], "the output of Select graph#0 is []"),
        ([select([4], [4], [], auto_broadcast="pdpd")], "expected one of none, numpy"),
        ([op("Select", [tensor(0, [4], "boolean")], [tensor(1, [4])])], "expected three and one"),
        ([{**select([4], [4], []), "outputs": []}], "0 outputs; expected three and one"),
        ([made("Abs", (1, [3]), (9, [3])), select([4], [4], [])], "tensor 1 is [3]"),
        ([made("Abs", (1, [4], "s8"), (9, [4])), select([4], [4], [])], "int8"),
        ([made("Abs", (1, [4]), (2, [4])), made("Abs", (2, [4]), (1, [4]))], "cycle"),
        ([made("Abs", (1, [4]), (2, [4]))] * 2, "is made by"),
        ([{"kind": 3}], "no operation"),
        ([op("Abs", [tensor(1, [-4])], [])], "expected sizes"),
        ([op("Abs", [tensor(1, [True])], [])], "expected sizes"),
        ([op("Abs", [tensor("x", [4])], [])], "id is 'x', expected a int"),
        ([{"kind": "Abs", "attrs": 7}], "attrs is 7, expected a dict"),
    ],
)  # fmt: skip
def test_graph_that_contradicts_itself_is_one_clear_line(tmp_path, ops, said):
    check_refused(read, ops, tmp_path, said)


@mark.parametrize("text", ["", "{", "[]", "{}", '{"graph": 3}', "[" * 100_000, "\xff", "NaN"])
def test_file_that_is_no_graph_is_one_clear_line(tmp_path, text):
    path = tmp_path / "graph.json"
    path.write_text(text, encoding="latin-1")
    with raises(ModelError, match="no oneDNN graph"):
        read_model(path)
