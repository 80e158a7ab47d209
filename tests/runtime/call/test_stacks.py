"""Threads with small stacks: no function of the C half needs much of one."""

import os
import sysconfig

import numpy as np
import pytest
from tvm_ffi import libinfo

from te_select import Workload
from te_select.backends.programs import c_compiler
from te_select.runtime.artifact.manifest import c_name
from tests.support import c_programs
from tests.support.c_half import RUNTIME
from tests.support.programs import output

SOURCES = sorted(str(path.relative_to(RUNTIME)) for path in RUNTIME.rglob("*.c"))
FOLDERS = (RUNTIME, RUNTIME / "cpu", RUNTIME / "cuda", RUNTIME / "extension")
# The least of a thread of Python, or of the system: 128 KB on 64-bit Arm.
SMALL = max(32 << 10, os.sysconf("SC_THREAD_STACK_MIN"))


@pytest.mark.parametrize("source", SOURCES)
def test_no_frame_is_larger_than_8_kb(tmp_path, source):
    includes = (*FOLDERS, *libinfo.include_paths(), np.get_include(), sysconfig.get_path("include"))
    limits = ("-Wframe-larger-than=8192", "-Wvla", "-Walloca")
    command = (
        *(*c_compiler(), "-std=gnu11", "-O2", "-fPIC", "-Werror", *limits),
        *(f"-I{path}" for path in includes),
        *("-c", str(RUNTIME / source), "-o", str(tmp_path / "object.o")),
    )
    output(*command)


def test_kernel_is_loaded_and_called_on_a_small_stack(tmp_path):
    """The first large call starts the pool."""
    kernel = c_programs.export(tmp_path, Workload(("n",), ("n",), ("n",)))
    program = kernel.compile("small_stack.c", "small_stack")
    name = c_name(kernel.workload)
    assert c_programs.output(program, "./mask.so", name, str(SMALL)) == "\n1\n"
