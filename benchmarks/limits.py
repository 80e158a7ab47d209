"""Measures how near the x86 kernels are to the machine's limits.

Run ``python benchmarks/limits.py [SECTION ...]`` on an idle machine; without a section, all run.
Contestants take turns in one run, and a ratio is the median over the rounds.
The section ``sizes`` takes half of the memory.
"""

import argparse
import functools
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import decisions
import te_select
from te_select.backends.c_compiler import open_library
from te_select.bench.stage import calls_of
from te_select.bench.suite import DEFAULT
from te_select.operator.access import access_pattern
from te_select.runtime import c
from te_select.timing import roof
from te_select.timing.cores import threads
from te_select.timing.inputs import Mask, Operands, make_operands, placed
from te_select.timing.rounds import sample_in_turns, take_turns, timed

ROUNDS = 25
LARGE = 1 << 25
HALF = Mask()
BLOCKS = Mask(block=1 << 14)
LARGEST_BYTES = 8 << 30
BYTES_AN_ELEMENT = 13  # of float32: 4 each for then, else and out, and 1 for cond
DROPOUT = te_select.Workload((4, 12, 512, 512), (4, 12, 512, 512), (), "float16")
ROOF = "C with intrinsics, up to 436 MB (the roof)"
Call = Callable[[], Any]


def flat(elements: int, dtype: str = "float32") -> te_select.Workload:
    """A workload in which nothing broadcasts."""
    return te_select.Workload((elements,), (elements,), (elements,), dtype)


def call(kernel: te_select.Kernel, operands: Operands) -> Call:
    """The kernel on one set of operands, as the bench calls it."""
    return calls_of(kernel, [operands])[0]


def with_knobs(workload: te_select.Workload, **knobs: Any) -> te_select.Kernel:
    """A kernel of the default config with some knobs changed."""
    return te_select.compile(workload, tuning_logs=False, config=knobs)


def show(title: str, ratio: float, asked: str) -> None:
    """Print one line."""
    print(f"{title:72}{ratio:7.3f}   ({asked})", flush=True)


def handwritten() -> None:
    """Compare contiguous float32 with a select in C: non-temporal stores, equal threads."""
    operands = make_operands(flat(LARGE), HALF)
    probe = roof.runner([roof.probe_memory("select", LARGE)], LARGE, 1, threads())
    timed = take_turns(
        {"ours": call(te_select.compile(flat(LARGE)), operands), "C": lambda: probe(1)}, ROUNDS
    )
    show("2^25 float32, of the speed of C with intrinsics", timed["ours"].ratio(timed["C"]), "0.97")


def skipping() -> None:
    """Measure the gain of skipping on masks in blocks, and its cost on random ones."""
    random, blocks = (make_operands(flat(LARGE), mask) for mask in (HALF, BLOCKS))
    skips, reads = with_knobs(flat(LARGE), skip=1), with_knobs(flat(LARGE), skip=0)
    timed = take_turns(
        {
            "random": call(skips, random),
            "blocks": call(skips, blocks),
            "random, unskipped": call(reads, random),
        },
        ROUNDS,
    )
    gain = timed["blocks"].ratio(timed["random"])
    show("2^25 float32, cond in blocks of 16 K, of the random mask's speed", gain, "1.4")
    cost = timed["random"].ratio(timed["random, unskipped"])
    show("2^25 float32, random mask, of the speed without skipping", cost, "0.98")


