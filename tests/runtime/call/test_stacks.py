"""Threads with small stacks: no function of the C half needs much of one."""

import os

from te_select import Workload
from te_select.runtime.artifact.manifest import c_name
from tests.support import c_programs

# The least of a thread of Python, or of the system: 128 KB on 64-bit Arm.
SMALL = max(32 << 10, os.sysconf("SC_THREAD_STACK_MIN"))


def test_kernel_is_loaded_and_called_on_a_small_stack(tmp_path):
    """The first large call starts the pool."""
    kernel = c_programs.export(tmp_path, Workload(("n",), ("n",), ("n",)))
    program = kernel.compile("small_stack.c", "small_stack")
    name = c_name(kernel.workload)
    assert c_programs.output(program, "./mask.so", name, str(SMALL)) == "\n1\n"
