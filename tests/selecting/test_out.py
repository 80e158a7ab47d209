"""The argument out: any strides, an input itself, an overlap with an input, or refused."""

from unittest.mock import Mock

import numpy as np
from pytest import mark, raises

import te_select
from te_select.selecting import numpy_rules
from tests.selecting.table import COND, REFUSED
from tests.support.oracle.cases import CASES, WALKS
from tests.support.oracle.comparison import NAMES, Door, pairs, same

where = te_select.where


DOOR = Door(
    lambda _library, _workload, given: where(
        *(given[name] for name in NAMES[:3]), out=given["out"]
    ),
    allocates=True,
    any_shapes=True,
)
"""It copies what the others refuse."""
COPIED = [case for case in [*CASES, *WALKS] if case.oddity in ("", "overlap", "itself")]


@mark.parametrize("door, case", pairs({"where()": DOOR}, COPIED))
def test_out_is_written_as_if_from_copies(door, case):
    same(case, door)


@mark.parametrize("kind", [np.ndarray, np.memmap])
def test_operands_of_two_types_are_selected_in_out(kind, monkeypatch):
    """If that overlaps none of them, or is the memory of one with items of the same size."""
    cond = np.arange(40_000) % 2 == 0
    x = np.arange(40_000)
    memory = np.arange(120_000.0)
    y = memory[:40_000]
    copied = Mock(wraps=numpy_rules.copied_to)
    monkeypatch.setattr("te_select.selecting.numpy_rules.copied_to", copied)
    outs = memory[40_000::2], memory[20_000:60_000], y, x.view("f8")
    for out in (each.view(kind) for each in outs):
        overlaps = out.ctypes.data == memory[20_000:].ctypes.data
        assert ("then copied to out" in where.explain(cond, x, y, out).steps) == overlaps
        expected = np.where(cond, x, y)
        assert where(cond, x, y, out=out) is out and (out == expected).all()
        assert copied.call_count == overlaps
        copied.reset_mock()


@mark.parametrize("dtype", ["f8", "i8"])  # that of x; out has float64
@mark.parametrize("place", [np.s_[1:], np.s_[:-1, ::-1], np.s_[-2::-1]])
def test_out_over_rows_of_an_operand_is_as_if_copied(dtype, place):
    """Of 1 MB, which is more than a block."""
    memory = np.arange(301 * 400).astype(dtype).reshape(301, 400)
    cond = np.arange(400) % 3 == 0
    given = cond, memory[:-1], np.ones(400)
    expected = np.where(*given)
    out = memory.view("f8")[place]
    assert where(*given, out=out) is out and out.tobytes() == expected.tobytes()


@mark.parametrize("out, error, said", REFUSED)
@mark.parametrize("function", [where, where.explain, te_select.select])
def test_out_of_another_kind_shape_or_type_is_refused(function, out, error, said):
    x = np.ones(2)
    y = 2.0
    given = ([COND], [x], y) if function is te_select.select else (COND, x, y)
    with raises(error, match=said):
        function(*given, out=out)
    assert not np.any(out) or out == 1.0


def test_out_of_an_equal_type_is_written_in_place(monkeypatch):
    monkeypatch.setattr(numpy_rules, "copied_to", None)  # which makes a temporary array
    x = np.zeros(2, np.dtype("M8[s]"))
    for dtype in (np.dtype("M8[s]"), np.dtype("<M8[s]")):
        out = np.ones(2, dtype)
        assert where(COND, x, x, out=out) is out and (out == x).all()


@mark.parametrize("types", ["BBB", "bhh", "Bee", "hdd"])  # of x, y and out
@mark.parametrize("seed", range(20))
def test_any_views_of_one_memory_are_as_if_copied(seed, types):
    """But for an out whose own elements lie on each other."""
    rng = np.random.default_rng(seed)
    memory = rng.integers(0, 256, 400).astype(np.uint8)
    shape = tuple(int(n) for n in rng.integers(1, 4, 2))

    def view(dtype):
        strides = [int(step) for step in rng.integers(-12, 13, 2)]
        return np.ndarray(shape, dtype, memory, 200 + int(rng.integers(0, 9)), strides)

    for _ in range(50):
        x, y, out = map(view, types)
        y = out if rng.random() < 0.3 else y
        cond = rng.random(shape) < 0.5 if rng.random() < 0.7 else view("B")
        expected = np.where(cond, x, y)
        found = where(cond, x, y, out=out)
        firsts = np.indices(shape).T @ out.strides
        places = {first + byte for first in firsts.flat for byte in range(out.itemsize)}
        if len(places) == out.nbytes:
            assert found.tobytes() == expected.tobytes()
