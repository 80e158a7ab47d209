"""The cores of this machine: how many may be used, and how many other programs are using."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

LIMITS = ("TE_SELECT_NUM_THREADS", "OMP_NUM_THREADS")  # of threads; the first that is set counts


def threads() -> int:
    """The threads that a contestant may use: te-select's limit if it is set, else all CPUs."""
    return _threads(map(os.environ.get, LIMITS), len(os.sched_getaffinity(0)))


def _threads(limits: Iterable[str | None], cpus: int) -> int:
    """As `runtime/c/cpu/processors.c` reads them, which says what is wrong with our own."""
    own, of_openmp = (limit or "" for limit in limits)
    if own:
        return _count(own) or 1
    return _count(of_openmp.partition(",")[0]) or cpus


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def busy_cores() -> float:
    """How many cores other programs use, beyond those to spare; watches for half a second."""
    watch = Watch(lambda: [here()])
    time.sleep(0.5)
    return watch.others()


class Load(NamedTuple):
    """What the CPUs did that a kernel may use; the loads of several times add up.

    Parameters
    ----------
    seconds
        Of the clock.
    used, own
        CPU seconds of all programs, and of those that measure.
    spare
        CPU seconds of the CPUs that a kernel leaves to others. A machine may have more CPUs than a
        kernel may use, as in a container with a quota.
    """

    seconds: float = 0.0
    used: float = 0.0
    own: float = 0.0
    spare: float = 0.0

    @classmethod
    def read(
        cls, seconds: float, used: float, own: float, cpus: int, limits: Iterable[str | None]
    ) -> Load:
        """The load up to now, of counters and of the values of the variables in `LIMITS`."""
        return cls(seconds, used, own, max(0, cpus - _threads(limits, cpus)) * seconds)

    def since(self, begun: Load) -> Load:
        """The load after an earlier one."""
        return Load(*(now - then for then, now in zip(begun, self, strict=True)))

    def others(self) -> float:
        """How many cores other programs used on average, beyond those to spare.

        Only if the others use more than what is to spare, they slow a kernel down.
        """
        if self.seconds <= 0:
            return 0.0
        return max(0.0, (self.used - self.own - self.spare) / self.seconds)


class Watch:
    """Watches how many cores other programs use, from the moment that it is made.

    Parameters
    ----------
    loads
        The load of each machine that measures, up to now; machines may be added to its end.
    """

    def __init__(self, loads: Callable[[], Sequence[Load]]) -> None:
        self._loads = loads
        self._begun = loads()

    def others(self) -> float:
        """How many cores other programs have used, on the machine on which they used the most."""
        both = zip_longest(self._begun, self._loads(), fillvalue=Load())
        return max((now.since(begun).others() for begun, now in both), default=0.0)


def here() -> Load:
    """The load of this machine; this process and its children measure."""
    import psutil  # noqa: PLC0415 - needed only to measure

    cpus = psutil.cpu_times(percpu=True)
    allowed = os.sched_getaffinity(0)
    used = sum(
        cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq + cpu.steal
        for cpu in (cpus[i] for i in allowed if i < len(cpus))
    )
    own = 0.0
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended; its parent has its time
            times = process.cpu_times()
            own += times.user + times.system + times.children_user + times.children_system
    return Load.read(time.monotonic(), used, own, len(allowed), map(os.environ.get, LIMITS))
