"""Times a call: warmed up, and repeated until the median is steady."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from te_select.timing.rounds import WARM_UP, no_garbage_collection, timed

SHORTEST_SAMPLE = 3e-4  # seconds; a thousand times the clock's own overhead
FEWEST = 7  # samples; the median of 7 calls of 10 ms was seen to repeat within 2 %
LONG_ENOUGH = 3e-2  # seconds of samples; more did not make the median of short calls steadier
LONGEST = 1.0  # seconds; after these, three samples are enough
FEWEST_LONG = 3


def time_calls(call: Callable[[], object]) -> tuple[float, ...]:
    """Time a call.

    Parameters
    ----------
    call
        What to time.

    Returns
    -------
    tuple of float
        Seconds per call, one for each sample. A sample is a single call, or the mean of as many
        calls as last `SHORTEST_SAMPLE`.
    """
    repeats = max(1, math.ceil(SHORTEST_SAMPLE / _warmed(call)))
    samples: list[float] = []
    with no_garbage_collection():
        while not enough(len(samples), sum(samples) * repeats):
            samples.append(timed(call, repeats))
    return tuple(samples)


def enough(samples: int, seconds: float) -> bool:
    """Whether ``samples`` samples, which took ``seconds`` together, are enough."""
    if seconds >= LONGEST:
        return samples >= FEWEST_LONG
    return samples >= FEWEST and seconds >= LONG_ENOUGH


def _warmed(call: Callable[[], object]) -> float:
    """Call until cores and caches are warm; returns seconds of the fastest call."""
    end = time.perf_counter() + WARM_UP
    fastest = math.inf
    while fastest == math.inf or time.perf_counter() < end:
        fastest = min(fastest, timed(call))
    return max(fastest, 1e-9)
