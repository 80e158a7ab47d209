"""The name and the features of this machine's CPU."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_FLAG_KEYS = ("flags", "Features")  # on x86 and on Arm


@functools.cache
def cpu_info() -> dict[str, str]:
    """What /proc/cpuinfo says of the first CPU, by its keys; empty if it cannot be read."""
    try:
        text = _CPUINFO.read_text(errors="replace")
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key:
            found.setdefault(key, value)
    return found


def cpu_name() -> str:
    """The maker's name of this machine's CPU."""
    return cpu_info().get("model name", platform.processor() or platform.machine())


@functools.cache
def features() -> frozenset[str]:
    """The flags of this machine's first CPU; empty if they cannot be read."""
    if "isa" in cpu_info():  # of RISC-V, such as rv64imafdcv_zba_zbb
        letters, *names = cpu_info()["isa"].removeprefix("rv64").split("_")
        return frozenset([*letters, *names])
    found = (cpu_info()[key] for key in _FLAG_KEYS if key in cpu_info())
    return frozenset(next(found, "").split())


def missing(needed: Iterable[str]) -> list[str]:
    """Those of the features that this machine's CPU lacks, sorted."""
    return sorted(set(needed) - features())


def lacking(architecture: str, needed: Iterable[str]) -> list[str]:
    """What this machine lacks: the architecture, by its name in ``uname -m``, or some features."""
    if architecture != platform.machine():
        return [f"the {architecture} instruction set"]
    return missing(needed)
