"""where() of tensors under sanitizers, where a pointer may be null because nothing is there."""

from __future__ import annotations

import subprocess

import pytest
from tvm_ffi import libinfo

from te_select.backends.cpu import link
from te_select.backends.programs import c_compiler
from tests.support import c_programs
from tests.support.c_half import RUNTIME
from tests.support.machines import WITHOUT_PTRACE


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("where") / "program"
    includes = (RUNTIME, RUNTIME / "cpu", *libinfo.include_paths())
    command = (
        *(*c_compiler(), "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"),
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
        *(f"-I{path}" for path in includes),
        str(c_programs.SOURCES / "where_of_nothing.c"),
        *(str(RUNTIME / name) for name in link.FAMILY.sources),
        *("-pthread", "-ldl", "-o", str(path)),
    )
    subprocess.run(command, check=True)
    return path


@pytest.mark.parametrize(
    ("what", "kernel"),
    [("rank 0", 8 * 3 + 7), ("no elements", 0), ("no elements behind an offset", 0)],
)
def test_null_pointers_are_not_stepped_from(program, what, kernel):
    assert c_programs.output(program, what, **WITHOUT_PTRACE) == f"{kernel}\n"
