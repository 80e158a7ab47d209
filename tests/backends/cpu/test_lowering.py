"""The lowered function: what each task of a call does."""

import subprocess
from ctypes import CDLL, c_int64, c_void_p

import numpy as np
from pytest import mark

from te_select import Workload
from te_select.backends.cpu import lowering
from te_select.backends.programs import c_compiler
from te_select.backends.targets import resolve
from te_select.compiler import scheduling
from tests.support import masked_rows, shapes
from tests.support.tuning import default_of

THREADS = {"bytes_per_thread": 1024}
SIZES = {"m": 40, "n": 1030}


def extents(shape):
    return [dim if isinstance(dim, int) else SIZES[dim] for dim in shape]


def compiled(folder, workload, config):
    """The raw function of a workload."""
    target = resolve("native")
    default = default_of(workload, target)
    one = scheduling.schedule(workload, target, config=vars(default) | THREADS | config)
    module = lowering.build(lowering.lower_kernel(one, "kernel", target.tvm), target.tvm)
    module.write_to_file(str(folder / "kernel.o"), "o")
    # TVM's own way to run a parallel loop, by a pointer that all its objects share.
    assert b"TVMBackend" not in (folder / "kernel.o").read_bytes()
    path = folder / "kernel.so"
    command = [*c_compiler(), "-shared", folder / "kernel.o", "-nostdlib", "-o", path]
    subprocess.run(command, check=True)
    return CDLL(str(path)).kernel


def test_variants_are_asked_in_their_order():
    """A call of few short rows is for both."""
    target = resolve("x86-64-v3")
    one = scheduling.schedule(masked_rows("m", "n"), target)
    asking = lowering.lower_kernel(one, "kernel", target.tvm)[0].script()
    assert asking.index("kernel_short_rows") < asking.index("kernel_small")


@mark.parametrize("config", [{}, {"piece": 64}, {"piece": 64, "unroll": 1, "rows": False}])
@mark.parametrize(
    "of",
    [
        "20011 20011 20011",
        "n n n",
        "999,1 999,3 999,3",
        "m,1 m,n m,n",
        "1,100 7,5,100 ()",
        "5 5 ()",  # it has no loop outside of the leaf
        "() () ()",
    ],
)
def test_every_element_is_written_by_one_task(tmp_path, of, config):
    workload = Workload(*shapes(of))
    kernel = compiled(tmp_path, workload, config)
    cond = np.arange(np.prod(extents(workload.cond_shape), dtype=int)) % 3 == 0
    then = np.ones(np.prod(extents(workload.then_shape), dtype=int), "f4")
    else_ = np.full(np.prod(extents(workload.else_shape), dtype=int), 2, "f4")
    out = np.zeros(extents(workload.out_shape), "f4")
    pointers = [c_void_p(array.ctypes.data) for array in (cond, then, else_, out)]
    sizes = [c_int64(SIZES[name]) for name in workload.dim_names]
    for tasks in (1, 2, 3, 64, 1000):
        times = np.zeros(out.shape, int)
        for task in range(tasks):
            out[...] = 0
            assert kernel(*pointers, *sizes, *map(c_int64, (0, task, tasks))) == 0
            times += out != 0
        assert (times == 1).all()
