"""Measures the profile of this machine, in under 30 seconds.

Every decision is measured with kernels of the default schedule that differ only in one knob and
take turns. A threshold is the size that loses the least over all sizes that were tried. If the
current threshold loses nothing, it stays. The thresholds of stores past the cache are measured
twice, because they move with what the neighbours of a virtual machine do. If they differ, they are
unsure, and the current ones stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import te_select
from te_select.backends.cpu.profile import of_this_machine
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.call.cpu.profile import NEVER, Profile, from_bytes
from te_select.timing.operands import Mask, Operands, make_operands, placed
from te_select.timing.rounds import take_turns

__all__ = ["Comparison", "Measured", "measure", "of_this_machine", "text_of"]

ROUNDS = 10
UNSURE = 1.5  # thresholds that differ by more; the sizes that are tried are a factor of 2 apart
MEGABYTE = 1 << 20
SIZES = tuple(MEGABYTE << k for k in range(7))  # bytes of output, to 64 MB
THREAD_SIZES = tuple(1 << k for k in range(15, 23))  # bytes moved, 32 KB to 4 MB
BYTES_AN_ELEMENT = 13  # of float32: 4 each for then, else and out, and 1 for cond
CLEAR = 1.03  # times as fast; less is noise
AHEAD = 64  # bytes; a vector's store
STEPS = 5  # steps of a measurement, for its progress
_SERIAL, _PARALLEL = 0, 1 << 16  # bytes per thread
Call = Callable[[], Any]


@dataclass(frozen=True)
class Comparison:
    """One choice at one size.

    Parameters
    ----------
    decision
        The decision, in words.
    threads
        How many threads.
    bytes
        Bytes moved; bytes of output if little is read.
    ratio
        How many times as fast the second way is.
    """

    decision: str
    threads: int
    bytes: int
    ratio: float


@dataclass(frozen=True)
class Measured:
    """A measured profile.

    Parameters
    ----------
    decisions
        By the keys of `te_select.runtime.call.cpu.profile.DECISIONS`.
    comparisons
        The measurements behind them.
    unsure
        Thresholds, in bytes, that differed between the halves of the rounds, by ``"stream"`` or
        ``"fill"``; of all threads, or of one.
    """

    decisions: Mapping[str, int]
    comparisons: tuple[Comparison, ...]
    unsure: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def doubts(self) -> list[str]:
        """What is unsure, in words, one line for each."""
        what = {"stream": "moved", "fill": "of output"}
        lines = []
        for name, firsts in self.unsure.items():
            one, other = (from_bytes(first, what[name]) for first in firsts)
            by = f"{one} by half of the rounds, {other} by the others"
            lines.append(f"{name} is unsure and stays: {by}")
        return lines


def measure(
    current: Profile,
    step: Callable[[int, int], None] = lambda done, total: None,
    rounds: int = ROUNDS,
) -> Measured:
    """Measure the profile of this machine.

    Parameters
    ----------
    current
        The profile in effect. A decision of it stays unless another one is better.
    step
        Called with the number of finished steps and the number of all steps.
    rounds
        How many turns each way of a comparison gets.

    Returns
    -------
    Measured
        The profile, and the measurements behind it.
    """
    threads = int(current.machine["threads"])
    caches = -(-threads // int(current.machine["threads_per_l3"]))
    decisions: dict[str, int] = {}
    seen: list[Comparison] = []
    bench = _Bench(rounds)
    unsure: dict[str, tuple[int, int]] = {}
    halves: dict[str, list[tuple[int, int]]] = {"stream": [], "fill": []}  # by one thread, by all
    for half in range(2):
        step(half, STEPS)
        for name, found in halves.items():
            rows = bench.streaming(name, threads)
            found.append((_first(rows, 1), _first(rows, threads)))
            seen += rows
    for name, found in halves.items():
        keys = (f"{name}_per_thread", f"{name}_per_l3")
        pairs = list(zip(*found, strict=True))
        differ = [pair for pair in pairs if max(pair) > UNSURE * min(pair)]
        if differ:
            unsure[name] = differ[-1]
            decisions |= {key: current.decisions[key] for key in keys}
        else:
            one, several = (round(math.sqrt(a * b)) for a, b in pairs)
            decisions |= dict(zip(keys, shares(one, several, threads, caches), strict=True))
    step(2, STEPS)
    decisions["bytes_per_thread"] = current.decisions["bytes_per_thread"]
    if threads > 1:
        rows = bench.second_thread()
        seen += rows
        decisions["bytes_per_thread"] = threshold([(r.bytes, r.ratio / CLEAR) for r in rows]) // 2
    step(3, STEPS)
    *random, blocks = bench.skipping()
    decisions["skip"] = 2 if min(row.ratio for row in random) > 1 / CLEAR else 0
    if not decisions["skip"] and blocks.ratio > CLEAR:
        decisions["skip"] = 1
    step(4, STEPS)
    walk = bench.backwards()
    decisions["backwards"] = current.decisions["backwards"]
    if not 1 / CLEAR < walk.ratio < CLEAR:
        decisions["backwards"] = int(walk.ratio > 1)
    seen += [*random, blocks, walk]
    step(STEPS, STEPS)
    return Measured(decisions, tuple(seen), unsure)


def _first(rows: Sequence[Comparison], threads: int) -> int:
    return threshold([(row.bytes, row.ratio) for row in rows if row.threads == threads])


def threshold(ratios: Sequence[tuple[int, float]]) -> int:
    """Choose the size from which on the second of two ways is used.

    Parameters
    ----------
    ratios
        Sizes in bytes, in growing order, each with how many times as fast the second way is.

    Returns
    -------
    int
        Bytes, half-way between two sizes on a logarithmic scale; `NEVER` for never. It is not less
        than the least size: what is faster below that was not measured.
    """
    middles = (round(math.sqrt(a * b)) for (a, _), (b, _) in pairwise(ratios))
    between = [ratios[0][0], *middles, NEVER]

    def lost(first: int) -> float:
        """By the logarithm, over all sizes; of equal choices, the one in the middle of the list."""
        return sum(
            max(0.0, -math.log(ratio) if size >= first else math.log(ratio))
            for size, ratio in ratios
        )

    return min(between, key=lost)


def shares(one: int, several: int, threads: int, caches: int) -> tuple[int, int]:
    """Divide thresholds for one thread and for several into shares of threads and of caches.

    A threshold is ``per_thread * threads + per_l3 * caches``. No share is negative: if one would
    be, only the threshold of several threads is used.
    """
    if several >= NEVER:
        return NEVER, 0
    if one >= NEVER or threads == caches:
        return 0, several // caches
    per_thread = (several - one * caches) // (threads - caches)
    if per_thread < 0:
        return 0, several // caches
    per_l3 = one - per_thread
    return (several // threads, 0) if per_l3 < 0 else (per_thread, per_l3)


class _Bench:
    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def kernel(self, workload: Workload, **knobs: int) -> te_select.Kernel:
        """A kernel of the default config with some knobs changed."""
        return te_select.compile(workload, tuning_logs=False, config=knobs)

    def streaming(self, name: str, threads: int) -> list[Comparison]:
        """Compare stores past the cache, on one thread and on all, by half of the rounds."""
        side = ("n",) if name == "stream" else ()
        workload = Workload(("n",), side, side, auto_broadcast="multidirectional")
        what = {"stream": "past the cache", "fill": "past the cache, where little is read"}[name]
        moved = 1 if name == "fill" else BYTES_AN_ELEMENT / 4
        rows = []
        for count, grain in sorted({1: _SERIAL, threads: _PARALLEL}.items()):
            kernels = [
                self.kernel(workload, stream_from=first, bytes_per_thread=grain) for first in (0, 1)
            ]
            for size in SIZES:  # by itself: larger arrays would take it out of the caches
                operands = make_operands(workload.bind({"n": size // 4}), Mask())
                turns = -(-self.rounds // 2)
                rows.append(_compared(what, count, round(size * moved), operands, kernels, turns))
        return rows

    def second_thread(self) -> list[Comparison]:
        """Compare one thread with two."""
        rows = []
        for moved in THREAD_SIZES:
            size = moved // BYTES_AN_ELEMENT // 64 * 64
            workload = _flat(size)
            operands = make_operands(workload, Mask())
            grain = access_pattern(workload).bytes_moved() // 2
            kernels = [
                self.kernel(workload, stream_from=0, bytes_per_thread=each) for each in (0, grain)
            ]
            rows.append(_compared("a second thread", 2, moved, operands, kernels, self.rounds))
        return rows

    def skipping(self) -> list[Comparison]:
        """Compare without and with a look at cond: random masks, then one in long blocks."""
        side = 1024
        cases = {
            "random": (_flat(1 << 20), Mask()),
            "random, beyond the caches": (_flat(1 << 24), Mask()),
            "random, read again": (Workload((1, 1, side, side), (1, 4, side, side), ()), Mask()),
            "in blocks": (_flat(1 << 22), Mask(block=1 << 14)),
        }
        calls = {}
        for name, (workload, mask) in cases.items():
            operands = make_operands(workload, mask)
            for skip in (0, 1):
                kernel = self.kernel(workload, skip=skip, bytes_per_thread=_PARALLEL)
                calls[f"{name} {skip}"] = call(kernel, operands)
        timed = take_turns(calls, 2 * self.rounds)
        return [
            Comparison(
                f"a look at cond, {name}",
                0,
                access_pattern(workload).bytes_moved(),
                timed[f"{name} 1"].ratio(timed[f"{name} 0"]),
            )
            for name, (workload, _) in cases.items()
        ]

    def backwards(self) -> Comparison:
        """Compare forwards with backwards; by the low address bits, out is just ahead of inputs."""
        workload = _flat(1 << 16)
        operands = placed(make_operands(workload, Mask()), AHEAD)
        kernels = [self.kernel(workload, backwards=walk, bytes_per_thread=0) for walk in (0, 1)]
        moved = access_pattern(workload).bytes_moved()
        what = "backwards, out lying just ahead"
        return _compared(what, 1, moved, operands, kernels, 2 * self.rounds)


def call(kernel: te_select.Kernel, operands: Operands) -> Call:
    """The kernel on one set of operands."""
    four = (operands.cond, operands.then, operands.else_, operands.out)
    return lambda: kernel(*four[:3], out=four[3])


def _flat(elements: int) -> Workload:
    return Workload((elements,), (elements,), (elements,))


def _compared(
    what: str,
    threads: int,
    size: int,
    operands: Operands,
    kernels: Sequence[te_select.Kernel],
    rounds: int,
) -> Comparison:
    """Let two kernels take turns on the same operands."""
    calls = {str(k): call(kernel, operands) for k, kernel in enumerate(kernels, 1)}
    one, two = take_turns(calls, rounds).values()
    return Comparison(what, threads, size, two.ratio(one))


def text_of(measured: Measured, about: str) -> str:
    """The text of the user's file, which libraries read."""
    lines = [f"# {about}", *(f"{key} = {value}" for key, value in measured.decisions.items())]
    return "".join(f"{line}\n" for line in lines)
