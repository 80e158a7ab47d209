"""Every door into a library for CPUs selects as NumPy does, or refuses in words of its own."""

import pytest

from tests.support import oracle


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return oracle.library(tmp_path_factory.mktemp("doors"))


@pytest.mark.parametrize(
    ("door", "case"), oracle.pairs(oracle.DOORS, [*oracle.CASES, *oracle.WALKS])
)
def test_door_selects_as_numpy_or_refuses(library, door, case):
    oracle.same(case, door, library)
