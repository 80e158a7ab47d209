"""The knobs of the CPU schedule, and which rows are short and which are long.

The bounds of rows were measured on Emerald Rapids (docs/measurements.md, "Rows").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from te_select.base.levels import SHORT_ROW_BYTES
from te_select.operator.access import AccessPattern
from te_select.schedules import knobs
from te_select.schedules.cpu import isa
from te_select.schedules.knobs import knob

# End to end, rows of 252 bytes ran at 1.25x, rows of 4 KB at 1.0x.
LONG_ROW_BYTES = 1024
LEAST_STREAMED_BYTES = 1 << 19  # of output; with fewer, stores past the cache never won
GRAINS = tuple(1 << k for k in range(16, 26, 2))  # bytes moved for each thread that tuning tries

# The value of a knob whose decision is left to the machine on which the library runs.
BY_MACHINE = -1
_SWITCH = (BY_MACHINE, 0, 1)
_LARGEST = 1 << 40  # a piece times literal extents must stay an int64
_BYTES = range(BY_MACHINE, _LARGEST)


def _vectors(_pattern: AccessPattern, default: Any, _target: Any) -> Iterable[int]:
    """Vectors no longer than the default's, which may be several registers."""
    return (size for size in (16, 32, 64) if size <= default.vector_bytes)


def _rows(pattern: AccessPattern, _default: Any, _target: Any) -> Iterable[int]:
    return (True, False) if rows_may_be_leaf(pattern) else (False,)


def _pieces(pattern: AccessPattern, default: Any, _target: Any) -> Iterable[int]:
    """Elements of four vectors times seven powers of four, and the default's."""
    step = 4 * default.vector_bytes // pattern.width
    return sorted({step << k for k in range(0, 14, 2)} | {default.piece})


def _grains(pattern: AccessPattern, default: Any, _target: Any) -> Iterable[int]:
    """Bytes for each thread: the default's, those that give at least two threads, and 0."""
    several = [grain for grain in GRAINS if threads(pattern, grain) > 1]
    return dict.fromkeys((default.bytes_per_thread, *several, 0))


def _streams(pattern: AccessPattern, _default: Any, target: Any) -> Iterable[int]:
    if not may_stream(pattern):
        return (0,)
    return _SWITCH if isa.of(target).streams else (0, 1)


def _skips(pattern: AccessPattern, _default: Any, _target: Any) -> Iterable[int]:
    return _SWITCH if skippable(pattern) else (0,)


def _as_by_default(_pattern: AccessPattern, default: Any, _target: Any) -> Iterable[int]:
    """One value: what is better depends on where a caller's operands lie."""
    return (default.backwards,)


@dataclass(frozen=True)
class Config:
    """The knobs of the CPU schedule.

    Parameters
    ----------
    vector_bytes
        Bytes per vector.
    unroll
        Vectors per iteration of a plain span.
    rows
        Whether the two innermost loops are the leaf. Short rows then share vectors. Longer rows are
        walked end to end in calls that store past the cache. If the length of a row has a name,
        the function with such a leaf serves the calls whose rows are not long.
    piece
        Rows of the leaf per parallel piece; the rows of a plain span are single elements.
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

    ``bytes_per_thread``, ``stream_from``, ``skip`` and ``backwards`` may be `BY_MACHINE`.
    """

    vector_bytes: int = knob((16, 32, 64), _vectors)
    unroll: int = knob((1, 2, 4, 8))
    rows: bool = knob((False, True), _rows)
    piece: int = knob(range(1, _LARGEST), _pieces, number=True)
    bytes_per_thread: int = knob(_BYTES, _grains, default=BY_MACHINE, of_machine=True)
    stream_from: int = knob(_BYTES, _streams, default=BY_MACHINE, of_machine=True)
    skip: int = knob(_SWITCH, _skips, default=BY_MACHINE, of_machine=True)
    backwards: int = knob(_SWITCH, _as_by_default, default=BY_MACHINE, of_machine=True)

    def checked(self, pattern: AccessPattern, _target: Any = None) -> Config:
        """Return this config, or raise ValueError if the schedule cannot follow it."""
        knobs.check(self)
        if self.rows and not rows_may_be_leaf(pattern):
            raise ValueError(
                f"rows needs an innermost loop that is or may be below {LONG_ROW_BYTES} bytes"
            )
        return self


# The knobs whose values in a record of one model of CPU do not serve another model.
OF_MACHINE = tuple(name for name, each in knobs.of(Config).items() if each.of_machine)
# The knobs that may be random variables of MetaSchedule; the others change the loops.
NUMBERS = tuple(name for name, each in knobs.of(Config).items() if each.number)


def long_from(pattern: AccessPattern) -> int:
    """Elements of the shortest long row. A long row is a leaf of its own."""
    return LONG_ROW_BYTES // pattern.width


def rows_may_be_leaf(pattern: AccessPattern) -> bool:
    """Whether the rows of the innermost loop are not long, or have a length with a name."""
    if len(pattern.loops) <= 1:
        return False
    extent = pattern.loops[-1].extent
    return extent is None or 0 < extent < long_from(pattern)


def share_vectors(pattern: AccessPattern, below: int = SHORT_ROW_BYTES) -> bool:
    """Whether the rows of the innermost loop are short: of fewer bytes than ``below``."""
    extent = pattern.loops[-1].extent if len(pattern.loops) > 1 else None
    return extent is not None and 0 < extent * pattern.width < below


def may_stream(pattern: AccessPattern) -> bool:
    """Whether the output may be so large that stores past the cache win on some machine."""
    return pattern.out_bytes is None or pattern.out_bytes >= LEAST_STREAMED_BYTES


def skippable(pattern: AccessPattern) -> bool:
    """Whether cond moves along the leaf and a side does too, which a span may then skip."""
    return pattern.loops != () and pattern.loops[-1].movers in ("ct", "ce", "cte")


def threads(pattern: AccessPattern, grain: int) -> int:
    """Threads of a call if there are enough CPUs; 0 if there is no parallel loop."""
    if grain == BY_MACHINE:
        return BY_MACHINE
    return max(1, pattern.bytes_moved() // grain) if grain else 0
