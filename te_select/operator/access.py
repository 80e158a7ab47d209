"""The access pattern: the loops of a Select, and which operands move along each.

A loop is a broadcast axis of the operands that do not move along it. Neighbouring output axes with
the same movers are fused. Nearly every workload ends as one to three loops.
"""

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from te_select.operator.broadcast import Dim, bound
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
    movers
        The operands that move along it, as letters: ``"cte"``, ``"te"``, ... The others have
        stride 0.
    """

    axes: tuple[int, ...]
    dims: tuple[Dim, ...]
    movers: str

    @property
    def extent(self) -> int | None:
        """Number of iterations, or None if a name decides it."""
        return _number(self.dims)

    def bound(self, sizes: Mapping[str, int]) -> int:
        """Number of iterations, with ``sizes`` for the names."""
        return math.prod(bound(self.dims, sizes))

    def text(self, between: str) -> str:
        """The number of iterations, or if a name decides it, the dims and what is between them."""
        return between.join(map(str, self.dims)) if self.extent is None else str(self.extent)


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
        return _number(dim for loop in self.loops for dim in loop.dims)

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

    def steps(self, operand: str) -> tuple[Step, ...]:
        """Strides of an operand that is C-contiguous, along each loop.

        Parameters
        ----------
        operand
            Its letter; ``"o"`` for out, which moves along every loop.

        Returns
        -------
        tuple of Step
            Outermost loop first.
        """
        steps: list[Step] = []
        behind: list[Dim] = []
        for loop in reversed(self.loops):
            if operand in loop.movers + "o":
                steps.insert(0, product(behind))
                behind += loop.dims
            else:
                steps.insert(0, STAYS)
        return tuple(steps)

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
        along = itertools.takewhile(lambda loop: "c" not in loop.movers, reversed(self.loops))
        run = block * math.prod(loop.bound({}) for loop in along) * self.width
        shares = {"t": density, "e": 1 - density} if run >= _LEAST_RUN else {}
        return round(sum(size * shares.get(of, 1.0) for of, size in self._bytes({}).items()))

    def _bytes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The bytes of each operand."""

        def elements(operand: str) -> int:
            moved = (loop for loop in self.loops if operand in loop.movers + "o")
            return math.prod(loop.bound(sizes) for loop in moved)

        return {"c": elements("c")} | {each: self.width * elements(each) for each in "ote"}

    def __str__(self) -> str:
        """One line for people: ``12 x 1048576:ct``, extents with the operands that move."""
        loops = (f"{loop.text('*')}:{loop.movers}" for loop in self.loops)
        return " x ".join(loops) or "a single element"


def _number(dims: Iterable[Dim]) -> int | None:
    """A product of dims, or None if a name decides it."""
    factors = product(dims)
    return None if any(isinstance(each, str) for each in factors) else math.prod(bound(factors, {}))


def product(dims: Iterable[Dim]) -> Step:
    """A product of dims as a step: its number unless that is 1, and its names in order."""
    factors = list(dims)
    literal = math.prod(dim for dim in factors if isinstance(dim, int))
    names = sorted(dim for dim in factors if isinstance(dim, str))
    return STAYS if literal == 0 else (*([literal] if literal != 1 else []), *names)


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
    operands = list(zip("cte", workload.broadcast.axes, strict=True))
    axes = [
        ("".join(letter for letter, moved in operands if axis in moved), axis, dim)
        for axis, dim in enumerate(workload.out_shape)
        if dim != 1
    ]
    width = workload.element.width
    if width > LARGEST_INTEGER:
        axes.append(("te", len(workload.out_shape), width // LARGEST_INTEGER))
    loops = []
    for movers, neighbours in itertools.groupby(axes, key=operator.itemgetter(0)):
        _, merged, dims = zip(*neighbours, strict=True)
        loops.append(Loop(merged, dims, movers))
    return AccessPattern(tuple(loops), min(width, LARGEST_INTEGER))
