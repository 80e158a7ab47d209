"""Checks of a kernel against NumPy, bit for bit.

Operands are random bits, so NaN payloads, negative zeros and subnormals all occur. The result is
compared with NumPy's as unsigned integers. The bytes around ``out`` must not change.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from te_select.checking.guarded import Bytes, Guarded
from te_select.checking.reference import Array, first_difference, ints, placed, special_bits
from te_select.errors import ArgumentError, ArtifactError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import Shape
from te_select.operator.dtypes import numpy_dtype
from te_select.operator.workload import Workload

DIM_SIZES = (1, 7, 33, 1000)  # of named dims: 1, less than a vector, more than one, many vectors
MEMORY_LIMIT = 2 << 30  # bytes of operands; named dims are made smaller to stay below it
LONGEST_RUN = 1 << 16  # elements; long enough that whole blocks are skipped
_CACHE_LINE = 64
_ONE = np.uint8(1)


class SelectKernel(Protocol):
    """The part of a kernel that `verify_kernel` needs."""

    @property
    def workload(self) -> Workload:
        """The workload that it computes."""

    @property
    def path(self) -> Path | None:
        """The library that it was loaded from."""

    def __call__(self, cond: Any, then: Any, else_: Any, *, out: Any = None) -> Any:
        """Compute into ``out``."""


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


def verify_kernel(
    kernel: SelectKernel, seed: int = 0, checks: Iterable[str] | None = None
) -> list[CheckResult]:
    """Compare a kernel with NumPy on every kind of data that can break a Select.

    Parameters
    ----------
    kernel
        The kernel.
    seed
        Seed of the random data.
    checks
        Names from `CHECKS`; all by default. They run in the order of `CHECKS`.

    Returns
    -------
    list of CheckResult
        One for each check and each set of sizes of the named dims.

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
    for sizes in dim_sizes(kernel.workload):
        operands = _Operands(kernel.workload.bind(sizes), seed)
        for check, prepare in CHECKS.items():
            if check not in wanted:
                continue
            operands.start(check, seed)
            prepare(operands)
            message = _run(kernel, operands)
            command = _command(kernel, seed, check)
            results.append(
                CheckResult(kernel.workload.name, check, sizes, not message, message, command)
            )
    return results


