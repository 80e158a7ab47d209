"""The bounds of rows by which where() and the schedules of the CPU decide are the same."""

import ctypes

from te_select.levels import SHORT_ROW_BYTES
from te_select.schedules.cpu import config
from tests.support import c_half


def test_bounds_of_rows_are_those_of_the_schedules(tmp_path):
    half = ctypes.CDLL(str(c_half.build(tmp_path, "where_plan_test.c", [])))
    assert half.short_row() == SHORT_ROW_BYTES
    assert half.long_row() == config.LONG_ROW_BYTES
