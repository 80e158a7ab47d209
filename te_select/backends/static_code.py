"""Code that is linked into others': a static library for C, or an object file for TVM.

Both are one object file, of which only some functions can be called.
"""

import platform
import shutil
from collections.abc import Iterable
from pathlib import Path

from te_select.backends.programs import named_by, run
from te_select.base.levels import machine_of
from te_select.errors import ToolchainError
from te_select.runtime.artifact.manifest import Manifest
from te_select.runtime.artifact.stored import MEMBER, OBJECT

POOL = "te_select_pool_v7"
# What a program has once, however many of its libraries and archives bring it.
SHARED = ("te_select_error", "te_select_error_v1", POOL)
# What a header declares for operands of any shapes.
ANY_SHAPES = ("te_select_broadcast", "te_select_where_call_on")


def write(
    merged: Path, manifest: Manifest, triple: str | None, out: Path, more: Iterable[str] = ()
) -> None:
    """Write a static library of one object file, or the object file alone.

    Parameters
    ----------
    merged
        All code, linked to one object file; it is changed.
    manifest
        Of its kernels. In a static library, their plain C functions can be called; in an object,
        those of tvm-ffi, whose names begin with ``__tvm_ffi_``.
    triple
        What it is for; None for this machine.
    out
        The ``.a``, or the ``.o``. The same input gives the same bytes.
    more
        Other functions that can be called.

    Raises
    ------
    ToolchainError
        If there is no objcopy or ar for it, or one of them fails.
    """
    if out.suffix == OBJECT:
        names = [*(f"__tvm_ffi_{kernel.workload.name}" for kernel in manifest.kernels), POOL]
    else:
        names = [*manifest.c_functions.values(), *SHARED]
    names += more
    kept = merged.with_name("kept")
    kept.write_text("".join(f"{name}\n" for name in names))
    member = merged.with_name(MEMBER)
    # The other names become local, so that two of these in one program do not meet. Of those that
    # stay, the linker takes the first. A weak name would not keep the pool's code in memory.
    weak = [f"--weaken-symbol={name}" for name in names if name != POOL]
    options = (*weak, f"--keep-global-symbols={kept}", "--strip-unneeded")
    advice = "OBJCOPY and AR, if set, must know the target's files, as llvm-objcopy and llvm-ar do"
    words = (*_tool("objcopy", "OBJCOPY", triple), *options, str(merged), str(member))
    run(*words, advice=advice)
    if out.suffix == OBJECT:
        out.write_bytes(member.read_bytes())
    else:
        run(*_tool("ar", "AR", triple), "rcsD", str(out), str(member), advice=advice)


def _tool(name: str, variable: str, triple: str | None) -> tuple[str, ...]:
    """A tool of the binutils: ``$OBJCOPY`` or ``$AR``, else that of the triple, else of LLVM."""
    if (command := named_by(variable, name)) is not None:
        return command
    own = triple is None or machine_of(triple) == platform.machine()
    names = (name if own else f"{triple}-{name}", f"llvm-{name}")
    for found in names:
        if shutil.which(found) is not None:
            return (found,)
    raise ToolchainError(
        f"a static library needs {' or '.join(names)}, which is not found; install binutils "
        f"(Debian: apt install binutils{'' if own else f'-{triple}'}) or llvm, or set {variable}"
    )
