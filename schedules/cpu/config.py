"""The knobs of the CPU schedule, and which rows are short and which are long.

The bounds of rows were measured on Emerald Rapids (docs/measurements.md, "Rows").
"""

from __future__ import annotations

from dataclasses import dataclass

from te_select.operator.access import AccessPattern

VECTOR_BYTES = (16, 32, 64)
UNROLLS = (1, 2, 4, 8)
LARGEST = 1 << 40  # a knob's bound: a piece times literal extents must stay an int64
# Rows of 12 bytes were 5 times as fast if they shared vectors; rows of 128 bytes no faster.
SHORT_ROW_BYTES = 128
# Rows of 252 bytes were 1.25 times as fast end to end; rows of 4 KB no faster.
LONG_ROW_BYTES = 1024

SPAN, PLAIN = 0, 1
"""The values of the knob ``leaf``: a span of LLVM IR, or a loop of TIR that TVM compiles."""

BY_MACHINE = -1
"""The value of a knob whose decision is left to the machine on which the library runs."""


@dataclass(frozen=True)
class Config:
    """The knobs of the CPU schedule.

    Parameters
    ----------
    vector_bytes
        Bytes per vector.
    unroll
        Vectors in flight per iteration of a plain span.
    rows
        Whether the two innermost loops are the leaf. Short rows then share vectors. Longer rows are
        walked end to end in calls that store past the cache. If the length of a row has a name,
        the function with such a leaf serves the calls whose rows are not long.
    piece
        Rows of the leaf per parallel piece; a plain leaf's rows are single elements.
    bytes_per_thread
        Bytes moved for each thread: a call that moves n times as many may run on n threads. 0 for
        one thread.
    stream_from
        Stores go past the cache if the output has at least this many bytes; 0 for never.
    skip
        1 if a plain span looks at a block of cond first, and does not read a side that the block
        does not select; else 0.
    backwards
        1 if a span walks backwards when out lies just ahead of an input; else 0.
    leaf
        `SPAN` or `PLAIN`. A plain leaf is one loop. It cannot store past the cache, skip, or walk
        backwards, so ``unroll``, ``rows``, ``stream_from``, ``skip`` and ``backwards`` have no
        meaning for it.

    ``bytes_per_thread``, ``stream_from``, ``skip`` and ``backwards`` may be `BY_MACHINE`.
    """

    vector_bytes: int
    unroll: int
    rows: bool
    piece: int
    bytes_per_thread: int = BY_MACHINE
    stream_from: int = BY_MACHINE
    skip: int = BY_MACHINE
    backwards: int = BY_MACHINE
    leaf: int = SPAN

    def checked(self, pattern: AccessPattern) -> Config:
        """Return this config, or raise ValueError if the schedule cannot follow it."""
        sizes = (self.bytes_per_thread, self.stream_from)
        switches = (self.skip, self.backwards)
        numbers = (self.vector_bytes, self.unroll, self.piece, *sizes)
        if type(self.rows) is not bool:
            raise ValueError("rows must be a boolean, true or false")
        if not all(type(number) is int for number in numbers):
            raise ValueError("the knobs other than rows must be ints, such as 4096")
        if not all(type(switch) is int and -1 <= switch <= 1 for switch in switches):
            raise ValueError(f"skip and backwards must be 0, 1 or {BY_MACHINE}, by the machine")
        if self.vector_bytes not in VECTOR_BYTES or self.unroll not in UNROLLS:
            raise ValueError(f"expected vector_bytes in {VECTOR_BYTES} and unroll in {UNROLLS}")
        if not 1 <= self.piece < LARGEST or not all(-1 <= size < LARGEST for size in sizes):
            raise ValueError(
                "piece must be positive, bytes_per_thread and stream_from not negative, or "
                f"{BY_MACHINE}, by the machine, and all of them below 2**40"
            )
        if type(self.leaf) is not int or self.leaf not in (SPAN, PLAIN):
            raise ValueError(f"leaf must be {SPAN}, a span, or {PLAIN}, plain TIR")
        if self.rows and not rows_may_be_leaf(pattern):
            raise ValueError(
                f"rows needs an innermost loop that is or may be below {LONG_ROW_BYTES} bytes"
            )
        return self


OF_MACHINE = ("bytes_per_thread", "stream_from", "skip", "backwards")
"""The knobs whose values in a record of one model of CPU do not serve another model."""
NUMBERS = ("piece",)
"""The knobs that may be random variables of MetaSchedule; the others change the loops."""


def long_from(pattern: AccessPattern) -> int:
    """Elements of the shortest long row. A long row is a leaf of its own."""
    return LONG_ROW_BYTES // pattern.width


def rows_may_be_leaf(pattern: AccessPattern) -> bool:
    """Whether the rows of the innermost loop are not long, or have a length with a name."""
    if len(pattern.loops) <= 1:
        return False
    extent = pattern.loops[-1].extent
    return extent is None or 0 < extent < long_from(pattern)


def share_vectors(pattern: AccessPattern) -> bool:
    """Whether the rows of the innermost loop are short."""
    extent = pattern.loops[-1].extent if len(pattern.loops) > 1 else None
    return extent is not None and 0 < extent * pattern.width < SHORT_ROW_BYTES
