"""A kernel that computes nothing, and says what the host half called it with."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import tvm_ffi

from te_select import Workload
from te_select.machines.c_compiler import c_compiler, link_stub
from te_select.machines.cpu import link
from tests.support.runtime_standin import manifest

PROBE = """
#include <stdint.h>
struct env { void* sync; int32_t num_task; };
int (*__TVMBackendParallelLaunch)(int (*)(int, struct env*, void*), void*, int);
struct {
  int64_t calls, stream, small, tasks, most, ran, sizes[2], pointers[4], wanted, fails;
} __tvm_ffi_seen;
int64_t __tvm_ffi_fences;

static int task(int id, struct env* env, void* data) {
  __atomic_store_n(&__tvm_ffi_seen.tasks, env->num_task, __ATOMIC_SEQ_CST);
  if (env->num_task > __tvm_ffi_seen.most) __tvm_ffi_seen.most = env->num_task;
  __atomic_add_fetch(&__tvm_ffi_seen.ran, 1 << (8 * id), __ATOMIC_SEQ_CST);
  return id + 1 == __tvm_ffi_seen.fails;
}

int32_t te_select_kernel_0(void* c, void* t, void* e, void* o, int64_t a, int64_t b, int64_t stream,
                           int64_t small) {
  void* pointers[] = {c, t, e, o};
  ++__tvm_ffi_seen.calls;
  __tvm_ffi_seen.stream = stream;
  __tvm_ffi_seen.small = small;
  __tvm_ffi_seen.ran = 0;
  __tvm_ffi_seen.sizes[0] = a;
  __tvm_ffi_seen.sizes[1] = b;
  for (int i = 0; i < 4; ++i) __tvm_ffi_seen.pointers[i] = (int64_t)pointers[i];
  return __TVMBackendParallelLaunch(task, 0, __tvm_ffi_seen.wanted);
}
"""
COUNTING = """
extern __attribute__((visibility("default"))) long __tvm_ffi_fences;
#define __builtin_ia32_sfence() __atomic_add_fetch(&__tvm_ffi_fences, 1, __ATOMIC_SEQ_CST)
"""


class Seen(ctypes.Structure):
    """What the last call saw; ``most`` is the most tasks of all calls."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("calls", "stream", "small", "tasks", "most", "ran")),
        ("sizes", ctypes.c_int64 * 2),
        ("pointers", ctypes.c_int64 * 4),
        ("wanted", ctypes.c_int64),
        ("fails", ctypes.c_int64),
    )


def build(folder: Path) -> None:
    """Compile the kernel into a folder."""
    (folder / "probe.c").write_text(PROBE)
    (folder / "counting.h").write_text(COUNTING)
    command = [*c_compiler(), "-O1", "-fPIC", "-c", folder / "probe.c", "-o", folder / "probe.o"]
    subprocess.run(command, check=True)


class Probe:
    """A library whose one kernel, of ``b`` rows of ``a`` floats, says what it was called with.

    Parameters
    ----------
    folder
        Where `build` has compiled the kernel.
    how
        Of a `te_select.machines.cpu.link.KernelEntry`.
    """

    def __init__(self, folder: Path, **how: int) -> None:
        path = folder / f"{next(_numbers)}.so"
        workload = Workload(("b", "a"), ("b", "a"), ("b", "a"))
        stub = link.stub_source([link.KernelEntry(workload, "te_select_kernel_0", **how)])
        options = (*link.CPU.options, "-include", str(folder / "counting.h"))
        half = replace(link.CPU, options=options)
        link_stub(stub, [folder / "probe.o"], half, manifest([workload]), path)
        self.call = tvm_ffi.load_module(str(path)).get_function(workload.name)
        image = ctypes.CDLL(str(path))
        self.address = image[f"__tvm_ffi_{workload.name}"]
        self.seen = Seen.in_dll(image, "__tvm_ffi_seen")
        self.fences = ctypes.c_int64.in_dll(image, "__tvm_ffi_fences")

    def __call__(self, b: int, a: int = 1) -> list[np.ndarray]:
        """Move 13 bytes an element, 4 of which are of out."""
        arrays = [np.ones((b, a), bool), *(np.zeros((b, a), "f4") for _ in range(3))]
        self.fences.value = 0
        self.call(*arrays)
        return arrays


_numbers = itertools.count()