def widths() -> None:
    """Bytes per second of every width on as many bytes."""
    rates: dict[str, float] = {}
    calls: dict[str, Call] = {}
    moved: dict[str, int] = {}
    for dtype in ("uint8", "float16", "float32", "float64", "complex128"):
        element = 1 + 3 * np.dtype(dtype).itemsize
        workload = flat((400 << 20) // element // 64 * 64, dtype)
        moved[dtype] = access_pattern(workload).bytes_moved()
        calls[dtype] = call(te_select.compile(workload), make_operands(workload, HALF))
    for dtype, timing in take_turns(calls, ROUNDS).items():
        rates[dtype] = moved[dtype] / timing.median
        show(f"400 MB of {dtype}, GB/s", rates[dtype] / 1e9, "")
    show("slowest width, of the fastest", min(rates.values()) / max(rates.values()), "0.9")


def awkward() -> None:
    """Odd sizes beside round ones, per element."""
    round_rows = (4096, 1024)
    for title, odd, even, by_row, moved in (
        ("2^24 + 7", ((1 << 24) + 7,), (1 << 24,), False, 0),
        ("[4099,1021]", (4099, 1021), round_rows, False, 0),
        ("[4099,1021] with cond [4099,1]", (4099, 1021), round_rows, True, 0),
        ("[65537,63] with cond [65537,1]", (65537, 63), (65536, 64), True, 0),
        ("[4096,1024], cond by row, all half a page on", round_rows, round_rows, True, 512),
        ("[65536,64], cond by row, all half a line on", (65536, 64), (65536, 64), True, 8),
    ):
        elements = [math.prod(shape) for shape in (odd, even)]
        # Both use the same memory, because the placement of pages changes the speed.
        memory = make_operands(flat(max(elements) + moved), HALF)
        calls = {
            "odd": call(*part(memory, odd, by_row, moved)),
            "round": call(*part(memory, even, by_row, 0)),
        }
        timed = take_turns(calls, ROUNDS)
        ratio = timed["odd"].ratio(timed["round"]) * elements[0] / elements[1]
        show(f"{title}, per element of the round size's speed", ratio, "0.97")


def part(
    memory: Operands, sides: tuple[int, ...], by_row: bool, first: int
) -> tuple[te_select.Kernel, Operands]:
    """A kernel, and operands of ``sides`` from element ``first`` of a larger memory on."""
    rows = (sides[0], 1) if by_row else sides
    workload = te_select.Workload(rows, sides, sides)
    arrays = (
        operand[start : start + math.prod(dims)].reshape(dims)
        for operand, dims, start in (
            (memory.cond, rows, 0),
            (memory.then, sides, first),
            (memory.else_, sides, first),
            (memory.out, sides, first),
        )
    )
    return te_select.compile(workload), Operands(workload, *arrays)


def with_names(workload: te_select.Workload) -> te_select.Workload:
    """The workload with a name for every size except 1; equal sizes have the same name."""
    cond, then, else_ = (
        [dim if dim == 1 else f"n{dim}" for dim in shape] for shape in workload.shapes
    )
    rule = workload.auto_broadcast
    return te_select.Workload(cond, then, else_, workload.dtype, rule, workload.axis)


def named() -> None:
    """Named dims beside ints, on every workload of the suite."""
    ratios = {}
    for entry in DEFAULT:
        operands = make_operands(entry.workload, HALF)
        calls = {
            "int": call(te_select.compile(entry.workload), operands),
            "named": call(te_select.compile(with_names(entry.workload)), operands),
        }
        timed = take_turns(calls, ROUNDS)
        ratios[entry.name] = timed["named"].ratio(timed["int"])
    for name, ratio in sorted(ratios.items(), key=lambda item: item[1])[:5]:
        show(f"named dims, {name}, of the speed with ints", ratio, "0.95; the slowest five")


def placement() -> None:
    """Place arrays whole megabytes apart and out a little further: loads may hit pending stores."""
    for workload in (flat(1 << 16), flat(LARGE), DROPOUT):
        kernel = te_select.compile(workload)
        operands = make_operands(workload, HALF)
        calls = {str(ahead): call(kernel, placed(operands, ahead)) for ahead in (0, 64, 512, 4032)}
        timed = take_turns(calls, ROUNDS)
        for ahead in list(calls)[1:]:
            title = f"{workload.dtype} {list(workload.out_shape)}, out {ahead} bytes ahead"
            show(title, timed["0"].median / timed[ahead].median, "1")


def first_task() -> None:
    """What a caller with 64 threads does after 20 ms of idling before its first task.

    The least of 100, because the helpers stop the caller if cores are few.
    """
    sources = [c.FOLDER / "cpu" / name for name in ("pool.c", "pool_cores.c", "pool_team.c")]
    library = open_library([*sources, Path(__file__).with_name("first_task.c")])
    least = math.inf
    for _ in range(101):  # the first starts the helpers
        time.sleep(0.02)
        least = min(least, library.te_select_before_first_task(64))
    show("64 threads, before the caller's first task after 20 ms, us", least / 1e3, "15")


def pause() -> None:
    """Ten calls after 20 ms of idling, and ten warm ones; torch.where runs on OpenMP's threads."""
    first_task()
    for megabytes in (1, 2, 4, 8):
        workload = flat(megabytes << 18)
        operands = make_operands(workload, HALF)
        calls = {
            "ours": call(with_knobs(workload), operands),
            "one thread": call(with_knobs(workload, bytes_per_thread=0), operands),
            **_torch(operands),
        }
        warm = {name: functools.partial(ten, each, idle=0) for name, each in calls.items()}
        idle = {f"{name}, idle": functools.partial(ten, each) for name, each in calls.items()}
        for name, timing in sample_in_turns(warm | idle, ROUNDS).items():
            show(f"{megabytes} MB of output, ten calls, {name}, us", timing.median * 1e6, "")


def ten(call: Call, idle: float = 0.02) -> float:
    """Seconds of ten calls, after ten others and some of idling."""
    timed(call, 10)
    time.sleep(idle)
    return 10 * timed(call, 10)


def sizes() -> None:
    """Measure GB/s from 1 MB to half of the memory, in turns with torch.where and the roof."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    largest = make_operands(flat(min(LARGEST_BYTES, memory // 2) // BYTES_AN_ELEMENT), HALF)
    four = (largest.cond, largest.then, largest.else_, largest.out)
    moved = 1 << 20
    while (elements := moved // BYTES_AN_ELEMENT) <= largest.out.size:
        workload = flat(elements)
        operands = Operands(workload, *(array[:elements] for array in four))
        calls = {"te-select": call(te_select.compile(workload), operands), **_torch(operands)}
        probe = roof.probes(min(moved, LARGE * BYTES_AN_ELEMENT))["select"]
        timed = take_turns({**calls, ROOF: probe.call}, 15)
        for name, timing in timed.items():
            size = probe.bytes * probe.repeats if name == ROOF else moved
            rate = size / timing.median / 1e9
            show(f"{moved >> 20} MB moved: {name}, GB/s", rate, "")
        moved *= 2


def _torch(operands: Operands) -> dict[str, Call]:
    """The call of torch.where with out=, where torch is installed."""
    try:
        import torch  # noqa: PLC0415 - optional
    except ModuleNotFoundError:
        return {}
    torch.set_num_threads(threads())
    four = (operands.cond, operands.then, operands.else_, operands.out)
    cond, then, else_, out = map(torch.from_numpy, four)
    return {"torch.where, out=": lambda: torch.where(cond, then, else_, out=out)}


SECTIONS: dict[str, Callable[[], None]] = {
    section.__name__: section
    for section in (
        *(handwritten, decisions.machine, skipping, decisions.skips, widths, awkward, placement),
        *(named, pause, sizes),
    )
}


def main() -> int:
    """Print the figures of the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="what to measure")
    options = parser.parse_args()
    for name in options.sections or SECTIONS:
        SECTIONS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
