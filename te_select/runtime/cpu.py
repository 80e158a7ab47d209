"""What the CPU of this machine can do."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_FLAG_KEYS = ("flags", "Features")  # as x86 and Arm spell it


@functools.cache
def features() -> frozenset[str]:
    """The flags of this machine's first CPU; empty where they cannot be read."""
    try:
        with _CPUINFO.open() as lines:
            for line in lines:
                key, _, flags = line.partition(":")
                if key.strip() in _FLAG_KEYS:
                    return frozenset(flags.split())
    except OSError:
        pass
    return frozenset()


def missing(needed: Iterable[str]) -> list[str]:
    """The features out of ``needed`` that this machine's CPU lacks, sorted."""
    return sorted(set(needed) - features())
