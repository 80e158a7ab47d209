"""The one part that is compiled when the package is built: calls by NumPy's C API."""

from pathlib import Path

import numpy
from setuptools import Extension, setup

SOURCES = Path("te_select/runtime/extension")

setup(
    ext_modules=[
        Extension(
            "te_select.runtime._extension",
            sorted(str(path) for path in SOURCES.glob("*.c")),
            include_dirs=[numpy.get_include(), str(SOURCES), "te_select/runtime/cpu"],
            depends=[*map(str, SOURCES.glob("*.h")), "te_select/runtime/cpu/where.h"],
            extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden"],
            optional=True,  # without a compiler, where() leaves its calls to NumPy
        )
    ]
)
