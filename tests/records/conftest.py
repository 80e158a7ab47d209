"""Records of three workloads."""

import pytest

from tests.support.tuning import BIG, ROWS, SMALL, make


@pytest.fixture(scope="session")
def entries():
    """Records of default configs."""
    return [make(workload) for workload in (BIG, SMALL, ROWS)]
