"""Programs in C, of the folder ``c``, that call a kernel by its plain function."""

from dataclasses import dataclass
from pathlib import Path

from tvm_ffi import libinfo

import te_select
from te_select import Workload
from te_select.backends.cpu import link
from te_select.backends.programs import c_compiler
from te_select.runtime.artifact.manifest import c_name
from tests.support import programs
from tests.support.c_half import RUNTIME

SOURCES = Path(__file__).parent / "c"
_STRICT = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")


@dataclass(frozen=True)
class Exported:
    """A library of one kernel: ``mask.so``, ``mask.a`` and ``mask.h`` of a folder.

    Parameters
    ----------
    folder
        Where it lies, and where programs are built.
    workload
        What the kernel computes.
    """

    folder: Path
    workload: Workload

    def compile(self, source, output, *more):
        """Compile a file of the folder ``c`` with options, objects and libraries."""
        path = self.folder / output
        command = (
            *c_compiler(),
            *_STRICT,
            "-D_GNU_SOURCE",
            "-include",
            "mask.h",
            f"-DSELECT={c_name(self.workload)}",
            str(SOURCES / source),
            *more,
            "-pthread",
            "-ldl",
            "-o",
            str(path),
        )
        programs.output(*command, cwd=self.folder)
        return path


def export(folder, workload, config=None):
    """Compile a kernel by TVM."""
    te_select.export([workload], folder / "mask.so", config=config, static=True)
    return Exported(folder, workload)


def sanitized(source, program, sanitizers):
    """A program of the folder ``c`` with where(), under sanitizers."""
    command = (
        *c_compiler(),
        *_STRICT,
        f"-fsanitize={sanitizers}",
        "-fno-sanitize-recover=all",
        *(
            f"-I{path}"
            for path in (RUNTIME, RUNTIME / "cpu", RUNTIME / "where", *libinfo.include_paths())
        ),
        SOURCES / source,
        *(RUNTIME / name for name in link.FAMILY.sources),
        "-pthread",
        "-ldl",
        "-o",
        program,
    )
    programs.output(*command)
    return program


def output(program, *arguments, **environment):
    """What a program prints, which must neither hang nor crash."""
    how = {"TE_SELECT_NUM_THREADS": "2"} | environment
    return programs.output(program, *arguments, cwd=program.parent, timeout=60, **how)
