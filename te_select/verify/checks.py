"""What a kernel is checked with: masks, values, and places of the operands in memory."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from te_select.operator.dtypes import numpy_dtype
from te_select.operator.workload import Workload
from te_select.verify.guarded import Bytes, Guarded, randomize
from te_select.verify.reference import Array, ints, special_bits

LONGEST_RUN = 1 << 16  # elements; long enough that whole blocks are skipped
# Elements by which all operands are moved: parts of a vector of 16 bytes, half a vector of 64 bytes
# for each width, and an odd number beyond the first vector.
STEPS = (1, 2, 4, 8, 13, 32)
HALF_VECTOR = 8  # bytes, of a GPU
WIDEST_ALIGNED = 8  # bytes; a kernel for a GPU expects elements to be aligned to no more
# Bytes that are moved until the rest of the places is left out: for large operands, so that
# `verify` takes 1.4x the time of one place only.
MOVED_BYTES = 1 << 25
ENDS = ("before", "behind")
_ONE = np.uint8(1)


class Operands:
    """The memory of one workload, reused by every check.

    Parameters
    ----------
    workload
        The workload, of int dims only.
    seed
        Seed of then and else.

    Attributes
    ----------
    selected
        What NumPy selects of the data, wherever they lie; empty if that is not known yet.
    in_place
        The side that is out itself: ``"then"``, ``"else_"``, or empty for none.
    """

    def __init__(self, workload: Workload, seed: int) -> None:
        self.workload = workload
        self.selected = b""
        self.in_place = ""
        self.random = np.random.Generator(np.random.SFC64(seed))
        dtype = numpy_dtype(workload.dtype)
        self.buffers = {
            "cond": Guarded(ints(workload.cond_shape), np.dtype(np.bool_)),
            "then": Guarded(ints(workload.then_shape), dtype),
            "else_": Guarded(ints(workload.else_shape), dtype),
            "out": Guarded(ints(workload.out_shape), dtype),
        }
        for name in ("then", "else_"):
            randomize(self.random, self.buffers[name].memory)

    def start(self, check: str, seed: int) -> None:
        """Seed the data, so that it does not depend on the checks that ran before."""
        self.random = np.random.Generator(np.random.SFC64([seed, *check.encode()]))
        self.selected = b""
        self.in_place = ""
        self.place({})

    def arrays(self) -> list[Array]:
        """Cond, then, else_ and out."""
        return [buffer.array() for buffer in self.buffers.values()]

    def arguments(self) -> list[Array]:
        """The same for a call, in which out may be one of the sides, with its values."""
        given = dict(zip(self.buffers, self.arrays(), strict=True))
        if self.in_place:
            given["out"][...] = given[self.in_place]
            given[self.in_place] = given["out"]
        return list(given.values())

    def place(self, offsets: dict[str, int]) -> None:
        """Move the operands by so many bytes, and those that are not named to their first place."""
        for name, buffer in self.buffers.items():
            buffer.move(offsets.get(name, 0))

    def mask(self, fill: Callable[[int], Bytes]) -> None:
        """Set cond to ``fill(number of elements)``."""
        self.selected = b""
        cond = self.arrays()[0].view(np.uint8)
        cond[...] = fill(cond.size).reshape(cond.shape)

    def random_mask(self) -> None:
        """Set cond to an even mix of 0 and 1."""
        self.mask(lambda count: self._random_bytes(count) & _ONE)

    def random_truths(self) -> None:
        """Set cond to an even mix of 0 and of every other byte."""
        self.mask(lambda count: self._random_bytes(count) * (self._random_bytes(count) & _ONE))

    def special_values(self, most: int | None = None) -> None:
        """Fill then and else, or their first elements, with what arithmetic would change."""
        self.random_mask()
        values = special_bits(self.workload.dtype)
        _, then, else_, _ = self.arrays()
        for side, shift in ((then, 0), (else_, 1)):
            words = side.reshape(-1).view(values.dtype)[:most]
            # Not np.resize: it joins a list of copies, which took 5 s for 128 M elements.
            whole = words.size // values.size * values.size
            pattern = np.roll(values, shift)
            words[:whole].reshape(-1, values.size)[...] = pattern
            words[whole:] = pattern[: words.size - whole]

    def misaligned(self) -> Iterator[str]:
        """Move the operands from place to place; yields how they lie."""
        if self.arrays()[0].size > 1:
            self.random_mask()
            yield from self._places()
            return
        for value in (0, 1):
            self.mask(partial(np.full, fill_value=value, dtype=np.uint8))
            yield from self._places()

    def _places(self) -> Iterator[str]:
        """Move the inputs off their elements; then all off a vector, together and alone."""
        width = min(self.workload.element.width, WIDEST_ALIGNED)
        unit = {name: 1 if name == "cond" else width for name in self.buffers}
        alone = [{name: size} for name, size in unit.items()]
        halves = [{name: HALF_VECTOR // width * size} for name, size in unit.items()]
        together = [{name: step * size for name, size in unit.items()} for step in STEPS]
        wanted = [{"cond": 3, "then": 1, "else_": 5, "out": width}, together[0], *alone]
        least = len(wanted)
        wanted += [*halves, *together[1:]]
        size = sum(buffer.memory.size for buffer in self.buffers.values())
        for offsets in wanted[: max(least, MOVED_BYTES // size)]:
            self.place(offsets)
            yield ", ".join(f"{name} is moved by {size}" for name, size in offsets.items())

    def sides_as_out(self) -> Iterator[str]:
        """Let out be each side that has its shape; cond has runs in one half, none in the other."""
        self.random_mask()
        cond = self.arrays()[0].view(np.uint8).reshape(-1)
        cond[: cond.size // 2] = runs(self.random, cond.size // 2)
        for name in ("then", "else_"):
            if self.buffers[name].array().shape == self.buffers["out"].array().shape:
                self.in_place = name
                yield f"out is {name} itself"

    def ends(self) -> Iterator[str]:
        """Put the operands right behind protected pages, then right before such pages."""
        self.random_mask()
        for k, end in enumerate(ENDS):
            self.place({name: buffer.ends[k] for name, buffer in self.buffers.items()})
            yield f"no memory is {end} the operands"

    def _random_bytes(self, count: int) -> Bytes:
        drawn = np.empty(count, np.uint8)
        randomize(self.random, drawn)
        return drawn


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
    lengths = []
    total = 0
    while total < count:
        lengths.append(int(2 ** random.uniform(0, math.log2(LONGEST_RUN))))
        total += lengths[-1]
    values = (np.arange(len(lengths)) + int(random.integers(2))) % 2
    return np.repeat(values.astype(np.uint8), lengths)[:count]


_Check = Callable[[Operands], Iterator[str]]


def _once(prepare: Callable[[Operands], None]) -> _Check:
    def check(operands: Operands) -> Iterator[str]:
        prepare(operands)
        yield ""

    return check


# For each check, what prepares the operands for one run after another, and says how they lie.
CHECKS: dict[str, _Check] = {
    "random": _once(Operands.random_mask),
    "all_true": _once(lambda operands: operands.mask(lambda count: np.ones(count, np.uint8))),
    "all_false": _once(lambda operands: operands.mask(lambda count: np.zeros(count, np.uint8))),
    "blocked": _once(lambda operands: operands.mask(lambda n: runs(operands.random, n))),
    "bytes": _once(Operands.random_truths),
    "misaligned": Operands.misaligned,
    "special": _once(lambda operands: operands.special_values()),  # it overwrites the random data
    "in_place": Operands.sides_as_out,
    "bounds": Operands.ends,
}
