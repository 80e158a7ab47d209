"""A kernel called inside somebody else's OpenMP region."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
from tvm_ffi import libinfo

import te_select
from te_select import Workload
from te_select.machines.c_compiler import c_compiler

CALLER = r"""
#include <dirent.h>
#include <tvm/ffi/c_api.h>

typedef int (*kernel)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

static int count_threads(void) {
  DIR* tasks = opendir("/proc/self/task");
  int n = 0;
  while (readdir(tasks)) ++n;
  closedir(tasks);
  return n - 2; /* . and .. */
}

/* Calls the kernel from each of `team` threads, every one with an output of its own. */
int call_from_team(kernel run, int team, int64_t n, char* cond, float* then, float* other,
                   float* out, int* threads) {
  int failed = 0;
#pragma omp parallel num_threads(team) reduction(+ : failed)
  {
    extern int omp_get_thread_num(void);
    void* data[4] = {cond, then, other, out + n * omp_get_thread_num()};
    DLTensor tensors[4];
    TVMFFIAny args[4], result;
    for (int i = 0; i < 4; ++i) {
      DLDataType type = {i ? kDLFloat : kDLBool, i ? 32 : 8, 1};
      DLDevice cpu = {kDLCPU, 0};
      tensors[i] = (DLTensor){data[i], cpu, 1, type, &n, 0, 0};
      args[i].type_index = kTVMFFIDLTensorPtr;
      args[i].zero_padding = 0;
      args[i].v_ptr = &tensors[i];
    }
    for (int k = 0; k < 5; ++k) failed += run(0, args, 4, &result) != 0;
#pragma omp barrier
#pragma omp master
    *threads = count_threads();
  }
  return failed;
}
"""


def test_kernel_inside_a_parallel_region_is_right_and_starts_no_threads(tmp_path):
    source, library = tmp_path / "caller.c", tmp_path / "caller.so"
    source.write_text(CALLER, encoding="ascii")
    includes = [f"-I{path}" for path in libinfo.include_paths()]
    subprocess.run(
        [*c_compiler(), "-shared", "-fPIC", "-fopenmp", *includes, source, "-o", library],
        check=True,
    )
    caller = ctypes.CDLL(str(library))
    openmp = ctypes.CDLL("libgomp.so.1")
    n, team = 1 << 20, 3
    kernel = te_select.compile(Workload((n,), (n,), (n,)))
    assert kernel.config["bytes_per_thread"]
    run = ctypes.CDLL(str(kernel.path))[f"__tvm_ffi_{kernel.workload.name}"]
    rng = np.random.default_rng(0)
    cond = rng.random(n) < 0.5
    then, else_ = (rng.random(n).astype(np.float32) for _ in range(2))
    out = np.zeros((team, n), np.float32)
    threads = ctypes.c_int()

    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (cond, then, else_, out)]
    before = len(list(Path("/proc/self/task").iterdir()))
    levels = openmp.omp_get_max_active_levels()
    openmp.omp_set_max_active_levels(2)  # by default, OpenMP itself starts no threads there
    try:
        failed = caller.call_from_team(
            run, team, ctypes.c_int64(n), *pointers, ctypes.byref(threads)
        )
    finally:
        openmp.omp_set_max_active_levels(levels)
    assert failed == 0
    assert threads.value - before <= team - 1
    assert all(np.array_equal(row, np.where(cond, then, else_)) for row in out)
