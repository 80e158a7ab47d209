"""The name and the features of this machine's CPU.

The features are asked of the CPU by the function that libraries ask, as sandboxes hide /proc.
"""

import functools
import platform
from collections.abc import Iterable
from pathlib import Path

from te_select.errors import caught
from te_select.runtime.call.extension import extension

_CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def cpu_info() -> dict[str, str]:
    """What /proc/cpuinfo says of the first CPU, by its keys; empty if it cannot be read."""
    try:
        text = _CPUINFO.read_text(errors="replace")
    except caught(OSError):
        return {}
    return parsed(text)


def parsed(text: str) -> dict[str, str]:
    """What the text of a /proc/cpuinfo says of the first CPU, by its keys."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key:
            found.setdefault(key, value)
    return found


def cpu_name() -> str:
    """The maker's name of this machine's CPU."""
    # platform.processor starts a program.
    return cpu_info().get("model name") or platform.processor() or platform.machine()


@functools.cache
def features() -> frozenset[str]:
    """Those of this machine's CPU that libraries may need, as /proc/cpuinfo spells them."""
    return frozenset(extension.cpu_features().split())


def missing(needed: Iterable[str]) -> list[str]:
    """Those of the features that this machine's CPU lacks, sorted."""
    return sorted(set(needed) - features())


def lacking(architecture: str, needed: Iterable[str]) -> list[str]:
    """What this machine lacks: the architecture, by its name in ``uname -m``, or some features."""
    if architecture != platform.machine():
        return [f"the {architecture} instruction set"]
    return missing(needed)
