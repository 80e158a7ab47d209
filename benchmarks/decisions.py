"""Sections of limits.py: whether a library's decisions by the machine are the faster choices."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import te_select
from te_select.bench.stage import calls_of
from te_select.bench.suite import DEFAULT
from te_select.timing import roof
from te_select.timing.cores import threads
from te_select.timing.operands import Mask, make_operands
from te_select.timing.rounds import PAUSE, Timing, take_turns

ROUNDS = 15
MEGABYTE = 1 << 20
MEGABYTES = (1, 2, 4, 8, 12, 16, 24, 32, 64)  # of output
LOW = 0.95  # share of the fastest; at most three may be lower, and none below 0.9
BLOCKS = (64, 512, 4096, 1 << 16)
MASKED = te_select.Workload((1 << 22,), (1 << 22,), (1 << 22,))
Call = Callable[[], Any]


def _patterns(elements: int) -> dict[str, te_select.Workload]:
    """Workloads of about so many elements of float32."""
    flat, by_12, by_16 = (elements,), elements // 12, elements // 16
    return {
        "contiguous": te_select.Workload(flat, flat, flat),
        "row cond, rows of 48": _rows(elements, 48),
        "row cond, rows of 700": _rows(elements, 700),
        "mask over 12 rows": te_select.Workload((1, by_12), (12, by_12), ()),
        "mask over 16 rows": te_select.Workload((1, by_16), (16, by_16), ()),
        "outer product": te_select.Workload((1, by_16), (16, 1), (16, by_16)),
    }


def _rows(elements: int, length: int) -> te_select.Workload:
    count = elements // length
    return te_select.Workload((count, 1), (count, length), (count, length))


def machine() -> None:
    """Compare stores past the cache with plain ones and plain C, by pattern, size and threads."""
    shares: list[float] = []
    for count in sorted({1, threads()}):
        for name in _patterns(16):
            row = [_chosen(name, size, count) for size in MEGABYTES]
            shares += row
            cells = "".join(f"{share:7.2f}" for share in row)
            print(f"{name + f', {count} threads':36}{cells}", flush=True)
    print(f"{'MB of output':36}{''.join(f'{size:7d}' for size in MEGABYTES)}")
    print(f"geometric mean of the shares of the fastest: {statistics.geometric_mean(shares):.3f}")
    print(f"below {LOW}: {sum(share < LOW for share in shares)}; the least: {min(shares):.3f}")


def _chosen(name: str, megabytes: int, count: int) -> float:
    """The default's speed as a share of the fastest of all."""
    elements = megabytes * MEGABYTE // 4
    workload = _patterns(elements)[name]
    one = {"bytes_per_thread": 0} if count == 1 else {}
    ways = {"default": {}, "plain": {"stream_from": 0}, "past the cache": {"stream_from": 1}}
    calls = _calls(workload, {way: one | knobs for way, knobs in ways.items()}, Mask())
    if name == "contiguous":
        memory = [roof.probe_memory("select", elements)]
        for stream in (0, 1):
            run = roof.runner("select", memory, elements, stream, count)
            calls[f"C {stream}"] = functools.partial(run, 1)
    return _share(take_turns(calls, ROUNDS, PAUSE))


def skips() -> None:
    """Compare with and without a look at cond, on the suite and on masks in blocks."""
    cases = [(entry.name, entry.workload, Mask()) for entry in DEFAULT]
    cases += [(f"blocks of {block}", MASKED, Mask(block=block)) for block in BLOCKS]
    shares = {}
    for name, workload, mask in cases:
        ways = {"default": {}, "no look": {"skip": 0}, "a look": {"skip": 1}}
        shares[name] = _share(take_turns(_calls(workload, ways, mask), ROUNDS))
    for name, share in sorted(shares.items(), key=lambda each: each[1])[:8]:
        print(f"{name:36}{share:7.3f}   (0.97)")


def _calls(
    workload: te_select.Workload, ways: Mapping[str, Mapping[str, int]], mask: Mask
) -> dict[str, Call]:
    """Kernels of the default config with some knobs changed, on one set of operands."""
    operands = make_operands(workload, mask)
    kernels = {
        way: te_select.compile(workload, tuning_logs=False, config=knobs)
        for way, knobs in ways.items()
    }
    return {way: calls_of(kernel, [operands])[0] for way, kernel in kernels.items()}


def _share(timed: Mapping[str, Timing]) -> float:
    """The default's speed as a share of the fastest."""
    others: Sequence[float] = [
        timed["default"].ratio(timing) for way, timing in timed.items() if way != "default"
    ]
    return min(1.0, *others) if others else math.nan
