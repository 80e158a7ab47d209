"""A kernel that is called inside an OpenMP region of the program."""

import ctypes
import subprocess

import numpy as np
import pytest
from tvm_ffi import libinfo

import te_select
from te_select import Workload
from te_select.backends.programs import c_compiler

CALLER = r"""
#include <stdint.h>
#include <tvm/ffi/c_api.h>

typedef int (*kernel)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

/* Calls the kernel from each of `team` threads, every one with an output of its own. */
int call_from_team(kernel run, int team, int ndim, int64_t* shape, char* cond, float* then,
                   float* other, float* out) {
  int failed = 0;
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
#pragma omp parallel num_threads(team) reduction(+ : failed)
  {
    extern int omp_get_thread_num(void);
    void* data[4] = {cond, then, other, out + n * omp_get_thread_num()};
    DLTensor tensors[4];
    TVMFFIAny args[4], result;
    for (int i = 0; i < 4; ++i) {
      DLDataType type = {i ? kDLFloat : kDLBool, i ? 32 : 8, 1};
      DLDevice cpu = {kDLCPU, 0};
      tensors[i] = (DLTensor){data[i], cpu, ndim, type, shape, 0, 0};
      args[i].type_index = kTVMFFIDLTensorPtr;
      args[i].zero_padding = 0;
      args[i].v_ptr = &tensors[i];
    }
    for (int k = 0; k < 5; ++k) failed += run(0, args, 4, &result) != 0;
  }
  return failed;
}
"""
TEAM = 3


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Calls an exported function from each thread of a team; teams may be nested."""
    folder = tmp_path_factory.mktemp("caller")
    source, library = folder / "caller.c", folder / "caller.so"
    source.write_text(CALLER, encoding="ascii")
    includes = [f"-I{path}" for path in libinfo.include_paths()]
    subprocess.run(
        [*c_compiler(), "-shared", "-fPIC", "-fopenmp", *includes, source, "-o", library],
        check=True,
    )
    caller, openmp = ctypes.CDLL(str(library)), ctypes.CDLL("libgomp.so.1")
    # OpenMP does not nest by default. Which variable changes that depends on its version.
    levels, nested = openmp.omp_get_max_active_levels(), openmp.omp_get_nested()
    openmp.omp_set_nested(1)
    openmp.omp_set_max_active_levels(2)

    def run(function, cond, then, else_):
        out = np.zeros((TEAM, *then.shape), np.float32)
        shape = (ctypes.c_int64 * then.ndim)(*then.shape)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (cond, then, else_, out)]
        assert caller.call_from_team(function, TEAM, then.ndim, shape, *pointers) == 0
        return out

    yield run
    openmp.omp_set_nested(nested)
    openmp.omp_set_max_active_levels(levels)


def test_kernel_inside_a_parallel_region_is_right(call):
    n = 1 << 20
    kernel = te_select.compile(Workload((n,), (n,), (n,)))
    assert kernel.config["bytes_per_thread"]
    function = ctypes.CDLL(str(kernel.path))[f"__tvm_ffi_{kernel.workload.name}"]
    rng = np.random.default_rng(0)
    cond = rng.random(n) < 0.5
    then, else_ = (rng.random(n).astype(np.float32) for _ in range(2))
    for row in call(function, cond, then, else_):
        assert np.array_equal(row, np.where(cond, then, else_))
