"""The shape to which others broadcast is NumPy's."""

import random

import numpy as np
import pytest

from te_select.operator.broadcast import joined


@pytest.mark.parametrize("seed", range(10))
def test_any_shapes_join_as_numpy_says(seed):
    draw = random.Random(seed)
    for _ in range(300):
        full = [draw.choice((0, 1, 2, 3)) for _ in range(draw.randrange(5))]
        shapes = []
        for _ in range(draw.randrange(1, 4)):
            kept = full[draw.randrange(len(full) + 1) :] if draw.random() < 0.5 else full
            shapes.append(tuple(draw.choice((n, n, n, 1, 2)) for n in kept))
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            expected = None
        assert joined(*shapes) == expected, shapes
