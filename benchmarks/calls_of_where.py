"""Calls of te_select.where that ``where.py`` compares, and how it shows their times."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import te_select
from te_select.timing.rounds import Timing, take_turns

HEADS = 12
HALF = 0.5  # the share of true elements of a mask
Arguments = tuple[Any, Any, Any]
where: Any = te_select.where


def patterns(elements: int, dtype: str) -> Iterator[tuple[str, Arguments]]:
    """Calls with about so many elements: the four patterns of most programs."""
    rng = np.random.default_rng(0)
    side = max(1, math.isqrt(elements))
    heads = max(1, math.isqrt(elements // HEADS))

    def values(*shape: int) -> Any:
        return rng.integers(0, 100, shape).astype(dtype)

    def mask(*shape: int) -> Any:
        return rng.random(shape) < HALF

    yield "same shapes", (mask(elements), values(elements), values(elements))
    yield "mask, scalar", (mask(1, 1, heads, heads), values(1, HEADS, heads, heads), 0)
    yield "cond of rows", (mask(side, 1), values(side, side), values(side, side))
    yield "column, row", (mask(side, side), values(side, 1), values(side))


def into(function: Callable[..., Any], arguments: Arguments, out: Any) -> Callable[[], Any]:
    """A call with out= as programs write it; numpy.where has no out.

    functools.partial would take 50 ns more to pass a keyword.
    """
    if function is np.where:
        return partial(function, *arguments)
    cond, x, y = arguments
    return lambda: function(cond, x, y, out=out)


def us(timing: Timing) -> float:
    """The median in microseconds."""
    return timing.median * 1e6


def show(name: str, calls: Mapping[str, Callable[[], Any]], rounds: int = 25) -> None:
    """Print the times of calls, and each as a multiple of the first."""
    times = take_turns(calls, rounds)
    first = next(iter(times.values()))
    told = (f"{each} {us(own):.2f} us ({1 / own.ratio(first):.3f})" for each, own in times.items())
    print(f"{name:27}", ", ".join(told), flush=True)
