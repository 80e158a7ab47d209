"""Other programs: those that the environment names, how they are run, and what they say."""

import functools
import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

from te_select.errors import ToolchainError, caught

_C_COMPILERS = ("cc", "gcc", "clang")
_LAST_LINES = 8  # of what a program has printed, in an error
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
    except caught(ValueError):
        command = ()
    if not command or shutil.which(command[0]) is None:
        raise ToolchainError(f"{variable} is {wanted!r}, not a program; set it to {what}")
    return command


def c_compiler() -> tuple[str, ...]:
    """Find the C compiler: ``$CC``, if that makes code for this machine, else cc, gcc or clang.

    Returns
    -------
    tuple[str, ...]
        The command, with the options that ``$CC`` may hold.

    Raises
    ------
    ToolchainError
        If there is none.
    """
    command = named_by("CC", "a C compiler")
    if command is not None and made_for(command) in (None, platform.machine()):
        return command
    for name in _C_COMPILERS:
        if shutil.which(name) is not None:
            return (name,)
    raise ToolchainError(
        f"no C compiler is found ({', '.join(_C_COMPILERS)}); install one (Debian: apt install "
        "gcc) or set CC"
    )


def made_for(command: tuple[str, ...]) -> str | None:
    """The machine that a C compiler makes code for, as ``uname -m`` says it; None if unknown."""
    program = shutil.which(command[0])
    return None if program is None else _made_for(program, *command[1:])


@functools.cache  # each look into the cache of libraries finds the compiler
def _made_for(*command: str) -> str | None:
    return (first_line(*command, "-dumpmachine") or "").partition("-")[0] or None


def first_line(*command: str) -> str | None:
    """The first line that a command prints; None if it is missing, fails or hangs."""
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, timeout=_SECONDS, check=False
        )
    except caught(OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def run(*command: str, advice: str = "", folder: Path | None = None) -> bytes:
    """Run a program in a folder, and return what it has printed.

    Raises
    ------
    ToolchainError
        If it cannot be run, or fails. The message ends in the advice.
    """
    try:
        done = subprocess.run(command, capture_output=True, check=False, cwd=folder)
    except caught(OSError) as error:
        raise ToolchainError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        said = [last_lines(done.stderr or done.stdout) or "it printed nothing", advice]
        raise ToolchainError(
            f"{command[0]} failed with exit code {done.returncode}: {'; '.join(filter(None, said))}"
        )
    return done.stdout


def last_lines(text: bytes) -> str:
    """The end of what a program has printed, in one line."""
    lines = text.decode(errors="replace").strip("\0 \n").splitlines()[-_LAST_LINES:]
    return "; ".join(line.strip() for line in lines)
