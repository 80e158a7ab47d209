"""Sections of limits.py: whether a library's decisions by the machine are the faster choices."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import te_select
from te_select.backends.c_compiler import open_library
from te_select.bench.stage import calls_of
from te_select.bench.suite import DEFAULT
from te_select.runtime import c
from te_select.runtime.call.cpu.profile import Profile
from te_select.timing import roof
from te_select.timing.cores import threads
from te_select.timing.cpu.profile import Bench, Measured, measure, of_this_machine
from te_select.timing.operands import Mask, make_operands
from te_select.timing.rounds import PAUSE, Timing, take_turns

ROUNDS = 15
MEGABYTE = 1 << 20
MEGABYTES = (1, 2, 4, 8, 12, 16, 24, 32, 64)  # of output
LOW = 0.95  # share of the fastest; at most three may be lower, and none below 0.9
BLOCKS = (64, 512, 4096, 1 << 16)
MASKED = te_select.Workload((1 << 22,), (1 << 22,), (1 << 22,))
DRIVER = Path(__file__).parents[1] / "tests" / "support" / "c" / "profile_test.c"
OTHERS = (  # by vendor, family and model
    *((b"GenuineIntel", 6, 0xCF), (b"GenuineIntel", 6, 0x97), (b"AuthenticAMD", 27, 1)),
    *((b"AuthenticAMD", 25, 1), (b"AuthenticAMD", 25, 17), (b"AuthenticAMD", 26, 2)),
)
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
        "cond alone": te_select.Workload(flat, (), (), auto_broadcast="multidirectional"),
    }


def _rows(elements: int, length: int) -> te_select.Workload:
    count = elements // length
    return te_select.Workload((count, 1), (count, length), (count, length))


def machine() -> None:
    """Compare what profiles choose with the fastest of plain stores, stores past the cache and C.

    The profiles are that of the machine's traits, a measured one, and those of other machines.
    """
    profiles = _profiles()
    deciders = Bench(threads(), ROUNDS)
    shares: dict[str, list[float]] = {name: [] for name in profiles}
    print(f"{'MB of output':56}{''.join(f'{size:6d}' for size in MEGABYTES)}")
    for count in sorted({1, threads()}):
        for pattern in _patterns(16):
            rows: dict[str, list[float]] = {name: [] for name in profiles}
            for size in MEGABYTES:
                workload = _patterns(size * MEGABYTE // 4)[pattern]
                timed = _ways(workload, pattern == "contiguous", count)
                for name, text in profiles.items():
                    chosen = timed[_chosen(deciders.copy(text), workload, count)]
                    rows[name].append(min(1.0, *map(chosen.ratio, timed.values())))
            for name, row in rows.items():
                shares[name] += row
                cells = "".join(f"{share:6.2f}" for share in row)
                print(f"{f'{pattern}, {count} threads, {name}':56}{cells}", flush=True)
    for name, found in shares.items():
        mean, low = statistics.geometric_mean(found), sum(share < LOW for share in found)
        print(f"{name:20} geometric mean {mean:.3f}, below {LOW}: {low}, least {min(found):.3f}")


def _profiles() -> dict[str, str]:
    """Profiles as TE_SELECT_PROFILE takes them, by their names."""
    driver = open_library(
        [DRIVER, *(c.FOLDER / "cpu" / f"{name}.c" for name in ("profile", "processors", "sysfs"))],
        *(f"-I{folder}" for folder in (c.FOLDER, c.FOLDER / "cpu")),
    )
    driver.find.restype = driver.pretend.restype = ctypes.c_char_p
    here = of_this_machine()
    found = {"measured": ",".join(measure(here).pairs)}
    with tempfile.TemporaryDirectory() as empty, mock.patch.dict(os.environ):
        os.environ["XDG_CONFIG_HOME"] = empty  # without the user's file
        os.environ.pop("TE_SELECT_PROFILE", None)
        texts = [driver.find()]
        sizes = [int(here.machine[key]) for key in ("l2", "l3", "threads_per_l3")]
        for vendor, family, model in OTHERS:
            l2, l3 = map(ctypes.c_int64, sizes[:2])
            texts.append(driver.pretend(vendor, family, model, l2, l3, sizes[2]))
    for text in texts:
        profile = Profile.parse(text.decode())
        pairs = Measured(profile.decisions, ()).pairs
        found.setdefault(profile.origin.partition(",")[0], ",".join(pairs))
    return found


def _ways(workload: te_select.Workload, with_c: bool, count: int) -> dict[str, Timing]:
    """Times of plain stores and of those past the cache; of contiguous data also those of C."""
    one = {"bytes_per_thread": 0} if count == 1 else {}
    ways = {"plain": one | {"stream_from": 0}, "past the cache": one | {"stream_from": 1}}
    calls = _calls(workload, ways, Mask())
    if with_c:
        elements = math.prod(map(int, workload.out_shape))
        memory = [roof.probe_memory("select", elements)]
        for stream in (0, 1):
            run = roof.runner("select", memory, elements, stream, count)
            calls[f"C {stream}"] = functools.partial(run, 1)
    return take_turns(calls, ROUNDS, PAUSE)


def _chosen(decider: Any, workload: te_select.Workload, count: int) -> str:
    """What a copy of a library decides."""
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape, workload.out_shape)
    cond, *others = (math.prod(map(int, shape)) for shape in shapes)
    grain = 0 if count == 1 else -1
    sizes = (cond, *(4 * elements for elements in others), others[-1])
    plan = decider["te_select_plan"](*sizes, grain, -1, -1, -1, 1)
    return "past the cache" if plan & 2 else "plain"


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
