"""The argument out: any strides, an input itself, an overlap with an input, or refused."""

from unittest import mock

import numpy as np
import pytest

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


@pytest.mark.parametrize(("door", "case"), pairs({"where()": DOOR}, COPIED))
def test_out_is_written_as_if_from_copies(door, case):
    same(case, door)


@pytest.mark.parametrize("kind", [np.ndarray, np.memmap])
def test_operands_of_two_types_are_selected_in_out(kind, monkeypatch):
    """If that overlaps none of them, or is the memory of one with items of the same size."""
    cond = np.arange(40_000) % 2 == 0
    x = np.arange(40_000)
    memory = np.arange(120_000.0)
    y = memory[:40_000]
    copied = mock.Mock(wraps=numpy_rules._into)
    monkeypatch.setattr(numpy_rules, "_into", copied)
    outs = memory[40_000::2], memory[20_000:60_000], y, x.view("f8")
    for out in (each.view(kind) for each in outs):
        overlaps = out.ctypes.data == memory[20_000:].ctypes.data
        assert ("then copied to out" in where.explain(cond, x, y, out).steps) == overlaps
        expected = np.where(cond, x, y)
        assert where(cond, x, y, out=out) is out and (out == expected).all()
        assert copied.call_count == overlaps
        copied.reset_mock()


@pytest.mark.parametrize(("out", "error", "said"), REFUSED)
@pytest.mark.parametrize("function", [where, where.explain, te_select.select])
def test_out_of_another_kind_shape_or_type_is_refused(function, out, error, said):
    x = np.ones(2)
    y = 2.0
    given = ([COND], [x], y) if function is te_select.select else (COND, x, y)
    with pytest.raises(error, match=said):
        function(*given, out=out)
    assert not np.any(out) or out == 1.0


@pytest.mark.parametrize("types", ["BBB", "bhh", "Bee", "hdd"])  # of x, y and out
@pytest.mark.parametrize("seed", range(20))
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
