"""The library of the oracle's cases."""

import pytest

from tests.support.oracle import doors_of_cpu


@pytest.fixture(scope="session")
def oracle_library(tmp_path_factory):
    return doors_of_cpu.library(tmp_path_factory.mktemp("doors"))
