"""The cores of this machine: how many everyone may use, and how many others are using."""

from __future__ import annotations

import os

BUSY = 0.3  # cores; another process on one of two made kernels up to 30 times slower


def threads() -> int:
    """The threads that everyone may use: what the user allows te-select, else all CPUs at hand."""
    for name in ("TE_SELECT_NUM_THREADS", "OMP_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first) > 0:
            return int(first)
    return len(os.sched_getaffinity(0))


def busy_cores() -> float:
    """How many cores others use, while this process waits for a fifth of a second."""
    import psutil  # noqa: PLC0415 - only who measures needs it

    cores: float = psutil.cpu_percent(interval=0.2) / 100 * psutil.cpu_count()
    return cores
