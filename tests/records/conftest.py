"""Records of three workloads."""

import pytest

from tests.support.tuning_fakes import BIG, ROWS, SMALL
from tests.support.tuning_records import make


@pytest.fixture(scope="session")
def entries():
    """Records of default configs."""
    return [make(workload) for workload in (BIG, SMALL, ROWS)]
