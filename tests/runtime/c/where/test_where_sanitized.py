"""where() of tensors under sanitizers, where a pointer may be null because nothing is there."""

import pytest

from tests.support import c_programs
from tests.support.machines import WITHOUT_PTRACE


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("where") / "program"
    return c_programs.sanitized("where_of_nothing.c", path, "address,undefined")


@pytest.mark.parametrize(
    ("what", "kernel"),
    [("rank 0", 8 * 3 + 7), ("no elements", 0), ("no elements behind an offset", 0)],
)
def test_null_pointers_are_not_stepped_from(program, what, kernel):
    assert c_programs.output(program, what, **WITHOUT_PTRACE) == f"{kernel}\n"
