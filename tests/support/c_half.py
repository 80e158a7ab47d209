"""Compiles files of the C half, with a driver, to a library that a test calls."""

import ctypes
import functools
import shutil
import subprocess
import textwrap
from pathlib import Path

from tvm_ffi import libinfo

from te_select.backends.programs import c_compiler
from te_select.runtime import c
from tests.support import new_folder, python

RUNTIME = c.FOLDER
DRIVERS = Path(__file__).parent / "c"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow")
"""All C compiles without one of these."""
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover")
_TYPES = {
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "s": ctypes.c_char_p,
}
_POOL = """
import ctypes, os, sys
pool = ctypes.CDLL(sys.argv[1])

def helpers(count):
    \"\"\"The ids of the pool's threads, of which there must be so many.\"\"\"
    ids = [int(name) for name in os.listdir("/proc/self/task")]
    named = [id for id in ids if open(f"/proc/{id}/comm").read() == "te_select\\n"]
    assert len(named) == count
    return named
"""


def build(folder, driver, sources, *options):
    """Compile.

    Parameters
    ----------
    folder
        Where to.
    driver
        A file of the folder ``c``, which may include files of ``te_select/runtime/cpu``.
    sources
        Files of ``te_select/runtime``.
    options
        Of the compiler.

    Returns
    -------
    Path
        The library.
    """
    path = folder / "half.so"
    command = (
        *c_compiler(),
        "-std=gnu11",
        "-O1",
        "-g",
        *WARNINGS,
        "-Werror",
        "-fPIC",
        "-Wno-unused-parameter",  # of drivers
        "-Wframe-larger-than=8192",  # threads may have stacks of 32 KB
        "-shared",
        "-pthread",
        *options,
        *(f"-isystem{path}" for path in libinfo.include_paths()),
        *(f"-I{path}" for path in (RUNTIME, RUNTIME / "cpu", RUNTIME / "where")),
        str(DRIVERS / driver),
        *(str(RUNTIME / name) for name in sources),
        "-o",
        str(path),
    )
    subprocess.run(command, check=True)
    return path


@functools.cache
def built(driver, sources=(), *options):
    """`build`, once in a process."""
    return build(new_folder(), driver, sources, *options)


def load(path, **functions):
    """Open a library, with the types of functions: takes>gives, by the letters of `struct`."""
    library = ctypes.CDLL(str(path))
    for name, types in functions.items():
        takes, _, gives = types.partition(">")
        function = getattr(library, name)
        if takes:
            function.argtypes = [_TYPES[each] for each in takes]
        if gives:
            function.restype = _TYPES[gives]
    return library


def copied(path, **functions):
    """Load an image of its own, whose constructors see the environment as it is now."""
    return load(shutil.copy(path, new_folder() / "copy.so"), **functions)


def run(path, *code, before="", timeout=120, **variables):
    """Run code in a process that must neither hang nor crash.

    It finds the library as ``pool``, and the ids of the pool's threads by ``helpers(count)``.
    ``before`` runs before the library is loaded. No thread looks for OpenMP's runtimes, unless a
    variable says so.
    """
    whole = before + _POOL + "".join(map(textwrap.dedent, code))
    python(whole, path, timeout=timeout, **{"TE_SELECT_TEAM": "0", **variables})
