"""Runs other programs to get one line about themselves, such as a version."""

from __future__ import annotations

import shutil
import subprocess

_SECONDS = 10  # a driver that hangs must not hang the report


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
