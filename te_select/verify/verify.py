"""Checks of a kernel against NumPy, bit for bit.

Operands are random bits, so NaN payloads, negative zeros and subnormals all occur. The result is
compared with NumPy's as unsigned integers. The bytes around ``out`` must not change, wherever the
operands lie. No memory outside of them may be used.
"""

import faulthandler
import functools
import mmap
import shlex
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from te_select.base import forks, kinds
from te_select.errors import ArgumentError, ArtifactError, caught, suppress
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.call.kernel import Kernel
from te_select.verify.checks import CHECKS, ENDS, Operands
from te_select.verify.reference import first_difference, placed

# Of named dims: none, one, those about vectors, and more than two tiles of a GPU.
DIM_SIZES = (0, 1, 7, 16, 33, 65, 1023, 20_001)
MEMORY_LIMIT = 1 << 19  # bytes of operands; named dims are made smaller to stay below it
_BOUNDS = "bounds"
_PATIENCE = 120  # seconds; the check takes some ms for each set of sizes


@dataclass(frozen=True)
class CheckResult:
    """What one check of one kernel found.

    Parameters
    ----------
    kernel
        The kernel's name.
    check
        One of `CHECKS`.
    sizes
        The sizes of the named dims.
    passed
        Whether every bit was as in NumPy's result and nothing else was written.
    message
        What went wrong, with the first differing index and both bit patterns; empty if it passed.
    command
        The shell command that runs this check again.
    """

    kernel: str
    check: str
    sizes: dict[str, int]
    passed: bool
    message: str
    command: str


def with_numpy(kernel: Kernel) -> Any:
    """The kernel as a callable that takes NumPy arrays and writes into ``out``."""
    adapter = kinds.kind(kernel.kind).with_numpy
    return kinds.load(adapter)(kernel) if adapter else kernel


def verify_kernel(
    kernel: Any, seed: int = 0, checks: Iterable[str] | None = None
) -> list[CheckResult]:
    """Compare a kernel with NumPy on every kind of data that can break a Select.

    Parameters
    ----------
    kernel
        Has a ``workload`` and a ``path``, which may be None, and takes cond, then, else_ and
        ``out=``. If it works on copies of its operands, it has a true attribute ``copies``.
    seed
        Seed of the random data.
    checks
        Names from `CHECKS`; all by default. They run in the order of `CHECKS`.

    Returns
    -------
    list of CheckResult
        One for each check and each set of sizes of the named dims. ``"bounds"`` has one for all
        sets. It has none for a kernel that works on copies.

    Raises
    ------
    ArgumentError
        If a check does not exist.
    ArtifactError
        If this machine cannot run the kernel.
    """
    wanted = set(CHECKS if checks is None else checks)
    if unknown := sorted(wanted - set(CHECKS)):
        raise ArgumentError(f"check {unknown[0]!r} does not exist; expected {', '.join(CHECKS)}")
    results = []
    sets = dim_sizes(kernel.workload)
    for sizes in sets:
        operands = Operands(kernel.workload.bind(sizes), seed)
        for check in CHECKS:
            if check in wanted and check != _BOUNDS:
                operands.start(check, seed)
                results.append(_result(kernel, seed, check, sizes, _check(kernel, operands, check)))
        del operands  # the next ones may need the memory
    if _BOUNDS in wanted and not getattr(kernel, "copies", False):
        results.append(_bounds(kernel, sets, seed))
    return results


def dim_sizes(workload: Workload) -> list[dict[str, int]]:
    """Sets of sizes for the named dims: all are 1, then different names get different sizes.

    Parameters
    ----------
    workload
        The workload. A workload without names has one set, which is empty.

    Returns
    -------
    list of dict
        The sets, each within `MEMORY_LIMIT`.
    """
    if not workload.dim_names:
        return [{}]
    pattern = access_pattern(workload)
    sets = [dict.fromkeys(workload.dim_names, 1)]
    for first in range(len(DIM_SIZES)):
        sizes = {
            name: DIM_SIZES[(first + i) % len(DIM_SIZES)]
            for i, name in enumerate(workload.dim_names)
        }
        while pattern.bytes_moved(sizes) > MEMORY_LIMIT and max(sizes.values()) > 1:
            largest = max(sizes, key=sizes.__getitem__)
            sizes[largest] //= 2
        if sizes not in sets:
            sets.append(sizes)
    return sets


def _check(kernel: Any, operands: Operands, check: str) -> str:
    """Run one check; what is wrong, or nothing."""
    for place in CHECKS[check](operands):
        message = run(kernel, operands)
        if message:
            return f"{message}, if {place}" if place else message
        if place and not operands.selected:
            operands.selected = operands.arrays()[3].tobytes()
    return ""


def run(kernel: Any, operands: Operands) -> str:
    """Run a kernel once; what is wrong with it, in one line, or nothing."""
    buffer = operands.buffers["out"]
    buffer.fill()
    *inputs, _ = operands.arrays()
    *given, out = operands.arguments()
    try:
        kernel(*given, out=out)
    except ArtifactError:  # this machine cannot run it, and the other checks would say the same
        raise
    except caught(
        Exception
    ) as error:  # an error of a kernel is a result, and the other checks go on
        return f"{type(error).__name__}: {error}"
    if buffer.touched():
        return "bytes outside out were written"
    if operands.selected and out.tobytes() == operands.selected:
        return ""
    difference = first_difference(out, *placed(operands.workload, *inputs))
    return difference or ("operands were changed" if operands.selected else "")


def _bounds(kernel: Any, sets: Sequence[dict[str, int]], seed: int) -> CheckResult:
    """Run the kernel in a process of its own, which ends if memory outside an operand is used."""
    reached = mmap.mmap(-1, 2)  # shared with the process: the set of sizes, and the end
    run = functools.partial(_run_at_ends, kernel, sets, seed, reached)
    status = forks.try_in_child(run, _PATIENCE)
    if status == -signal.SIGALRM:  # perhaps not by the kernel: threads of the parent may hold locks
        status = forks.try_in_child(run, _PATIENCE)
    if not status:
        return _result(kernel, seed, _BOUNDS, {}, "")
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    message = f"a process of its own ended with {name}"
    if -status == signal.SIGALRM:
        message = f"a process of its own took longer than {_PATIENCE} s"
    if -status in (signal.SIGSEGV, signal.SIGBUS):
        message = f"memory right {ENDS[reached[1]]} an operand was used ({name})"
    return _result(kernel, seed, _BOUNDS, sets[reached[0]], message)


def _run_at_ends(
    kernel: Any, sets: Sequence[dict[str, int]], seed: int, reached: mmap.mmap
) -> None:
    faulthandler.disable()  # the message of the result says what it would
    for k, sizes in enumerate(sets):
        operands = Operands(kernel.workload.bind(sizes), seed)
        operands.start(_BOUNDS, seed)
        for end, _ in enumerate(CHECKS[_BOUNDS](operands)):
            reached[0] = k
            reached[1] = end
            *inputs, out = operands.arrays()
            with suppress(Exception):  # the other checks tell of it
                kernel(*inputs, out=out)


def _result(kernel: Any, seed: int, check: str, sizes: dict[str, int], message: str) -> CheckResult:
    path = str(kernel.path or "PATH")
    name = kernel.workload.name
    words = ("te-select", "verify", path, "--kernel", name, "--seed", str(seed), "--check", check)
    return CheckResult(name, check, sizes, not message, message, shlex.join(words))
