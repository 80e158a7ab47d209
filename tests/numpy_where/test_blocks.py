"""Selects in blocks of the result."""

from unittest import mock

import numpy as np
import pytest

import te_select.numpy_where
from te_select.numpy_where import blocks

C_ORDER = np.empty((300, 700))


@pytest.mark.parametrize("result", [C_ORDER, C_ORDER.T, C_ORDER[::-1], C_ORDER[None]])
def test_blocks_lie_along_the_memory_of_the_result(result, monkeypatch):
    seen = mock.Mock(side_effect=lambda _given, out: out.size)
    monkeypatch.setattr(blocks, "_in_place", seen)
    sizes = blocks.select([(np.array(True), np.ones(1))], np.ones(1), result, 4096)
    assert sum(sizes) == result.size and max(sizes) <= 4096
    starts = [abs(each.args[1].ctypes.data - result.ctypes.data) for each in seen.mock_calls]
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    ("x", "y", "in_out"),
    [("i4", "f8", "x"), ("f8", "i4", "y"), ("i4", "f4", "y"), ("f8", "f8", "")],
)
def test_one_side_of_another_type_is_converted_in_the_result(x, y, in_out, monkeypatch):
    called = mock.Mock()
    monkeypatch.setattr(te_select.numpy_where, "where", called)
    blocks.select([(np.ones(9), np.ones(9, x))], np.ones(9, y), np.zeros(9), 9)
    (cond, *sides), out = called.call_args.args, called.call_args.kwargs["out"]
    assert {cond.dtype.name, sides[0].dtype.name, sides[1].dtype.name} == {"bool", "float64"}
    assert "".join(name for name, each in zip("xy", sides, strict=True) if each is out) == in_out
