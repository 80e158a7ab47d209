"""Timing of what a CUDA device does: events around a queue of calls, contestants in turns."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from te_select.bench.rounds import Timing
from te_select.runtime import cuda_driver

SHORTEST_SAMPLE = 2e-3  # seconds; the first launch and the events cost microseconds of it
_WARM_UP_CALLS = 3
_MOST_REPEATS = 10_000
_DEFAULT_STREAM = ctypes.c_void_p(0)


@dataclass(frozen=True)
class Contestant:
    """What is timed.

    Parameters
    ----------
    call
        Enqueues the work.
    wait
        Waits for a call's result, where the work is not on the default stream: then the clock of
        the CPU is read, else events of the device.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], object] | None = None


def take_turns(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, Timing]:
    """Time contestants in turns, so that drift of the clocks hits all of them alike.

    Parameters
    ----------
    contestants
        By name.
    rounds
        How many times each gets its turn.

    Returns
    -------
    dict[str, Timing]
        Seconds per call of each, round by round; many calls are queued at once, so that of large
        work it is what the device needs, and of small work what a launch costs.
    """
    repeats = {name: _repeats(one) for name, one in contestants.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, one in contestants.items():
                sample(one, _WARM_UP_CALLS)
                seconds[name].append(sample(one, repeats[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(tuple(each)) for name, each in seconds.items()}


def sample(one: Contestant, repeats: int) -> float:
    """Seconds per call of ``repeats`` calls in a queue."""
    synchronize()
    return (_by_clock if one.wait is not None else _by_events)(one, repeats) / repeats


def synchronize() -> None:
    """Wait for the default stream of device 0."""
    with cuda_driver.on_device(0):
        cuda_driver.call("cuStreamSynchronize", _DEFAULT_STREAM)


def _repeats(one: Contestant) -> int:
    sample(one, 1)
    repeats = 1
    while (taken := sample(one, repeats) * repeats) < SHORTEST_SAMPLE and repeats < _MOST_REPEATS:
        wanted = round(repeats * SHORTEST_SAMPLE / max(taken, 1e-9))
        repeats = min(max(2 * repeats, wanted), _MOST_REPEATS)
    return repeats


def _by_clock(one: Contestant, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        value = one.call()
    if one.wait is not None:
        one.wait(value)
    return time.perf_counter() - start


def _by_events(one: Contestant, repeats: int) -> float:
    begin, end = _events()
    with cuda_driver.on_device(0):
        cuda_driver.call("cuEventRecord", begin, _DEFAULT_STREAM)
    for _ in range(repeats):
        one.call()
    milliseconds = ctypes.c_float()
    with cuda_driver.on_device(0):
        cuda_driver.call("cuEventRecord", end, _DEFAULT_STREAM)
        cuda_driver.call("cuEventSynchronize", end)
        cuda_driver.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
    return milliseconds.value * 1e-3


_made: list[ctypes.c_void_p] = []


def _events() -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Two events of device 0, made once."""
    while len(_made) < 2:  # noqa: PLR2004 - a pair
        event = ctypes.c_void_p()
        with cuda_driver.on_device(0):
            cuda_driver.call("cuEventCreate", ctypes.byref(event), 0)
        _made.append(event)
    return _made[0], _made[1]
