"""A kernel that computes nothing and reports the arguments of the host half."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import tvm_ffi

from te_select import Workload
from te_select.machines.c_compiler import c_compiler, link_stub
from te_select.machines.cpu import link
from te_select.schedules.cpu.flags import FLAGS
from tests.support.runtime_standin import manifest

PROBE = """
#include <sched.h>
#include <stdint.h>
struct env { void* sync; int32_t num_task; };
int (*__TVMBackendParallelLaunch)(int (*)(int, struct env*, void*), void*, int);
void te_select_set_pieces(int64_t);
struct {
  int64_t calls, flags, tasks, most, ran, sizes[2], pointers[4], pieces, fails, meet;
} __tvm_ffi_seen;
int64_t __tvm_ffi_fences;

static int task(int id, struct env* env, void* data) {
  __atomic_store_n(&__tvm_ffi_seen.tasks, env->num_task, __ATOMIC_SEQ_CST);
  if (env->num_task > __tvm_ffi_seen.most) __tvm_ffi_seen.most = env->num_task;
  __atomic_add_fetch(&__tvm_ffi_seen.ran, 1 << (8 * id), __ATOMIC_SEQ_CST);
  /* Where they shall meet, a thread has one task only. */
  int64_t all = 0x0101010101010101 >> (64 - 8 * env->num_task);
  for (int64_t k = 0; k < 100 * 1000 * __tvm_ffi_seen.meet; ++k) {
    if (__atomic_load_n(&__tvm_ffi_seen.ran, __ATOMIC_SEQ_CST) == all) break;
    sched_yield();
  }
  return id + 1 == __tvm_ffi_seen.fails;
}

int32_t te_select_kernel_0(void* c, void* t, void* e, void* o, int64_t a, int64_t b,
                           int64_t flags) {
  void* pointers[] = {c, t, e, o};
  ++__tvm_ffi_seen.calls;
  __tvm_ffi_seen.flags = flags;
  __tvm_ffi_seen.ran = 0;
  __tvm_ffi_seen.sizes[0] = a;
  __tvm_ffi_seen.sizes[1] = b;
  for (int i = 0; i < 4; ++i) __tvm_ffi_seen.pointers[i] = (int64_t)pointers[i];
  te_select_set_pieces(__tvm_ffi_seen.pieces ? __tvm_ffi_seen.pieces : 1 << 20);
  return __TVMBackendParallelLaunch(task, 0, 0);
}
"""
COUNTING = """
extern __attribute__((visibility("default"))) long __tvm_ffi_fences;
#define __builtin_ia32_sfence() __atomic_add_fetch(&__tvm_ffi_fences, 1, __ATOMIC_SEQ_CST)
"""


class Seen(ctypes.Structure):
    """What the last call saw; ``most`` is the most tasks of all calls.

    Set ``pieces`` to how many iterations its loop shall have, ``fails`` to the task that shall
    fail, counted from 1, and ``meet`` to 1 where every task shall have a thread of its own.
    """

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("calls", "flags", "tasks", "most", "ran")),
        ("sizes", ctypes.c_int64 * 2),
        ("pointers", ctypes.c_int64 * 4),
        *((name, ctypes.c_int64) for name in ("pieces", "fails", "meet")),
    )

    def has(self, flag: str) -> bool:
        """Whether the kernel was called with a flag."""
        return bool(self.flags & FLAGS[flag])


def build(folder: Path) -> None:
    """Compile the kernel into a folder."""
    (folder / "probe.c").write_text(PROBE)
    (folder / "counting.h").write_text(COUNTING)
    command = [*c_compiler(), "-O1", "-fPIC", "-c", folder / "probe.c", "-o", folder / "probe.o"]
    subprocess.run(command, check=True)


class Probe:
    """A library with one kernel, of ``b`` rows of ``a`` floats, that reports its arguments.

    Parameters
    ----------
    folder
        Where `build` has compiled the kernel.
    levels
        That the library has code for, which is the same code.
    how
        Of `te_select.machines.cpu.link.Decisions`.
    """

    def __init__(
        self, folder: Path, levels: Sequence[link.Level] = (link.Level("x86-64", ()),), **how: int
    ) -> None:
        path = folder / f"{next(_numbers)}.so"
        workload = Workload(("b", "a"), ("b", "a"), ("b", "a"))
        version = link.Version("te_select_kernel_0", link.Decisions(**how))
        entry = link.KernelEntry(workload, (version,) * len(levels))
        stub = link.stub_source([entry], levels)
        options = (*link.CPU.options, "-include", str(folder / "counting.h"))
        half = replace(link.CPU, options=options)
        link_stub(stub, [folder / "probe.o"], half, manifest([workload]), path)
        self.call = tvm_ffi.load_module(str(path)).get_function(workload.name)
        image = ctypes.CDLL(str(path))
        self.address = image[f"__tvm_ffi_{workload.name}"]
        self.seen = Seen.in_dll(image, "__tvm_ffi_seen")
        self.fences = ctypes.c_int64.in_dll(image, "__tvm_ffi_fences")

    def __call__(self, b: int, a: int = 1) -> list[np.ndarray]:
        """A call that moves 13 bytes an element, 4 of them in out."""
        arrays = [np.ones((b, a), bool), *(np.zeros((b, a), "f4") for _ in range(3))]
        self.fences.value = 0
        self.call(*arrays)
        return arrays

    def on(self, tasks: int, b: int) -> None:
        """Call until the call has so many tasks: calls run alone while cores have other work."""
        for _ in range(500):
            self(b)
            if self.seen.tasks == tasks:
                return
            assert self.seen.tasks == 1
            time.sleep(0.01)
        raise AssertionError(f"no call had {tasks} tasks")


_numbers = itertools.count()
