"""Measures the profile of this machine, in some 8 seconds.

Copies of one library take turns. They differ in one decision, which ``TE_SELECT_PROFILE`` has told
them. A threshold stays if the sizes next to it do not speak against it; else it is found by
bisection. Thresholds are measured twice, because they move with what the neighbours of a virtual
machine do. If they differ, a third pass decides; if all differ, the current ones stay.
"""

import bisect
import datetime
import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import tvm_ffi

from te_select.backends.cpu.environment import profile_here
from te_select.base import atomic, scratch
from te_select.compiler.export import export
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.records.doubt import are_busy
from te_select.runtime.call.cpu.profile import LOCATOR, NEVER, Profile, from_bytes
from te_select.timing.cores import busy_cores
from te_select.timing.inputs import Mask, Operands, make_operands, placed
from te_select.timing.rounds import take_turns

ROUNDS = 9
UNSURE = 1.5  # thresholds that differ by more
MEGABYTE = 1 << 20
SIZES = tuple(MEGABYTE << k for k in range(7))  # bytes of output, to 64 MB
THREAD_SIZES = tuple(1 << k for k in range(15, 23))  # bytes moved, 32 KB to 4 MB
BYTES_AN_ELEMENT = 13  # of float32: 4 each for then, else and out, and 1 for cond
CLEAR = 1.03  # speed-up; less is noise
STAYS = 1.05  # speed-up; a threshold for which less is lost next to it stays
AHEAD = 64  # bytes; a vector's store
SAMPLES = 4  # in a turn; the fastest counts. With one, a hypervisor moved ratios by 1.2, not 1.03
STEPS = 4  # steps of a measurement, for its progress
FEW_READS, ROWS_READ, SOME_READS = 50, 100, 150  # bytes for 100 of output
FLAT = Workload(("n",), ("n",), ("n",))
FILL = Workload(("n",), (), (), auto_broadcast="multidirectional")
ROWS = Workload(("n", 1), ("n", 48), (1, 48))  # one side is read
MASK = Workload((1, 1 << 20), (4, 1 << 20), ())  # cond is read again
# By threshold: its workload, the bytes for each element that it counts, and words for it.
COMPARED = {
    "one thread": (FLAT, BYTES_AN_ELEMENT, "past the cache"),
    "stream": (FLAT, BYTES_AN_ELEMENT, "past the cache"),
    "fill": (FILL, 4, "past the cache, where little is read"),
    "rows": (ROWS, 4, "past the cache, where one side is read"),
}
PAST = ("stream_per_thread", "stream_per_l3", "fill_per_thread", "fill_per_l3")
SECOND = "second thread"
_SERIAL = {"bytes_per_thread": NEVER}
_PARALLEL = {"bytes_per_thread": 1 << 16}
Call = Callable[[], Any]
Ways = Sequence[Mapping[str, int]]


