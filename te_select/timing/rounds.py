"""Timing of one call alone, and fair timing: contestants of a comparison take turns in one run."""

from __future__ import annotations

import contextlib
import gc
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

SHORTEST_SAMPLE = 3e-4  # seconds; a thousand times the clock's own overhead
WARM_UP = 1e-2  # seconds; a virtual core that had been idle was seen to be slow for 5 to 8 ms
# Seconds of sleep. Threads of other systems spin on after a call: without it, a kernel of 110 us
# took 200 us beside torch and OpenVINO (Zen 5).
PAUSE = 2e-2
FEWEST = 7  # samples of one call; the median of 7 calls of 10 ms was seen to repeat within 2 %
LONG_ENOUGH = 3e-2  # seconds of samples; more did not make the median of short calls steadier
LONGEST = 1.0  # seconds; after these, three samples are enough
FEWEST_LONG = 3


@dataclass(frozen=True)
class Timing:
    """Times of one contestant.

    Parameters
    ----------
    seconds
        Seconds per call, one for each round, in order.
    """

    seconds: tuple[float, ...]

    def quantile(self, q: float) -> float:
        """Seconds per call at quantile ``q``; 0.5 is the median."""
        ordered = sorted(self.seconds)
        return ordered[round(q * (len(ordered) - 1))]

    @property
    def median(self) -> float:
        """Median seconds per call."""
        return self.quantile(0.5)

    def ratio(self, other: Timing) -> float:
        """Median over the rounds of ``other / self``: the speed-up over ``other``."""
        return self.ratios(other).median

    def ratios(self, other: Timing) -> Timing:
        """The rounds of ``other / self``."""
        return Timing(tuple(b / a for a, b in zip(self.seconds, other.seconds, strict=True)))

    @property
    def spread(self) -> float:
        """How far the rounds lie apart: the middle half of them, as a share of the median."""
        return (self.quantile(0.75) - self.quantile(0.25)) / self.median


def take_turns(
    contestants: Mapping[str, Callable[[], object]],
    rounds: int = 15,
    pause: float = 0.0,
    samples: int = 1,
) -> dict[str, Timing]:
    """Time contestants in turns, so that drift of the machine's speed affects all of them alike.

    Every round has an order of its own, so that no contestant always follows the same other one.

    Each turn begins with calls that are not counted. So a kernel finds all cores awake, and the
    caches as its own last call left them.

    Parameters
    ----------
    contestants
        What to call, by name.
    rounds
        How many turns each contestant gets.
    pause
        Seconds of sleep before each turn, so that no thread of the last turn is still spinning.
    samples
        How many samples each turn takes. The fastest one counts.

    Returns
    -------
    dict[str, Timing]
        Times of each, round by round.
    """
    turns = {}
    for name, call in contestants.items():
        repeats = repeats_for(partial(timed, call), SHORTEST_SAMPLE)
        turns[name] = partial(_sample, call, repeats, pause, samples)
    return sample_in_turns(turns, rounds)


def sample_in_turns(samples: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Timing]:
    """Take samples of contestants in turns, as `take_turns` does for calls.

    ``samples`` has a function for each contestant, by name. It measures one sample and returns
    seconds per call.
    """
    seconds: dict[str, list[float]] = {name: [] for name in samples}
    rng = random.Random(0)
    with no_garbage_collection():
        for _ in range(rounds):
            for name, sample in rng.sample(list(samples.items()), len(samples)):
                seconds[name].append(sample())
    return {name: Timing(tuple(each)) for name, each in seconds.items()}


def _sample(call: Callable[[], object], repeats: int, pause: float, samples: int) -> float:
    time.sleep(pause)
    _warmed(call)
    return min(timed(call, repeats) for _ in range(samples))


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep Python from collecting garbage, which would be part of a sample."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def repeats_for(seconds: Callable[[int], float], shortest: float, most: int = 1 << 62) -> int:
    """Repeats that make a sample long enough, found by taking samples of growing length.

    Parameters
    ----------
    seconds
        Measures seconds per call, of a number of calls.
    shortest
        Seconds of a sample that is long enough.
    most
        The most repeats.
    """
    seconds(1)
    repeats = 1
    while (taken := seconds(repeats) * repeats) < shortest and repeats < most:
        repeats = min(max(2 * repeats, round(repeats * shortest / max(taken, 1e-9))), most)
    return repeats


def timed(call: Callable[[], object], repeats: int = 1) -> float:
    """Seconds per call of so many calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def time_calls(call: Callable[[], object]) -> tuple[float, ...]:
    """Time one call until the median is steady.

    Returns
    -------
    tuple of float
        Seconds per call, one for each sample. A sample is a single call, or the mean of as many
        calls as last `SHORTEST_SAMPLE`.
    """
    repeats = max(1, math.ceil(SHORTEST_SAMPLE / _warmed(call)))
    samples: list[float] = []
    spent = 0.0
    with no_garbage_collection():
        while spent < LONG_ENOUGH or len(samples) < (FEWEST if spent < LONGEST else FEWEST_LONG):
            samples.append(timed(call, repeats))
            spent += samples[-1] * repeats
    return tuple(samples)


def _warmed(call: Callable[[], object]) -> float:
    """Call until cores and caches are warm; returns seconds of the fastest call."""
    end = time.perf_counter() + WARM_UP
    fastest = math.inf
    while fastest == math.inf or time.perf_counter() < end:
        fastest = min(fastest, timed(call))
    return max(fastest, 1e-9)
