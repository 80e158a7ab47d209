"""The name and the features of this machine's CPU.

What it lacks is asked of the CPU by the function that libraries ask, as sandboxes hide /proc. All
that it has, for people and for keys, is listed as /proc/cpuinfo lists it.
"""

import functools
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from te_select.errors.catching import caught
from te_select.runtime.call.extension import extension

_CPUINFO = Path("/proc/cpuinfo")
_FLAG_KEYS = {"x86_64": "flags", "aarch64": "Features", "riscv64": "isa"}
# What Linux for 64-bit Arm asks of every CPU. An emulator may show the /proc/cpuinfo of its host.
_ALWAYS = {"aarch64": ("asimd", "fp")}


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
    """The flags of this machine's first CPU; those of every such CPU if they cannot be read."""
    return flags(platform.machine(), cpu_info())


def flags(machine: str, info: Mapping[str, str]) -> frozenset[str]:
    """The flags that a /proc/cpuinfo shows, as `features` has them."""
    shown = info.get(_FLAG_KEYS.get(machine, ""), "")
    if machine == "riscv64":  # such as rv64imafdcv_zba_zbb
        letters, _, names = shown.removeprefix("rv64").partition("_")
        shown = " ".join((*letters, *names.split("_")))
    return frozenset((*shown.split(), *_ALWAYS.get(machine, ())))


def missing(needed: Iterable[str]) -> list[str]:
    """Those of the features that this machine's CPU lacks, sorted."""
    return sorted(name for name in set(needed) if not extension.cpu_has(name))


def lacking(architecture: str, needed: Iterable[str]) -> list[str]:
    """What this machine lacks: the architecture, by its name in ``uname -m``, or some features."""
    if architecture != platform.machine():
        return [f"the {architecture} instruction set"]
    return missing(needed)
