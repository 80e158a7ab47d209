"""The roof: the bandwidth of a copy and of a select in C, probed where a kernel is measured.

Both are compiled for this very CPU. They move as many bytes as the workload beside which they run.
A probe tries plain and streaming stores, with one thread and with all, and takes the fastest.
"""

import ctypes
import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from te_select.backends.c_compiler import open_library
from te_select.errors import ToolchainError
from te_select.timing.cores import threads
from te_select.timing.inputs import LINE, aligned_empty
from te_select.timing.rounds import repeats_for, timed
from te_select.verify.reference import Array

_SOURCE = Path(__file__).with_name("roof.c")
_OPTIONS = ("-O3", "-march=native", "-fopenmp")
_SHORT = 50e-6  # seconds; a shorter probe repeats itself, so that Python's call costs little
_TRIALS = 5
_MOST = 0.1  # seconds of the trials of a probe; beside busy programs all of them took 18 s
_COPY_BYTES, _SELECT_BYTES = 8, 13  # moved per element of float32
_Run = Callable[[int], None]


@dataclass(frozen=True)
class Probe:
    """One probe of the roof.

    Parameters
    ----------
    call
        Runs it `repeats` times.
    repeats
        How often a call runs it.
    bytes
        Bytes that one run moves: read and written.
    how
        Which stores, and how many threads, were the fastest.
    seconds
        Seconds of its fastest run, when it was chosen.
    """

    call: Callable[[], object]
    repeats: int
    bytes: int
    how: str
    seconds: float


def bandwidth(moved: int) -> float | None:
    """Measure the roof of this machine's CPUs.

    Parameters
    ----------
    moved
        Bytes that the workload reads and writes.

    Returns
    -------
    float or None
        Bytes per second of the faster probe; None without a C compiler.
    """
    try:
        return max(probe.bytes / probe.seconds for probe in probes(moved).values())
    except ToolchainError:
        return None


def probes(footprint: int, sets: int = 1) -> dict[str, Probe]:
    """Make the probes for a footprint.

    Parameters
    ----------
    footprint
        Bytes that the workload reads and writes.
    sets
        Sets of memory that calls use in turns, so that no call finds its set in a cache.

    Returns
    -------
    dict
        ``"copy"`` and ``"select"``.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    library = _library()
    lanes = library.roof_lanes()
    made = {}
    for name, element_bytes in (("copy", _COPY_BYTES), ("select", _SELECT_BYTES)):
        # Whole lines, so that every operand begins on one.
        elements = max(LINE, footprint // element_bytes // LINE * LINE)
        memory = [probe_memory(name, elements) for _ in range(sets)]
        variants = {
            f"{'streaming' if stream else 'plain'} stores, {count} threads, {4 * lanes}-byte "
            "vectors": runner(memory, elements, stream, count)
            for stream in (0, 1)
            for count in sorted({1, threads()})
        }
        seconds = {how: _fastest(run, _repeats(run)) for how, run in variants.items()}
        how = min(seconds, key=seconds.__getitem__)
        repeats = 1 if sets > 1 else _repeats(variants[how])
        call = functools.partial(variants[how], repeats)
        made[name] = Probe(call, repeats, element_bytes * elements, how, seconds[how])
    return made


def probe_memory(name: str, elements: int) -> list[Array]:
    """The operands of a probe, with pages in memory and a mask of density 50 %."""
    arrays = [aligned_empty((elements,), np.dtype(np.float32)) for _ in range(3)]
    for array in arrays:
        array[...] = 1
    if name == "copy":
        return arrays[:2]
    cond = aligned_empty((elements,), np.dtype(np.uint8))
    cond[...] = np.frombuffer(np.random.default_rng(0).bytes(elements), np.uint8) & 1
    return [cond, *arrays]


def runner(memory: list[list[Array]], elements: int, stream: int, count: int) -> _Run:
    """A variant of a probe, which takes the number of repeats."""
    function = _library().roof_move
    # Such pointers keep the arrays alive. A copy has no mask and no other side.
    pointers = [
        [None] * (4 - len(arrays)) + [each.ctypes.data_as(ctypes.c_void_p) for each in arrays]
        for arrays in memory
    ]
    size = ctypes.c_int64(elements)
    turns = itertools.cycle(pointers)

    def run(repeats: int) -> None:
        function(*next(turns), size, stream, count, ctypes.c_int64(repeats))

    return run


def _repeats(run: _Run) -> int:
    """Repeats for which the call from Python costs little."""
    return repeats_for(functools.partial(_fastest, run), _SHORT)


def _fastest(run: _Run, repeats: int) -> float:
    """Seconds per run of the fastest of a few calls; the first call is not counted."""
    run(repeats)
    seconds: list[float] = []
    while len(seconds) < _TRIALS and sum(seconds) < _MOST:
        seconds.append(timed(functools.partial(run, repeats)))
    return min(seconds) / repeats


@functools.cache
def _library() -> ctypes.CDLL:
    """Compile roof.c for this CPU, once per process."""
    library = open_library([_SOURCE], *_OPTIONS)
    library.roof_lanes.restype = ctypes.c_int64
    return library