@dataclass(frozen=True)
class Comparison:
    """Speed-up of the second way, at bytes moved, or at bytes of output if little is read."""

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
        Thresholds, in bytes, that differed in three passes, the two closest: by ``"stream"``,
        ``"fill"``, ``"rows"`` or ``"second thread"``; of all threads, or of one.
    """

    decisions: Mapping[str, int]
    comparisons: tuple[Comparison, ...]
    unsure: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def pairs(self) -> list[str]:
        """The decisions as ``KEY=NUMBER``."""
        return [f"{key}={value}" for key, value in self.decisions.items()]

    @property
    def doubts(self) -> list[str]:
        """What is unsure, in words, one line for each."""
        lines = []
        for name, firsts in self.unsure.items():
            what = "of output" if name in ("fill", "rows") else "moved"
            one, other = (from_bytes(first, what) for first in firsts)
            lines.append(f"{name} is unsure and stays: {one} in one pass, {other} in another")
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
    """
    threads = int(current.machine["threads"])
    decisions = dict(current.decisions)
    stream, fill = current.past_the_cache.values()
    is_late = decisions["fill_reads"] > ROWS_READ
    now = {
        "one thread": min(NEVER, decisions["stream_per_thread"] + decisions["stream_per_l3"]),
        "stream": stream,
        "fill": fill,
        "rows": fill if is_late else stream // 2,
    }
    if threads > 1:
        now[SECOND] = 2 * decisions["bytes_per_thread"]
    bench = Bench(threads, rounds)
    passes = []
    for number in range(2):
        step(number, STEPS)
        passes.append({name: bench.threshold(name, first) for name, first in now.items()})
    pairs = {}
    for name, first in now.items():
        seen = sorted(each[name] for each in passes)
        if seen[1] > UNSURE * seen[0]:
            seen = sorted((*seen, bench.threshold(name, first)))
        pairs[name] = min(pairwise(seen), key=lambda pair: pair[1] / pair[0])
    unsure = {name: pair for name, pair in pairs.items() if pair[1] > UNSURE * pair[0]}
    found = {name: round(math.sqrt(math.prod(pair))) for name, pair in pairs.items()}
    if "one thread" in unsure:
        unsure["stream"] = unsure.pop("one thread")
    found |= {name: now[name] for name in unsure}
    if "rows" not in unsure:
        is_late = 2 * found["rows"] > UNSURE * found["stream"]
        decisions["fill_reads"] = SOME_READS if is_late else FEW_READS
    alone, several = found["one thread"], found["stream"]
    if "stream" not in unsure and (alone, several) != (now["one thread"], stream):
        decisions |= shares("stream", alone, several, current.machine)
    late = max(found["fill"], found["rows"]) if is_late else found["fill"]
    if late != fill:
        decisions |= shares("fill", late // threads, late, current.machine)
    if threads > 1:
        decisions["bytes_per_thread"] = found[SECOND] // 2
    step(2, STEPS)
    *random, blocks = bench.skipping()
    decisions["skip"] = 2 if min(random) > 1 / CLEAR else int(blocks > CLEAR)
    step(3, STEPS)
    walk = bench.backwards()
    if not 1 / CLEAR < walk < CLEAR:
        decisions["backwards"] = int(walk > 1)
    step(STEPS, STEPS)
    return Measured(decisions, tuple(bench.seen), unsure)


def measure_if_reasoned() -> str:
    """Measure and keep the profile if it is only reasoned, and the machine is idle.

    Libraries that are loaded from then on use it. Says in one line what was done, or why nothing
    was; nothing if the profile is a measured one.
    """
    current = profile_here()
    if not current.advice:
        return ""
    busy = busy_cores()
    if not current.file:
        return "the profile was not measured: there is no folder for the user's configuration"
    if are_busy(busy):
        return f"the profile was not measured: {busy:.1f} cores are busy; te-select profile does it"
    keep(measure(current), current, busy)
    return f"the profile was only reasoned; it was measured, and is kept in {current.file}"


def keep(measured: Measured, current: Profile, busy: float) -> None:
    """Write the user's file, which libraries read; ``busy`` is how many cores others used."""
    about = (
        f"measured by te-select {metadata.version('te-select')} profile on "
        f"{datetime.date.today()}, {busy:.1f} cores busy"
    )
    lines = "".join(f"{line}\n" for line in (f"# {about}", *measured.pairs))
    atomic.replace(Path(current.file), lines.encode())


def crossover(ratio: Callable[[int], float], sizes: Sequence[int], current: int) -> int:
    """Find the size from which on the second of two ways is the faster one.

    Parameters
    ----------
    ratio
        Measures the speed-up of the second way at a size.
    sizes
        The sizes that may be tried, in bytes, in growing order.
    current
        The size that is used so far. It stays unless the next size below it or one of the next two
        from it on is clearly against it.

    It lies between two sizes, where the logarithm of the ratio is 0; `NEVER` for never. It is not
    less than the least size: what is faster below that was not measured.
    """
    ratio = functools.cache(ratio)
    first = bisect.bisect_left(sizes, current)
    low = 0
    high = len(sizes)
    if first > 0 and ratio(sizes[first - 1]) > STAYS:
        high = first - 1
    else:
        against = [k for k in range(first, high)[:2] if ratio(sizes[k]) < 1 / STAYS]
        if not against:
            return current
        low = against[-1] + 1
    found = bisect.bisect_left(sizes, True, low, high, key=lambda size: ratio(size) >= 1)
    if found == len(sizes):
        return NEVER
    if found == 0:
        return sizes[0]
    below, above = sizes[found - 1 : found + 1]
    slow, fast = math.log(ratio(below)), math.log(ratio(above))
    return round(below * math.pow(above / below, slow / (slow - fast)))


def shares(name: str, one: int, several: int, machine: Mapping[str, str | int]) -> dict[str, int]:
    """Divide thresholds for one thread and for all into shares of threads and of caches.

    A threshold is ``per_thread * threads + per_l3 * caches``. No share is negative: if one would
    be, only the threshold of all threads is used.
    """
    threads = int(machine["threads"])
    caches = -(-threads // int(machine["threads_per_l3"]))
    per_thread = 0
    per_l3 = several // caches
    if several >= NEVER:
        per_thread = NEVER
        per_l3 = 0
    elif one < NEVER and threads > caches and one * caches <= several:
        per_thread = (several - one * caches) // (threads - caches)
        per_l3 = one - per_thread
        if per_l3 < 0:
            per_thread = several // threads
            per_l3 = 0
    return {f"{name}_per_thread": per_thread, f"{name}_per_l3": per_l3}


class Bench:
    """Copies of a library that decide as they are told, and what was seen of them so far."""

    def __init__(self, threads: int, rounds: int) -> None:
        self.threads = threads
        self.rounds = rounds
        self.rounds_of_a_pass = -(-rounds // 2)
        self.seen: list[Comparison] = []
        self.copy = functools.cache(self._copy)
        with scratch.folder() as folder:
            path = folder / "kernels.so"
            export([FLAT, FILL, ROWS, MASK], path, tuning_logs=False)
            self._image = path.read_bytes()

    def _copy(self, text: str) -> tvm_ffi.Module:
        """A copy of the library, for which ``TE_SELECT_PROFILE`` is a text."""
        with scratch.folder() as folder:
            path = folder / "copy.so"
            path.write_bytes(self._image)
            module = tvm_ffi.load_module(str(path))
        with mock.patch.dict(os.environ, {"TE_SELECT_PROFILE": text}):
            module[LOCATOR]()  # its first use, at which it reads the variable
        return module

    def call(self, workload: Workload, operands: Operands, decisions: Mapping[str, int]) -> Call:
        """The kernel of a workload on operands, by some decisions."""
        kernel = self.copy(",".join(f"{key}={value}" for key, value in decisions.items()))
        tensors = map(tvm_ffi.from_dlpack, operands.arrays())
        return functools.partial(kernel[workload.name], *tensors)

    def compared(
        self, seen: tuple[str, int, int], kernel: tuple[Workload, Operands], ways: Ways, rounds: int
    ) -> float:
        """Speed-up of the second of two ways; ``seen`` begins its Comparison."""
        calls = {str(k): self.call(*kernel, way) for k, way in enumerate(ways)}
        one, two = take_turns(calls, rounds, samples=SAMPLES).values()
        self.seen.append(Comparison(*seen, two.ratio(one)))
        return self.seen[-1].ratio

    def threshold(self, name: str, current: int) -> int:
        """The bytes from which on stores past the cache, or a second thread, are faster."""
        if name == SECOND:
            return crossover(self.second_thread, THREAD_SIZES, current)
        workload, per_element, what = COMPARED[name]
        threads = 1 if name == "one thread" else self.threads
        grain = _SERIAL if threads == 1 else _PARALLEL
        ways = [grain | dict.fromkeys(PAST, first) for first in (NEVER, 0)]

        def ratio(size: int) -> float:
            count = size // per_element // (48 if workload is ROWS else 1)
            operands = make_operands(workload.bind({"n": count}), Mask())
            seen = (what, threads, size)
            return self.compared(seen, (workload, operands), ways, self.rounds_of_a_pass)

        return crossover(ratio, [size * per_element // 4 for size in SIZES], current)

    def second_thread(self, moved: int) -> float:
        """Compare one thread with two."""
        workload = FLAT.bind({"n": moved // BYTES_AN_ELEMENT // 64 * 64})
        ways = [_SERIAL, {"bytes_per_thread": access_pattern(workload).bytes_moved() // 2}]
        kernel = FLAT, make_operands(workload, Mask())
        seen = ("a second thread", 2, moved)
        return self.compared(seen, kernel, ways, self.rounds_of_a_pass)

    def skipping(self) -> list[float]:
        """Compare without and with a look at cond: random masks, then one in long blocks."""
        ways = [_PARALLEL | {"skip": skip} for skip in (0, 2)]
        ratios = []
        for name, workload, count, mask in (
            ("random", FLAT, 1 << 20, Mask()),
            ("random, beyond the caches", FLAT, 1 << 23, Mask()),
            ("random, read again", MASK, 1 << 20, Mask()),
            ("in blocks", FLAT, 1 << 22, Mask(block=1 << 14)),
        ):
            bound = workload.bind({"n": count})
            seen = (f"a look at cond, {name}", 0, access_pattern(bound).bytes_moved())
            kernel = workload, make_operands(bound, mask)
            ratios.append(self.compared(seen, kernel, ways, self.rounds))
        return ratios

    def backwards(self) -> float:
        """Compare forwards with backwards; by the low address bits, out is just ahead of inputs."""
        workload = FLAT.bind({"n": 1 << 16})
        kernel = FLAT, placed(make_operands(workload, Mask()), AHEAD)
        ways = [_SERIAL | {"backwards": walk} for walk in (0, 1)]
        seen = ("backwards, out lying just ahead", 1, access_pattern(workload).bytes_moved())
        return self.compared(seen, kernel, ways, 2 * self.rounds)
