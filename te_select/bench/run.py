"""Runs a suite: every contestant verified, then timed in turns beside the roof."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm_ffi

import te_select
from te_select.bench.contest import (
    POISON,
    ROUNDS,
    Contest,
    Result,
    decided,
    difference,
    rows,
)
from te_select.bench.options import Options
from te_select.bench.peers import Call
from te_select.bench.row import PROBE, Row
from te_select.bench.suite import Entry
from te_select.operator.access import access_pattern
from te_select.timing import roof
from te_select.timing.operands import Mask, Operands, make_operands
from te_select.timing.rounds import PAUSE, WARM_UP, Timing, take_turns
from te_select.verify.reference import Array

FEWEST_ROUNDS = 5
_ROW_SECONDS = 8.0  # a row that would take longer gets fewer rounds, which keeps a suite short
_MOST_SETS = 256  # binding more to a dozen systems takes longer than measuring


def run(entries: Sequence[Entry], masks: Sequence[Mask], options: Options) -> Iterator[Row]:
    """Measure every workload under every mask.

    Parameters
    ----------
    entries
        The workloads.
    masks
        How cond is drawn.
    options
        How to measure.

    Returns
    -------
    iterator of Row
        Each as soon as it is measured.
    """
    return rows(entries, masks, lambda entry, mask: _measure(entry, mask, options))


def _measure(entry: Entry, mask: Mask, options: Options) -> Row:
    workload = entry.workload
    moved = access_pattern(workload).bytes_moved()
    sets, cache = _sets(moved, options.cold)
    made = [make_operands(workload, mask, seed) for seed in range(sets)]
    contest: Contest[Operands, Call] = Contest(made, _check, lambda call: call)
    kernel = contest.add_kernels(workload, options, calls_of, _own_output)
    contest.add_peers(workload, options.peers)
    probes = {PROBE + name: probe for name, probe in roof.probes(moved, sets).items()}
    calls = contest.contestants | {name: probe.call for name, probe in probes.items()}
    rounds = options.rounds or _affordable(calls)
    turns = functools.partial(take_turns, pause=PAUSE)
    repeats = {name: probe.repeats for name, probe in probes.items()}
    timings = {
        name: Timing(tuple(s / repeats.get(name, 1) for s in timing.seconds))
        for name, timing in turns(calls, rounds).items()
    }
    row = contest.row(
        entry,
        mask,
        kernel,
        cache=cache,
        rounds=rounds,
        timings=timings,
        roofs={name: probe.bytes / timings[name].median for name, probe in probes.items()},
        how={name: probe.how for name, probe in probes.items()},
    )
    return decided(row, calls, turns)


def calls_of(kernel: te_select.Kernel, sets: Sequence[Operands]) -> list[Call]:
    """Calls of the exported function on tensors made once, as most peers do it.

    NumPy has no DLPack for complex numbers and the types of ml_dtypes, so these go as arrays.
    """
    arrays = [(each.cond, each.then, each.else_, each.out) for each in sets]
    try:
        tensors = [tuple(map(tvm_ffi.from_dlpack, four)) for four in arrays]
    except (BufferError, RuntimeError, TypeError):
        return [functools.partial(kernel, *four) for four in arrays]
    return [functools.partial(kernel.function, *four) for four in tensors]


def _own_output(_value: Any, operands: Operands) -> Array:
    return operands.out


def _check(call: Call, operands: Operands, result: Result[Operands]) -> str:
    operands.out.reshape(-1).view("u1")[...] = POISON
    return difference(result(call(), operands), operands)


def _affordable(calls: Mapping[str, Call]) -> int:
    """How many rounds a row has time for; a turn is a pause, a warm-up and a sample."""
    start = time.perf_counter()
    for call in calls.values():
        call()
    turn = 2 * (time.perf_counter() - start) + (PAUSE + WARM_UP) * len(calls)
    return max(FEWEST_ROUNDS, min(ROUNDS, int(_ROW_SECONDS / turn)))


def _sets(moved: int, cold: bool) -> tuple[int, str]:
    """How many sets of operands, and how much of them the caches hold at a call."""
    if not cold:
        return 1, "hot"
    memory = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # A quarter: peers keep copies of their own.
    most = max(2, min(_MOST_SETS, memory // 4 // max(moved, 1)))
    wanted = 2 * last_level_cache() // max(moved, 1) + 2
    if wanted <= most:
        return wanted, "cold"
    return most, f"of {most} sets of operands in turns, less than twice the last-level cache"


def last_level_cache() -> int:
    """Bytes of the largest cache; 32 MB if the system hides it."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    sizes = [32 << 20]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text().strip()
        sizes.append(int(text[:-1]) * units.get(text[-1:], 1) if text[-1:] in units else 0)
    return max(sizes)
