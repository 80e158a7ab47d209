"""The cores of this machine: how many may be used, and how many other programs are using."""

from __future__ import annotations

import os

BUSY = 0.3  # cores; another process on one of two cores made kernels up to 30 times slower


def threads() -> int:
    """The threads that a contestant may use: te-select's limit if it is set, else all CPUs."""
    for name in ("TE_SELECT_NUM_THREADS", "OMP_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return int(first)
    return len(os.sched_getaffinity(0))


def busy_cores() -> float:
    """How many cores other programs use; waits for a fifth of a second."""
    import psutil  # noqa: PLC0415 - needed only to measure

    cores: float = psutil.cpu_percent(interval=0.2) / 100 * psutil.cpu_count()
    return cores
