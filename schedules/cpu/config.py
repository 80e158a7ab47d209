"""The knobs of the CPU schedule, and which rows are short and which are long."""

from __future__ import annotations

from dataclasses import dataclass

from te_select.operator.access import AccessPattern

VECTOR_BYTES = (16, 32, 64)
UNROLLS = (1, 2, 4, 8)
LARGEST = 1 << 40  # a piece times literal extents must stay an int64
SHORT_ROW_BYTES = 128  # rows of 128 bytes were 1.1 times as fast each for itself, of 12 bytes 0.2
LONG_ROW_BYTES = 1024  # rows of 252 bytes end to end were 1.25 times as fast, of 4 KB no faster


SPAN, PLAIN = 0, 1
"""The values of the knob ``leaf``: a span of LLVM IR, or a loop of TIR that TVM itself compiles."""

BY_MACHINE = -1
"""The value of a knob that leaves its decision to the machine that the library runs on."""


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
        Whether the two innermost loops are the leaf: short rows that share vectors, or longer ones
        end to end, for the calls that store past the cache. Where a name decides how long a row is,
        whether there is such a leaf for the calls whose rows are not long.
    piece
        Rows of the leaf per parallel piece; a plain leaf's rows are single elements.
    bytes_per_thread
        Bytes moved from which on one more thread runs pieces, counted at each call; 0 for one
        thread.
    stream_from
        Bytes of output from which on stores go past the cache; 0 for never.
    skip
        1 where a plain span leaves a side unread where a block of cond does not select it, else 0.
    backwards
        1 where a span walks backwards if out lies just ahead of an input, else 0.
    leaf
        `SPAN` or `PLAIN`. A plain leaf is one loop, and can neither store past the cache, nor skip,
        nor walk backwards: there ``unroll``, ``rows``, ``stream_from``, ``skip`` and ``backwards``
        have no meaning.

    The four before the last may be `BY_MACHINE`.
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
            raise ValueError("rows must be a boolean")
        if not all(type(number) is int for number in numbers):
            raise ValueError("the knobs other than rows must be ints")
        # The first libraries and records have booleans for skip.
        if not all(type(switch) in (int, bool) and -1 <= switch <= 1 for switch in switches):
            raise ValueError(f"skip and backwards must be 0, 1 or {BY_MACHINE}, by the machine")
        if self.vector_bytes not in VECTOR_BYTES or self.unroll not in UNROLLS:
            raise ValueError(f"expected vector_bytes in {VECTOR_BYTES} and unroll in {UNROLLS}")
        if not 1 <= self.piece < LARGEST or not all(-1 <= size < LARGEST for size in sizes):
            raise ValueError(
                "piece must be positive, and bytes_per_thread and stream_from not negative, or "
                f"{BY_MACHINE}, by the machine"
            )
        if type(self.leaf) is not int or self.leaf not in (SPAN, PLAIN):
            raise ValueError(f"leaf must be {SPAN}, a span, or {PLAIN}, plain TIR")
        if self.rows and not rows_may_be_leaf(pattern):
            raise ValueError(
                f"rows needs an innermost loop that is or may be below {LONG_ROW_BYTES} bytes"
            )
        return self


OF_MACHINE = ("bytes_per_thread", "stream_from", "skip", "backwards")
"""The knobs that a record of one microarchitecture does not bring to another."""
NUMBERS = ("piece",)
"""The knobs that may be random variables of MetaSchedule; the others change the structure."""


def long_from(pattern: AccessPattern) -> int:
    """Elements from which on a row is long, which is a leaf of its own."""
    return LONG_ROW_BYTES // pattern.width


def rows_may_be_leaf(pattern: AccessPattern) -> bool:
    """Whether the rows of the innermost loop are not long, or a name decides."""
    if len(pattern.loops) <= 1:
        return False
    extent = pattern.loops[-1].extent
    return extent is None or 0 < extent < long_from(pattern)


def share_vectors(pattern: AccessPattern) -> bool:
    """Whether the rows of the innermost loop are short."""
    extent = pattern.loops[-1].extent if len(pattern.loops) > 1 else None
    return extent is not None and 0 < extent * pattern.width < SHORT_ROW_BYTES
