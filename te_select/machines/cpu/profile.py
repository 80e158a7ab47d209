"""The profile of this machine, without a library: asked of the C half, compiled for the purpose."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from te_select.errors import ToolchainError
from te_select.machines.c_compiler import c_compiler
from te_select.runtime import scratch
from te_select.runtime.cpu import profile

_FOLDER = Path(profile.__file__).parent
_SOURCES = ("machine.c", "profile.c", "processors.c")


def of_this_machine() -> profile.Profile:
    """The profile that a library finds here, with the user's file and ``TE_SELECT_PROFILE``.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    with scratch.folder() as folder:
        path = folder / "machine.so"
        command = [*c_compiler(), "-std=gnu11", "-O1", "-fPIC", "-shared", *_sources()]
        done = subprocess.run(
            [*command, "-o", str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ToolchainError(
                f"{command[0]} cannot compile {_SOURCES[0]}: {done.stderr.strip()[-500:]}"
            )
        describe = ctypes.CDLL(str(path)).te_select_machine_text
    describe.restype = ctypes.c_char_p
    return profile.Profile.parse(describe().decode(errors="replace"))


def _sources() -> list[str]:
    return [str(_FOLDER / name) for name in _SOURCES]
