"""Sections of limits.py: whether a library's decisions by the machine are the faster choices."""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import te_select
from te_select.backends.cpu.environment import profile_here
from te_select.bench.stage import calls_of
from te_select.bench.suite import DEFAULT
from te_select.timing.cores import threads
from te_select.timing.inputs import Mask, make_operands
from te_select.timing.rounds import PAUSE, Timing, take_turns
from te_select.tuning.calibrate import Bench, measure

ROUNDS = 15
MEGABYTE = 1 << 20
MEGABYTES = (1, 2, 4, 8, 12, 16, 24, 32, 64)  # of output
LOW = 0.95  # share of the fastest; at most three may be lower, and none below 0.9
BLOCKS = (64, 512, 4096, 1 << 16)
MASKED = te_select.Workload((1 << 22,), (1 << 22,), (1 << 22,))
_PAST = "stream_per_thread={},stream_per_l3={},fill_per_thread={},fill_per_l3=0"
Call = Callable[[], Any]
Timings = Mapping[str, Timing]


def _patterns(elements: int) -> dict[str, te_select.Workload]:
    """Workloads of about so many elements of float32."""
    flat = (elements,)
    by_12 = elements // 12
    by_16 = elements // 16
    return {
        "contiguous": te_select.Workload(flat, flat, flat),
        "row cond, rows of 48": _rows(elements, 48),
        "row cond, rows of 700": _rows(elements, 700),
        "mask over 12 rows": te_select.Workload((1, by_12), (12, by_12), ()),
        "mask over 16 rows": te_select.Workload((1, by_16), (16, by_16), ()),
        "outer product": te_select.Workload((1, by_16), (16, 1), (16, by_16)),
        "cond alone": te_select.Workload(flat, (), (), auto_broadcast="multidirectional"),
    }


def _rows(elements: int, length: int) -> te_select.Workload:
    count = elements // length
    return te_select.Workload((count, 1), (count, length), (count, length))


def machine() -> None:
    """Compare what profiles choose, plain stores or those past the cache, with the faster one.

    The profiles are the one in effect, a measured one, and the rules of other machines.
    """
    bench = Bench(threads(), ROUNDS)
    deciders = {name: bench.copy(text) for name, text in _profiles().items()}
    shares: dict[str, list[float]] = {name: [] for name in deciders}
    print(f"{'MB of output':48}", *(f"{size:5d}" for size in MEGABYTES))
    counts = sorted({1, threads()})
    cells = list(itertools.product(counts, _patterns(16), MEGABYTES))
    # Two passes, minutes apart: other programs disturb a machine for seconds.
    first, second = ([_timed(*cell) for cell in cells] for _ in range(2))
    timed = {
        cell: {way: Timing(one[way].seconds + two[way].seconds) for way in one}
        for cell, one, two in zip(cells, first, second, strict=True)
    }
    time.sleep(1)  # until the pool has all its threads again
    for count, pattern in itertools.product(counts, _patterns(16)):
        for name, decider in deciders.items():
            row = [
                _share(_chosen(decider, pattern, size, count), timed[count, pattern, size])
                for size in MEGABYTES
            ]
            shares[name] += row
            title = f"{pattern}, {count} threads, {name}"
            print(f"{title:48}", *(f"{share:5.2f}" for share in row), flush=True)
    for name, row in shares.items():
        low = f"below {LOW}: {sum(share < LOW for share in row)}, least {min(row):.3f}"
        print(f"{name:12}geometric mean {statistics.geometric_mean(row):.3f}, {low}")


def _profiles() -> dict[str, str]:
    """Profiles as TE_SELECT_PROFILE takes them, by their names."""
    here = profile_here()
    l2, l3 = int(here.machine["l2"]), int(here.machine["l3"])
    mesh = _PAST.format(l2, l2 * 2 // 5, l2 * 6 // 5)
    found = {"in effect": "", "measured": ",".join(measure(here).pairs), "mesh": mesh}
    for name, *parts in (("zen3", 417, 328), ("zen4", 600, 550), ("zen5", 600, 700)):
        each, fill = (l3 * part // 1000 for part in parts)
        found[name] = _PAST.format(each, 0, fill)
    return found


def _timed(count: int, pattern: str, megabytes: int) -> Timings:
    """Times of both kinds of stores."""
    workload = _patterns(megabytes * MEGABYTE // 4)[pattern]
    one = {"bytes_per_thread": 0} if count == 1 else {}
    ways = {"plain": one | {"stream_from": 0}, "past the cache": one | {"stream_from": 1}}
    return take_turns(_calls(workload, ways, Mask()), ROUNDS, PAUSE)


def _chosen(decider: Any, pattern: str, megabytes: int, count: int) -> str:
    """What a copy of a library decides."""
    workload = _patterns(megabytes * MEGABYTE // 4)[pattern]
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape, workload.out_shape)
    cond, *others = (math.prod(map(int, shape)) for shape in shapes)
    sizes = (cond, *(4 * elements for elements in others), others[-1])
    plan = decider["te_select_plan"](*sizes, 0 if count == 1 else -1, -1, -1, -1, 1)
    return "past the cache" if plan & 2 else "plain"


def skips() -> None:
    """Compare with and without a look at cond, on the suite and on masks in blocks."""
    cases = [(entry.name, entry.workload, Mask()) for entry in DEFAULT]
    cases += [(f"blocks of {block}", MASKED, Mask(block=block)) for block in BLOCKS]
    shares = {}
    for name, workload, mask in cases:
        ways = {"default": {}, "no look": {"skip": 0}, "a look": {"skip": 1}}
        shares[name] = _share("default", take_turns(_calls(workload, ways, mask), ROUNDS))
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


def _share(chosen: str, timed: Timings) -> float:
    """The speed of one way as a share of the fastest."""
    return min(timed[chosen].ratio(timing) for timing in timed.values())
