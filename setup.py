"""The one part that is compiled when the package is built: calls by NumPy's C API."""

from pathlib import Path

import numpy
from setuptools import Extension, setup
from tvm_ffi import libinfo

C_HALF = Path("te_select/runtime/c")
SOURCES, SHARED = C_HALF / "extension", C_HALF / "cpu"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow")
HEADERS = (C_HALF / "operand_order.h", *SHARED.glob("where*.h"), *SOURCES.glob("*.h"))

setup(
    ext_modules=[
        Extension(
            "te_select.runtime.call._extension",
            sorted(map(str, (*SOURCES.glob("*.c"), SHARED / "where_call.c"))),
            include_dirs=[
                numpy.get_include(),
                *libinfo.include_paths(),
                *map(str, (SOURCES, SHARED, C_HALF)),
            ],
            depends=list(map(str, HEADERS)),
            extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden", *WARNINGS],
            optional=True,  # without a compiler, where() leaves its calls to NumPy
        )
    ]
)
