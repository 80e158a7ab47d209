"""The family's function for a guessed out."""

import numpy as np
import pytest

from te_select.functional.where.kernels import library
from tests.support.where_calls import exported


@pytest.mark.parametrize(
    ("shapes", "fits"),
    [
        (((6, 8), (6, 8), (6, 8)), True),
        (((8,), (6, 8), ()), True),
        (((6, 1), (1, 8), (8,)), True),
        (((1, 8), (8,), (1,)), False),  # they do not broadcast to so many rows
        (((6, 8), (6, 9), (6, 8)), False),
        (((1, 6, 8), (6, 8), (6, 8)), False),
    ],
)
def test_guessed_out_is_written_if_it_is_the_result(shapes, fits):
    assert library.fetch("w4")
    compact = exported("te_select_where_compact")
    rng = np.random.default_rng(0)
    cond = rng.random(shapes[0]) < 0.5
    x, y = (rng.random(shape, np.float32) for shape in shapes[1:])
    out = np.zeros((6, 8), np.float32)
    assert (compact(cond, x, y, out) >= 0) == fits
    assert np.array_equal(out, np.where(cond, x, y)) if fits else not out.any()


def test_guess_is_refused_where_an_operand_is_not_in_c_order():
    assert library.fetch("w4")
    compact = exported("te_select_where_compact")
    cond, x, out = np.ones((6, 6), bool), np.ones((6, 6), np.float32), np.zeros((6, 6), np.float32)
    for operands in ((cond.T, x, x, out), (cond, x[::-1], x, out), (cond, x, x, out.T)):
        assert compact(*operands) < 0 and not out.any()
    assert compact(cond[:, :1], x, 2.0, out) < 0
    assert compact(cond[:, :1].copy(), x, 2.0, out) >= 0 and (out == 1).all()
    assert compact(cond, x, x) < 0 and compact() < 0
