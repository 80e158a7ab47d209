"""What ``te-select env`` says of this machine's CPU, its caches and profile, and the C compiler."""

import ctypes
import functools
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from te_select.backends.c_compiler import open_library
from te_select.backends.cross_compiler import cross_compiler
from te_select.backends.programs import c_compiler, first_line
from te_select.base.levels import TRIPLES, machine_of
from te_select.errors import ToolchainError, caught
from te_select.runtime import c
from te_select.runtime.call.cpu import features
from te_select.runtime.call.cpu.profile import Profile

_CPUS = Path("/sys/devices/system/cpu")
_OF_A_PROFILE = ("cpu_model.c", "profile.c", "processors.c", "sysfs.c")
_ROOM = 1 << 14  # bytes; more than a te_select_machine has


def environment() -> dict[str, dict[str, Any]]:
    """The sections ``cpu``, ``caches``, ``profile``, ``toolchains``; missing things are None."""
    return {
        "cpu": _cpu(),
        "caches": _caches(),
        "profile": _profile(),
        "toolchains": {"c_compiler": _described(c_compiler), **_cross_compilers()},
    }


def profile_here() -> Profile:
    """The profile that a library finds here, with the user's file and ``TE_SELECT_PROFILE``.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    find = open_library([c.FOLDER / "cpu" / name for name in _OF_A_PROFILE]).te_select_find_machine
    find.restype = ctypes.c_char_p
    text: bytes = find(ctypes.create_string_buffer(_ROOM))
    return Profile.parse(text.decode(errors="replace"))


def _cpu() -> dict[str, Any]:
    cores = {_read(path) for path in _CPUS.glob("cpu*/topology/thread_siblings_list")}
    return {
        "name": features.cpu_name(),
        "architecture": platform.machine(),
        "cores": len(cores) or None,
        "threads": os.cpu_count(),
        "threads_allowed": len(os.sched_getaffinity(0)),
        "features": sorted(features.features()),
    }


def _caches() -> dict[str, str]:
    """Sizes by level, such as ``"L1 Data": "48K"``; empty if the system hides them.

    Several kinds of cores have several, as ``"512K, 2048K"``.
    """
    found: dict[str, dict[str, None]] = {}
    for folder in sorted(_CPUS.glob("cpu[0-9]*/cache/index*")):
        level, kind, size = (_read(folder / name).strip() for name in ("level", "type", "size"))
        found.setdefault(f"L{level} {kind}", {})[size] = None
    return {cache: ", ".join(sizes) for cache, sizes in found.items()}


def _profile() -> dict[str, Any]:
    """The profile that libraries find here, and what they decide by it."""
    try:
        found = profile_here()
    except ToolchainError:
        return {"origin": None}
    described: dict[str, Any] = {"origin": found.origin, **found.machine, **found.decisions}
    described |= {**found.in_effect, "threads": found.machine["threads"]}
    described |= {"file": found.file or None, **found.advice}
    return described | ({"problem": found.problem} if found.problem else {})


def _cross_compilers() -> dict[str, str | None]:
    """By the names of the other instruction sets, the compilers that link libraries for them."""
    return {
        f"c_compiler_{isa}": _described(functools.partial(cross_compiler, triple))
        for isa, triple in TRIPLES.items()
        if machine_of(triple) != platform.machine()
    }


def _described(find: Callable[[], tuple[str, ...]]) -> str | None:
    """The compiler that is found, and the first line that it prints for ``--version``."""
    try:
        program, *options = find()
    except ToolchainError:
        return None
    line = first_line(program, *options, "--version")
    return None if line is None else f"{' '.join([shutil.which(program) or '', *options])}: {line}"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except caught(OSError):
        return ""
