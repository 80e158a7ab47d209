"""The cores of this machine: how many may be used, and how many other programs are using."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from te_select.backends.c_compiler import open_library
from te_select.runtime import c

PROCESSORS = [c.FOLDER / "cpu/processors.c", c.FOLDER / "cpu/sysfs.c"]
_ROOM = 1 << 14  # bytes; more than a te_select_machine has


def threads() -> int:
    """The threads that a contestant may use: the most that a call of te-select has here."""
    return int(_library().te_select_count_threads(ctypes.create_string_buffer(_ROOM)))


@functools.cache
def _library() -> ctypes.CDLL:
    return open_library(PROCESSORS)


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
    def read(cls, seconds: float, used: float, own: float, cpus: float, threads: float) -> Load:
        """The load up to now, of counters, the CPUs that may be used and the most threads."""
        return cls(seconds, used, own, max(0, cpus - threads) * seconds)

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
    return Load.read(time.monotonic(), used, own, len(allowed), threads())