def dim_sizes(workload: Workload) -> list[dict[str, int]]:
    """Sets of sizes for the named dims; different names get different sizes.

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
    sets = []
    for first in range(len(DIM_SIZES)):
        sizes = {
            name: DIM_SIZES[(first + i) % len(DIM_SIZES)]
            for i, name in enumerate(workload.dim_names)
        }
        while pattern.bytes_moved(sizes) > MEMORY_LIMIT and max(sizes.values()) > 1:
            largest = max(sizes, key=lambda name: sizes[name])
            sizes[largest] = (sizes[largest] + 1) // 2
        if sizes not in sets:
            sets.append(sizes)
    return sets


class _Operands:
    """The memory of one workload, reused by every check."""

    def __init__(self, workload: Workload, seed: int) -> None:
        self.workload = workload
        self.dtype = numpy_dtype(workload.dtype)
        self.random = np.random.Generator(np.random.SFC64(seed))
        self.buffers = {
            "cond": self._allocate(workload.cond_shape, 1),
            "then": self._allocate(workload.then_shape, workload.element.width),
            "else_": self._allocate(workload.else_shape, workload.element.width),
            "out": self._allocate(workload.out_shape, workload.element.width),
        }
        self.offsets = dict.fromkeys(self.buffers, 0)
        for name in ("then", "else_"):
            memory = self.buffers[name].memory
            memory[:] = self._random_bytes(memory.size)

    def start(self, check: str, seed: int) -> None:
        """Seed the data, so that it does not depend on the checks that ran before."""
        self.random = np.random.Generator(np.random.SFC64([seed, *check.encode()]))
        self.offsets = dict.fromkeys(self.buffers, 0)
        self.buffers["out"].fill()

    def array(self, name: str) -> Array:
        """The operand that is passed to the kernel."""
        shape, dtype = {
            "cond": (self.workload.cond_shape, np.dtype(np.bool_)),
            "then": (self.workload.then_shape, self.dtype),
            "else_": (self.workload.else_shape, self.dtype),
            "out": (self.workload.out_shape, self.dtype),
        }[name]
        return self.buffers[name].array(ints(shape), dtype, self.offsets[name])

    def mask(self, fill: Callable[[int], Bytes]) -> None:
        """Set cond to ``fill(number of elements)``."""
        cond = self.array("cond").view(np.uint8)
        cond[...] = fill(cond.size).reshape(cond.shape)

    def random_mask(self) -> None:
        """Set cond to an even mix of 0 and 1."""
        self.mask(lambda count: self._random_bytes(count) & _ONE)

    def random_truths(self) -> None:
        """Set cond to an even mix of 0 and of every other byte."""
        self.mask(lambda count: self._random_bytes(count) * (self._random_bytes(count) & _ONE))

    def blocked_mask(self) -> None:
        """Set cond to alternating runs of random length."""
        self.mask(lambda count: runs(self.random, count))

    def misalign(self) -> None:
        """Move every operand off vector alignment, and the inputs off element alignment too."""
        self.random_mask()
        cond = self.array("cond").copy()
        self.offsets = {"cond": 3, "then": 1, "else_": 5, "out": self.workload.element.width}
        self.array("cond")[...] = cond

    def special_values(self) -> None:
        """Fill then and else with the values that arithmetic would change."""
        self.random_mask()
        values = special_bits(self.workload.dtype)
        for name, shift in (("then", 0), ("else_", 1)):
            words = self.array(name).reshape(-1).view(values.dtype)
            # Not np.resize: it joins a list of copies, which took 5 s for 128 M elements.
            whole = words.size // values.size * values.size
            pattern = np.roll(values, shift)
            words[:whole].reshape(-1, values.size)[...] = pattern
            words[whole:] = pattern[: words.size - whole]

    def guards_touched(self) -> bool:
        """Whether a byte outside ``out`` was written."""
        return self.buffers["out"].touched(self.offsets["out"])

    def _allocate(self, shape: Shape, width: int) -> Guarded:
        size = math.prod(ints(shape)) * width
        return Guarded(size, _CACHE_LINE)  # so that only `misalign` is off a cache line

    def _random_bytes(self, count: int) -> Bytes:
        words = self.random.integers(0, 2**64, -(-count // 8), np.uint64)
        return words.view(np.uint8)[:count]


def runs(random: np.random.Generator, count: int) -> Bytes:
    """Alternating runs of 0 and 1, of 1 to 64K elements, as in real masks.

    Parameters
    ----------
    random
        Source of the lengths.
    count
        Number of elements.

    Returns
    -------
    array of uint8
        The mask.
    """
    lengths: list[int] = []
    total = 0
    while total < count:
        lengths.append(int(2 ** random.uniform(0, math.log2(LONGEST_RUN))))
        total += lengths[-1]
    values = (np.arange(len(lengths)) + int(random.integers(2))) % 2
    return np.repeat(values.astype(np.uint8), lengths)[:count]


CHECKS: dict[str, Callable[[_Operands], None]] = {
    "random": _Operands.random_mask,
    "all_true": lambda operands: operands.mask(lambda count: np.ones(count, np.uint8)),
    "all_false": lambda operands: operands.mask(lambda count: np.zeros(count, np.uint8)),
    "blocked": _Operands.blocked_mask,
    "bytes": _Operands.random_truths,
    "misaligned": _Operands.misalign,
    "special": _Operands.special_values,  # last: it overwrites the random data
}


def _run(kernel: SelectKernel, operands: _Operands) -> str:
    cond, then, else_, out = (operands.array(name) for name in ("cond", "then", "else_", "out"))
    try:
        kernel(cond, then, else_, out=out)
    except ArtifactError:  # this machine cannot run it, and the other checks would say the same
        raise
    except Exception as error:  # an error of a kernel is a result, and the other checks go on
        return f"{type(error).__name__}: {error}"
    if operands.guards_touched():
        return "bytes outside out were written"
    return first_difference(out, *placed(operands.workload, cond, then, else_))


def _command(kernel: SelectKernel, seed: int, check: str) -> str:
    path = "PATH" if kernel.path is None else str(kernel.path)
    words: Sequence[str] = ("te-select", "verify", path, "--kernel", kernel.workload.name)
    return shlex.join((*words, "--seed", str(seed), "--check", check))
