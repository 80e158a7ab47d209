"""The one part that is compiled when the package is built: calls by NumPy's C API."""

from pathlib import Path

import numpy
from setuptools import Extension, setup

RUNTIME = Path("te_select/runtime")
SOURCES, SHARED = RUNTIME / "extension", RUNTIME / "cpu"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow")
HEADERS = (RUNTIME / "operand_order.h", SHARED / "where.h", *SOURCES.glob("*.h"))

setup(
    ext_modules=[
        Extension(
            "te_select.runtime._extension",
            sorted(map(str, (*SOURCES.glob("*.c"), SHARED / "where_call.c"))),
            include_dirs=[numpy.get_include(), *map(str, (SOURCES, SHARED, RUNTIME))],
            depends=list(map(str, HEADERS)),
            extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden", *WARNINGS],
            optional=True,  # without a compiler, where() leaves its calls to NumPy
        )
    ]
)
