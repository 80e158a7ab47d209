"""The one part that is compiled when the package is built: calls by NumPy's C API."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError
from tvm_ffi import libinfo

C_HALF = Path("te_select/runtime/c")
SOURCES = C_HALF / "extension"
CPU, WHERE = C_HALF / "cpu", C_HALF / "where"
OF_LIBRARIES = (CPU / "cpu_features.c", WHERE / "where_call.c")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow")
HEADERS = (
    *C_HALF.glob("*.h"),
    CPU / "cpu_features.h",
    *WHERE.glob("*.h"),
    *SOURCES.glob("*.h"),
)


INCLUDED = (numpy.get_include(), *libinfo.include_paths())
# Names of folders in debug information: the same wherever the sources and the packages lie.
PREFIXES = {Path.cwd(): ".", **{folder: Path(folder).name for folder in INCLUDED}}
# What setuptools writes beside the sources, where nobody may write there.
beside = {}
if not os.access(".", os.W_OK):
    elsewhere = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, elsewhere, ignore_errors=True)
    beside = {"build": {"build_base": elsewhere}, "egg_info": {"egg_base": elsewhere}}


class BuildOrExplain(build_ext):
    """Compiles the extension, or says in one line what to install where it cannot be compiled."""

    def build_extension(self, ext: Extension) -> None:
        """Compile one extension."""
        try:
            super().build_extension(ext)
        except (CompileError, LinkError) as error:
            raise SystemExit(
                f"te-select needs a C compiler and Python's headers ({' '.join(str(error).split())}"
                "); where there are none, install the wheel te_select_runtime-"
                f"{self.distribution.get_version()}: make wheel builds it on another machine, for "
                "each Python from 3.10 on that it finds there"
            ) from None


setup(
    options=beside,
    cmdclass={"build_ext": BuildOrExplain},
    ext_modules=[
        Extension(
            "te_select.runtime.call._extension",
            sorted(map(str, (*SOURCES.glob("*.c"), *OF_LIBRARIES))),
            include_dirs=[*INCLUDED, *map(str, (SOURCES, CPU, WHERE, C_HALF))],
            depends=list(map(str, HEADERS)),
            extra_compile_args=[
                *("-std=gnu11", "-O2", "-fvisibility=hidden", *WARNINGS),
                # Else a call of 1,024 elements takes 140 or 159 ns, as files are linked (Zen 5).
                "-falign-functions=64",
                *(f"-ffile-prefix-map={folder}={name}" for folder, name in PREFIXES.items()),
            ],
        )
    ],
)
