"""Timing of work on a CUDA device: events around many calls, contestants in turns."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import Any

from te_select.runtime.call.cuda import driver
from te_select.timing.rounds import Timing, repeats_for, sample_in_turns

SHORTEST_SAMPLE = 2e-3  # seconds; the first launch and the events cost only microseconds
DEFAULT_STREAM = 0
_WARM_UP_CALLS = 3
_MOST_REPEATS = 10_000


def take_turns(samplers: Mapping[str, Repeated], rounds: int) -> dict[str, Timing]:
    """Time contestants in turns, so that drift of the device's clocks affects all of them alike."""
    return sample_in_turns({name: each.sample for name, each in samplers.items()}, rounds)


class Repeated:
    """A contestant whose sample is the mean of as many calls as make it long enough.

    Parameters
    ----------
    seconds
        Seconds per call of a number of calls.
    """

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self._seconds = seconds
        self.repeats = repeats_for(seconds, SHORTEST_SAMPLE, _MOST_REPEATS)

    def sample(self) -> float:
        """Seconds per call."""
        return self._seconds(self.repeats)


def queue(call: Callable[[], Any]) -> Repeated:
    """Time calls that enqueue work on the default stream, between two events.

    For small work this times the cost of a launch.
    """

    def work(count: int) -> None:
        for _ in range(count):
            call()

    return Repeated(lambda repeats: between_events(work, _WARM_UP_CALLS, repeats, DEFAULT_STREAM))


def clock(call: Callable[[], Any], wait: Callable[[Any], object]) -> Repeated:
    """Time calls by the CPU's clock, for libraries that have streams of their own.

    Parameters
    ----------
    call
        Enqueues the work.
    wait
        Waits for a call's result, and so for the calls before it.
    """

    def seconds(repeats: int) -> float:
        for _ in range(_WARM_UP_CALLS):
            value = call()
        wait(value)
        start = time.perf_counter()
        for _ in range(repeats):
            value = call()
        wait(value)
        return (time.perf_counter() - start) / repeats

    return Repeated(seconds)


def between_events(work: Callable[[int], object], warm_up: int, repeats: int, stream: int) -> float:
    """Seconds per repeat of work on device 0, from one event to another.

    Parameters
    ----------
    work
        Enqueues the given number of repeats.
    warm_up
        Repeats before the first event. They keep the device busy while the timed repeats are
        enqueued, so nothing waits for them.
    repeats
        Repeats between the events.
    stream
        The stream of the work.

    Returns
    -------
    float
        Seconds.
    """
    begin, end = _events()
    on_stream = ctypes.c_void_p(stream)
    driver.synchronize(0)
    work(warm_up)
    with driver.on_device(0):
        driver.call("cuEventRecord", begin, on_stream)
    work(repeats)
    milliseconds = ctypes.c_float()
    with driver.on_device(0):
        driver.call("cuEventRecord", end, on_stream)
        driver.call("cuEventSynchronize", end)
        driver.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
    return milliseconds.value * 1e-3 / repeats


_made: list[ctypes.c_void_p] = []


def _events() -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Two events of device 0, made once."""
    while len(_made) < 2:  # noqa: PLR2004 - a pair
        event = ctypes.c_void_p()
        with driver.on_device(0):
            driver.call("cuEventCreate", ctypes.byref(event), 0)
        _made.append(event)
    return _made[0], _made[1]
