"""All tests of where() share one cache."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(family):
    """The kernels of `family`, instead of an empty cache for each test."""
