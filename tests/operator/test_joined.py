"""The shape to which others broadcast is NumPy's."""

import itertools

import numpy as np
import pytest

from te_select.operator.broadcast import joined


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shapes_join_as_numpy_says(count):
    small = [each for rank in range(3) for each in itertools.product((0, 1, 2, 3), repeat=rank)]
    for shapes in itertools.product(small, repeat=count):
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            expected = None
        assert joined(*shapes) == expected, shapes
