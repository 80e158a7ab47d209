"""A kernel that computes nothing and reports the arguments of the host half."""

import time
from ctypes import CDLL, Structure, c_int64
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tvm_ffi

from te_select import Workload
from te_select.backends.c_compiler import link_stub
from te_select.backends.cpu import link
from te_select.runtime.call.cpu.decisions import Decisions
from te_select.schedules.cpu.span import FLAGS
from tests.support import new_folder
from tests.support.runtime_standin import compile_c, manifest

PROBE = Path(__file__).parent / "c" / "cpu_probe.c"
COUNTING = """
extern __attribute__((visibility("default"))) long __tvm_ffi_fences;
#define __builtin_ia32_sfence() __atomic_add_fetch(&__tvm_ffi_fences, 1, __ATOMIC_SEQ_CST)
"""


class Plan(NamedTuple):
    """How many threads a call will have, and whether it stores past the cache and looks at cond."""

    threads: int
    streams: bool
    looks: bool


class Seen(Structure):
    """What the last call saw.

    Set ``fails`` to the task that shall fail, counted from 1, and ``meet`` to 1 where every task
    shall have a thread of its own.
    """

    _fields_ = tuple((name, c_int64) for name in ("flags", "tasks", "ran", "fails", "meet"))

    def has(self, flag):
        """Whether the kernel was called with a flag."""
        return bool(self.flags & FLAGS[flag])


def build(folder):
    """Compile the kernel into a folder."""
    (folder / "counting.h").write_text(COUNTING)
    compile_c(PROBE, folder / "probe.o", "-c")


class Probe:
    """A library with one kernel, of ``b`` rows of ``a`` floats, that reports its arguments.

    Parameters
    ----------
    folder
        Where `build` has compiled the kernel.
    how
        Of `te_select.runtime.call.cpu.decisions.Decisions`.
    """

    def __init__(
        self,
        folder,
        **how,
    ):
        path = new_folder() / "probe.so"
        shape = ("b", "a")
        workload = Workload(shape, shape, shape)
        version = link.Version("te_select_kernel_0", Decisions(**how))
        stub = link.stub_source({workload: [version]}, {"x86-64": ()})
        options = (*link.CPU.options, "-include", str(folder / "counting.h"))
        half = replace(link.CPU, options=options)
        link_stub(stub, [folder / "probe.o"], half, manifest([workload]), path)
        module = tvm_ffi.load_module(str(path))
        self.call = module.get_function(workload.name)
        self._plan = module.get_function("te_select_plan")
        self._numbers = version.decisions.numbers
        image = CDLL(str(path))
        self.seen = Seen.in_dll(image, "__tvm_ffi_seen")
        self.fences = c_int64.in_dll(image, "__tvm_ffi_fences")

    def __call__(self, b, a=1):
        """A call that moves 13 bytes an element, 4 of them in out."""
        arrays = [np.ones((b, a), bool), *(np.zeros((b, a), "f4") for _ in range(3))]
        self.fences.value = self.seen.ran = 0
        self.call(*arrays)
        return arrays

    def plan(self, b, a=1):
        """What is said of a call beforehand."""
        count = a * b
        return self.plan_of_bytes(count, 4 * count, 4 * count, 4 * count)

    def plan_of_bytes(self, cond, then, else_, out):
        """What is said of a call with operands of so many bytes."""
        found = self._plan(cond, then, else_, out, out // 4, *self._numbers)
        return Plan(found >> 2, bool(found & 2), bool(found & 1))

    def on(self, tasks, b):
        """Call until the call has so many tasks: calls run alone while cores have other work."""
        for _ in range(500):
            self(b)
            if self.seen.tasks == tasks:
                return
            assert self.seen.tasks == 1
            time.sleep(0.01)
        raise AssertionError(f"no call had {tasks} tasks")
