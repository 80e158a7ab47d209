"""The C compiler that links libraries for another instruction set than this machine's."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from te_select.backends.programs import made_for, named_by
from te_select.base import scratch
from te_select.base.levels import machine_of
from te_select.errors import ToolchainError, suppress

GLIBC = "2.17"  # the oldest whose libraries the ziglang package has for aarch64
_GLIBC_OF = {"riscv64": "2.27"}  # the first that there was


def cross_compiler(triple: str) -> tuple[str, ...]:
    """Find a C compiler for another instruction set, with its headers and its C library.

    Parameters
    ----------
    triple
        Such as ``"aarch64-linux-gnu"``.

    Returns
    -------
    tuple[str, ...]
        The command: ``$CC`` if that makes code for it, else ``aarch64-linux-gnu-gcc``, else
        clang with lld, else the ``ziglang`` package.

    Raises
    ------
    ToolchainError
        If none of them is there.
    """
    return _find(triple, os.environ.get("CC", ""), os.environ.get("PATH", ""))


@functools.cache
def _find(triple: str, _wanted: str, _path: str) -> tuple[str, ...]:
    with suppress(ToolchainError):  # as of this machine's compiler
        command = named_by("CC", "a C compiler")
        if command is not None and made_for(command) == machine_of(triple):
            return command
    gcc = f"{triple}-gcc"
    if shutil.which(gcc) is not None:
        return (gcc,)
    if shutil.which("clang") is not None and shutil.which("ld.lld") is not None:
        clang = ("clang", f"--target={triple}", "-fuse-ld=lld")
        if _links(clang):  # it has no headers and no C library of its own
            return clang
    if importlib.util.find_spec("ziglang") is not None:
        machine = machine_of(triple)
        target = f"{triple}.{_GLIBC_OF.get(machine, GLIBC)}"
        # Without the last, zig adds checks that end the process.
        return (sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=all")
    raise ToolchainError(
        f"no C compiler for {triple} is found; install {gcc} (Debian: apt install "
        f"gcc-{triple.replace('_', '-')}), clang and lld with the C library of {triple}, or the "
        "ziglang package (pip install ziglang)"
    )


def _links(command: tuple[str, ...]) -> bool:
    """Whether a compiler can link a library that calls the C library."""
    with scratch.folder() as folder:
        source = Path(folder, "trial.c")
        source.write_text("#include <stdio.h>\nint trial(void) { return puts(__FILE__); }\n")
        words = (*command, "-shared", "-fPIC", str(source), "-o", str(folder / "trial.so"))
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
