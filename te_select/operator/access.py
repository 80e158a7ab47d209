"""The access pattern: the loops of a Select, and which operands move along each.

A loop is a broadcast axis of the operands that do not move along it. Neighbouring output axes with
the same movers are fused. Nearly every workload ends as one to three loops.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from te_select.operator.broadcast import Dim
from te_select.operator.workload import Workload

_LEAST_RUN = 128  # bytes: two lines of the cache, of which at least one is whole
LARGEST_INTEGER = 8  # bytes; TVM generates no code for wider integers

# Elements of an operand from one iteration of a loop to the next: factors; no factor means 1.
Step: TypeAlias = tuple[Dim, ...]
STAYS: Step = (0,)


@dataclass(frozen=True)
class Loop:
    """One loop of the merged nest.

    Parameters
    ----------
    axes
        The neighbouring output axes that it covers, outermost first.
    dims
        Their dims.
    cond, then, else_
        Whether the operand moves along it. If not, the operand stays at one element.
    """

    axes: tuple[int, ...]
    dims: tuple[Dim, ...]
    cond: bool
    then: bool
    else_: bool

    @property
    def extent(self) -> int | None:
        """Number of iterations, or None if a name decides it."""
        if 0 in self.dims:
            return 0
        return None if any(isinstance(dim, str) for dim in self.dims) else self.bound({})

    def bound(self, sizes: Mapping[str, int]) -> int:
        """Number of iterations, with ``sizes`` for the names."""
        return math.prod(sizes[dim] if isinstance(dim, str) else dim for dim in self.dims)

    def text(self, between: str) -> str:
        """The number of iterations, or if a name decides it, the dims and what is between them."""
        return between.join(map(str, self.dims)) if self.extent is None else str(self.extent)

    @property
    def movers(self) -> str:
        """The operands that move, as letters: ``"cte"``, ``"te"``, ..."""
        moves = zip("cte", (self.cond, self.then, self.else_), strict=True)
        return "".join(letter for letter, moving in moves if moving)


@dataclass(frozen=True)
class AccessPattern:
    """What a schedule needs to know about a workload.

    Parameters
    ----------
    loops
        The merged loops, outermost first; none for a single element.
    width
        Bytes per element of then, else and out, as the kernel carries them. An element of cond is
        one byte. A 16-byte element is carried as two of 8 bytes, on a loop of its own of extent 2.
    """

    loops: tuple[Loop, ...]
    width: int

    @property
    def elements(self) -> int | None:
        """Number of carried output elements, or None if a name decides it."""
        extents = [loop.extent for loop in self.loops]
        if 0 in extents:
            return 0
        return None if None in extents else math.prod(e for e in extents if e is not None)

    @property
    def out_bytes(self) -> int | None:
        """Bytes of the output, or None if a name decides it."""
        return None if self.elements is None else self.width * self.elements

    @property
    def key(self) -> str:
        """The pattern as an identifier: ``w4_48t_1048576ct``, width and extents with their movers.

        Workloads with the same key share one kernel. Element types of the same width, unit axes and
        the broadcast rule make no difference to it.
        """
        return "_".join([f"w{self.width}", *(f"{e.text('x')}{e.movers}" for e in self.loops)])

    def bytes_moved(self, sizes: Mapping[str, int] | None = None) -> int:
        """Bytes moved: every input element read once and every output element written once.

        If cond is one value, a call reads one side: the larger one counts. ``decide.c`` of the
        runtime counts the same.

        Parameters
        ----------
        sizes
            A size for every named dim.

        Returns
        -------
        int
            Bytes.
        """
        moved = self._bytes(sizes or {})
        unread = 0 if moved["c"] > 1 else min(moved["t"], moved["e"])
        return sum(moved.values()) - unread

    def bytes_needed(self, density: float, block: int) -> int:
        """Bytes that a call must move if what cond does not select is not read.

        Parameters
        ----------
        density
            Share of cond that is true.
        block
            Neighbouring elements of cond that are equal.

        Returns
        -------
        int
            As `bytes_moved`, without what is not selected, if it comes in runs of whole lines of
            the cache.
        """
        along = itertools.takewhile(lambda loop: not loop.cond, reversed(self.loops))
        run = block * math.prod(loop.bound({}) for loop in along) * self.width
        shares = {"t": density, "e": 1 - density} if run >= _LEAST_RUN else {}
        return round(sum(size * shares.get(of, 1.0) for of, size in self._bytes({}).items()))

    def _bytes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The bytes of each operand."""
        extents = [loop.bound(sizes) for loop in self.loops]
        elements = {
            letter: math.prod(
                extent
                for loop, extent in zip(self.loops, extents, strict=True)
                if letter in loop.movers
            )
            for letter in "cte"
        }
        sides = {letter: self.width * elements[letter] for letter in "te"}
        return {"c": elements["c"], "o": self.width * math.prod(extents)} | sides

    def __str__(self) -> str:
        """One line for people: ``12 x 1048576:ct``, extents with the operands that move."""
        loops = (f"{loop.text('*')}:{loop.movers}" for loop in self.loops)
        return " x ".join(loops) or "a single element"


@functools.lru_cache(maxsize=1024)
def access_pattern(workload: Workload) -> AccessPattern:
    """Describe how a workload moves through memory.

    Parameters
    ----------
    workload
        The workload.

    Returns
    -------
    AccessPattern
        Its loops: output axes of extent 1 are dropped, neighbours with the same movers are merged.
    """
    loops = [
        Loop((axis,), (dim,), *(axis in axes for axes in workload.broadcast.axes))
        for axis, dim in enumerate(workload.out_shape)
        if dim != 1
    ]
    width = workload.element.width
    if width > LARGEST_INTEGER:
        pair = Loop((len(workload.out_shape),), (width // LARGEST_INTEGER,), False, True, True)
        loops.append(pair)
    return AccessPattern(tuple(merged(loops)), min(width, LARGEST_INTEGER))


def merged(loops: list[Loop]) -> list[Loop]:
    """Fuse neighbouring loops with the same movers."""
    nest: list[Loop] = []
    for loop in loops:
        if nest and nest[-1].movers == loop.movers:
            before = nest.pop()
            axes = (*before.axes, *loop.axes)
            dims = (*before.dims, *loop.dims)
            nest.append(Loop(axes, dims, loop.cond, loop.then, loop.else_))
        else:
            nest.append(loop)
    return nest
