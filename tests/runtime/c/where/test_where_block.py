"""Copies of operands that no kernel can read: all elements, in the order of memory."""

import numpy as np
import pytest


@pytest.mark.parametrize("row, col", [(100, 2), (2, 100), (-100, 2), (2, -100), (-2, 100)])
def test_elements_that_lie_near_are_copied_one_by_one(alone, row, col):
    """The second element of the row is copied over the second of the column, before it or after."""
    memory = np.zeros(1000, np.uint8)
    second_in_row = 500 + col
    second_in_column = 500 + row
    memory[[second_in_row, second_in_column]] = 1, 2
    start = memory.ctypes.data + 500
    alone.copy(start + row - col, row, col, start, row, col, 2, 2, 1)
    assert memory[500 + 2 * row - col] == (1 if abs(col) < abs(row) else 2)
