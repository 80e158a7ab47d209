"""The C half and the stubs that are written for it: no compiler warns of any of it.

No frame of theirs has more than 8 KB: threads may have stacks of 32 KB.
"""

import sysconfig

import numpy as np
import pytest
from tvm_ffi import libinfo

from te_select import Workload
from te_select.backends.cpu import link
from te_select.backends.cuda import link as cuda_link
from te_select.backends.cuda.lowering import CudaFunction
from te_select.backends.programs import c_compiler
from te_select.runtime.artifact.manifest import c_name
from tests.support import output
from tests.support.c_half import RUNTIME, WARNINGS

PACKAGE = RUNTIME.parent
SMALL = ("-Wframe-larger-than=8192", "-Wvla", "-Walloca")
WORKLOADS = [Workload(("n", 3), ("n", 3), ()), Workload((), (4,), (4,), "complex128")]
LEVELS = {"x86-64-v2": ("ssse3", "popcnt"), "x86-64-v3": ("avx2",)}


def compile_strictly(folder, *sources):
    outside = (*libinfo.include_paths(), np.get_include(), sysconfig.get_paths()["include"])
    own = sorted({path.parent for path in RUNTIME.rglob("*.h")})
    command = (
        *c_compiler(),
        "-std=gnu11",
        "-O2",
        "-fPIC",
        "-fopenmp",
        *WARNINGS,
        *SMALL,
        "-Werror",
        "-S",
        *(f"-I{path}" for path in own),
        *(f"-isystem{path}" for path in outside),
        *map(str, sources),
    )
    output(*command, cwd=folder)


@pytest.mark.slow
def test_c_files_compile_without_a_warning(tmp_path):
    compile_strictly(tmp_path, *(path.resolve() for path in PACKAGE.rglob("*.c")))


def test_stub_for_cpus_compiles_without_a_warning(tmp_path):
    entries = {
        workload: [link.Version(f"kernel_{i}_{k}") for k in range(2)]
        for i, workload in enumerate(WORKLOADS)
    }
    functions = {each: c_name(each) for each in WORKLOADS}
    places = {WORKLOADS[0]: "runs[2][7]", WORKLOADS[1]: "rows[4][5]"}
    for name, placed in (("kernels.c", None), ("where.c", places)):
        (tmp_path / name).write_text(link.stub_source(entries, LEVELS, functions, placed))
        compile_strictly(tmp_path, name)


def test_stub_for_cuda_compiles_without_a_warning(tmp_path):
    for name in ("sm_80.cubin", "newest.ptx"):
        (tmp_path / name).write_bytes(b"")
    entries = {
        workload: CudaFunction(f"kernel_{i}", "", 128, "1", None)
        for i, workload in enumerate(WORKLOADS)
    }
    functions = {each: c_name(each) for each in WORKLOADS}
    source = cuda_link.stub_source(entries, ["sm_80"], tmp_path, functions)
    (tmp_path / "stub.c").write_text(source)
    compile_strictly(tmp_path, "stub.c")
