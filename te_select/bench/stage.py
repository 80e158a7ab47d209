"""Where contestants meet: what a bench needs of a machine."""

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm_ffi

from te_select.backends.cpu.environment import profile_here
from te_select.bench.peers.base import Call, Peer
from te_select.runtime.call.kernel import Kernel
from te_select.timing import roof
from te_select.timing.inputs import Operands
from te_select.timing.rounds import PAUSE, WARM_UP, Timing, take_turns
from te_select.verify.reference import Array, first_difference, placed

ROUNDS, FEWEST_ROUNDS = 15, 5
_ROW_SECONDS = 8.0  # a row that would take longer gets fewer rounds, which keeps a suite short
_MOST_SETS = 256  # binding more to a dozen systems takes longer than measuring
POISON = 0xA5  # a contestant that writes nothing leaves this
Result = Callable[[Any, Any], Array]  # from what a call returned and its set, the call's output


class Stage:
    """The CPUs of this machine. Other kinds override what differs.

    Parameters
    ----------
    target
        The name of the target. CPUs need none: this machine measures all of them.
    """

    def __init__(self, target: str) -> None:
        """Do nothing."""

    def count(self, moved: int, cold: bool) -> tuple[int, str]:
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

    def sets(self, made: Callable[[int], Operands], count: int) -> Sequence[Any]:
        """Make the sets of operands; ``made`` makes one from a seed."""
        return [made(seed) for seed in range(count)]

    def calls(self, kernel: Kernel, sets: Sequence[Any]) -> list[Call]:
        """Our own calls."""
        return calls_of(kernel, sets)

    def own_output(self, _value: Any, operands: Any) -> Array:
        """The output of our own call."""
        out: Array = operands.out
        return out

    def check(self, call: Call, operands: Any, result: Result) -> str:
        """Where the result of a call first differs from NumPy's; empty if the two are equal."""
        operands.out.reshape(-1).view("u1")[...] = POISON
        return difference(result(call(), operands), operands)

    def contestant(self, call: Call, _peer: Peer | None) -> Any:
        """What is timed of a call, which is ours if there is no peer."""
        return call

    def roofs(self, moved: int, count: int) -> dict[str, roof.Probe]:
        """The probes of the roof: a copy and a select in C."""
        return roof.probes(moved, count)

    def rounds(self, contestants: Mapping[str, Any]) -> int:
        """How many rounds a row has time for; a turn is a pause, a warm-up and a sample."""
        start = time.perf_counter()
        for call in contestants.values():
            call()
        turn = 2 * (time.perf_counter() - start) + (PAUSE + WARM_UP) * len(contestants)
        return max(FEWEST_ROUNDS, min(ROUNDS, int(_ROW_SECONDS / turn)))

    def take_turns(self, contestants: Mapping[str, Any], rounds: int) -> Mapping[str, Timing]:
        """Time contestants in turns."""
        return take_turns(contestants, rounds, pause=PAUSE)

    def queued(self, _contestants: Mapping[str, Any]) -> tuple[str, ...]:
        """The contestants whose times include the cost of their launches."""
        return ()


def calls_of(kernel: Kernel, sets: Sequence[Operands]) -> list[Call]:
    """Calls of the exported function on tensors made once, as most peers do it.

    NumPy has no DLPack for complex numbers and the types of ml_dtypes, so these go as arrays.
    """
    arrays = [each.arrays() for each in sets]
    try:
        tensors = [tuple(map(tvm_ffi.from_dlpack, four)) for four in arrays]
    except (BufferError, RuntimeError, TypeError):
        return [functools.partial(kernel, *four) for four in arrays]
    return [functools.partial(kernel.function, *four) for four in tensors]


def difference(got: Array, operands: Operands) -> str:
    """Where a result first differs from NumPy's; empty if the two are equal."""
    out = operands.out
    if got.dtype != out.dtype or got.shape != out.shape:
        return f"is {got.dtype} {list(got.shape)}, expected {out.dtype} {list(out.shape)}"
    views = placed(operands.workload, operands.cond, operands.then, operands.else_)
    return first_difference(got, *views)


def last_level_cache() -> int:
    """Bytes of a last-level cache, as libraries find it; at least 32 MB, as systems may hide it."""
    return max(32 << 20, int(profile_here().machine["l3"]))
