"""where() under sanitizers, called from 64 threads at once, while kernels are added."""

from __future__ import annotations

import subprocess

import pytest
from tvm_ffi import libinfo

from te_select.backends.cpu import link
from te_select.backends.programs import c_compiler
from tests.support import c_programs
from tests.support.c_half import RUNTIME


@pytest.mark.slow
@pytest.mark.parametrize("threads", [4, 64])
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_first_calls_of_many_threads_do_not_meet(tmp_path, sanitizers, threads):
    program = tmp_path / "program"
    includes = (RUNTIME, RUNTIME / "cpu", *libinfo.include_paths())
    command = (
        *(*c_compiler(), "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"),
        *(f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"),
        *(f"-I{path}" for path in includes),
        str(c_programs.SOURCES / "where_threads.c"),
        *(str(RUNTIME / name) for name in link.FAMILY.sources),
        *("-pthread", "-ldl", "-o", str(program)),
    )
    subprocess.run(command, check=True)
    environment = {
        "TE_SELECT_NUM_THREADS": str(threads),
        "TE_SELECT_PROFILE": "bytes_per_thread=1024,stream_per_thread=1,stream_per_l3=0",
    }
    assert c_programs.output(program, **environment) == "done\n"
