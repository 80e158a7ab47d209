"""Other programs: those that the environment names, and what they say about themselves."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from te_select.errors import ToolchainError

_SECONDS = 10  # a driver that hangs must not hang the report


def named_by(variable: str, what: str) -> tuple[str, ...] | None:
    """The command in a variable of the environment, with its options; None if it is not set.

    Raises
    ------
    ToolchainError
        If it is not a program; the message says that it should be ``what``.
    """
    wanted = os.environ.get(variable, "").strip()
    if not wanted:
        return None
    try:
        command = tuple(shlex.split(wanted))
    except ValueError:
        command = ()
    if not command or shutil.which(command[0]) is None:
        raise ToolchainError(f"{variable} is {wanted!r}, not a program; set it to {what}")
    return command


def first_line(*command: str) -> str | None:
    """The first line that a command prints; None if it is missing, fails or hangs."""
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None
