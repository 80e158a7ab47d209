"""Static libraries: one object file, of which only the plain C functions can be called."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable
from pathlib import Path

from te_select.backends.programs import named_by, run
from te_select.errors import ToolchainError
from te_select.runtime.artifact.stored import MEMBER

SHARED = ("te_select_error", "te_select_error_v1", "te_select_pool_v5")
"""What a program has once, however many of its libraries and archives bring it."""


def write(merged: Path, functions: Iterable[str], triple: str | None, out: Path) -> None:
    """Write a static library of one object file.

    Parameters
    ----------
    merged
        All code, linked to one object file; it is changed.
    functions
        The functions that can be called.
    triple
        What it is for; None for this machine.
    out
        The ``.a``. The same input gives the same bytes.

    Raises
    ------
    ToolchainError
        If there is no objcopy or ar for it, or one of them fails.
    """
    kept = merged.with_name("kept")
    kept.write_text("".join(f"{name}\n" for name in (*functions, *SHARED)))
    member = merged.with_name(MEMBER)
    # The other names become local, so that two archives of one program do not meet. Of those that
    # stay, the linker takes the first.
    weak = [f"--weaken-symbol={name}" for name in SHARED]
    options = (*weak, f"--keep-global-symbols={kept}", "--strip-unneeded")
    run(*_tool("objcopy", "OBJCOPY", triple), *options, str(merged), str(member))
    run(*_tool("ar", "AR", triple), "rcsD", str(out), str(member))


def _tool(name: str, variable: str, triple: str | None) -> tuple[str, ...]:
    """A tool of the binutils: ``$OBJCOPY`` or ``$AR``, else that of the triple, else of LLVM."""
    if (command := named_by(variable, name)) is not None:
        return command
    own = triple is None or triple.partition("-")[0] == platform.machine()
    names = (name if own else f"{triple}-{name}", f"llvm-{name}")
    for found in names:
        if shutil.which(found) is not None:
            return (found,)
    raise ToolchainError(
        f"a static library needs {' or '.join(names)}, which is not found; install binutils "
        f"(Debian: apt install binutils{'' if own else f'-{triple}'}) or llvm, or set {variable}"
    )
