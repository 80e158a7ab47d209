"""The cores of this machine: how many may be used, and how many other programs are using."""

from __future__ import annotations

import contextlib
import os
import time

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


class Watch:
    """Watches how many cores other programs use, from the moment that it is made."""

    def __init__(self) -> None:
        self._begun = self._now()

    def others(self) -> float:
        """How many cores other programs have used on average, beyond those that were to spare.

        A machine may have more CPUs than a kernel may use, as in a container with a quota. Only
        when the others use more than the rest do they slow the kernel down.
        """
        wall, all_cores, own = (b - a for a, b in zip(self._begun, self._now(), strict=True))
        if wall <= 0:
            return 0.0
        spare = len(os.sched_getaffinity(0)) - threads()
        return max(0.0, (all_cores - own) / wall - max(0, spare))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """The clock; and CPU seconds, of the CPUs that may be used and of this process's family."""
        import psutil  # noqa: PLC0415 - needed only to measure

        cpus = psutil.cpu_times(percpu=True)
        mine = [cpus[i] for i in os.sched_getaffinity(0) if i < len(cpus)]
        busy = sum(
            cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq + cpu.steal for cpu in mine
        )
        own = 0.0
        this = psutil.Process()
        for process in (this, *this.children(recursive=True)):
            with contextlib.suppress(psutil.Error):  # it has ended; its parent has its time
                used = process.cpu_times()
                own += used.user + used.system + used.children_user + used.children_system
        return time.monotonic(), busy, own
