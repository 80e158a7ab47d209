"""A plugin of pytest: numpy.where is te_select.where."""

import numpy as np

import te_select

np.where = te_select.where


def pytest_unconfigure():
    """Say how many calls there were."""
    stats = te_select.where.stats()
    print(f"te_select.where: {stats.calls + sum(stats.left.values())} calls")
