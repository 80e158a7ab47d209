"""The family: the workloads whose kernels together select operands of any shapes.

A kernel does the one or two innermost loops of a call. The C half (``where.c``) walks
the loops around them.

- Kernels of *runs* are one loop, a broadcast axis of any operands.
- Kernels of *rows* are two loops, for short rows: a call of a kernel per row would take longer than
  the selection. An operand moves along both loops, is row-constant, or is one row. A single value
  is repeated to a row by the C half. Rows of 16-byte elements are runs.

A *part* is the unit of building: the runs of one width, one kernel of rows, or all stages
(`te_select.operator.stages`).
"""

import itertools
from collections.abc import Iterable, Sequence
from functools import cache

from te_select.operator.access import access_pattern
from te_select.operator.stages import stages as all_stages
from te_select.operator.workload import Workload

# The exported function of a library of the family; its operands have any shapes.
FUNCTION = "te_select_where"
WIDTHS = (1, 2, 4, 8, 16)
STAGES = "stages"  # the part that has no kernels
ROW_WIDTHS = WIDTHS[:-1]
_ROWS = 27  # three operands that each move in one of three ways
_TYPICAL_BYTES = 1 << 16  # of out: all operands stay in the second-level cache, as in most programs
_TYPICAL_ROW = 25  # elements: neither short enough for a span of its own length, nor whole vectors
# The places of ``te_select_where_kernels`` by the C half's numbers; not all have a kernel.
PLACES = [
    f"{table}[{number // count}][{number % count}]"
    for table, count in (("runs", 8), ("rows", _ROWS))
    for number in range(count * len(WIDTHS))
]
# What the C half adds to a number if a kernel of rows is missing that would be faster.
MISSING_KERNEL = 1 << 8
_TYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
_WALKS: tuple[tuple[int | str, int | str], ...] = (("m", "n"), ("m", 1), (1, "n"))


@cache
def parts() -> dict[str, dict[Workload, str]]:
    """The parts by name, with the places of their workloads in ``te_select_where_kernels``."""
    runs = {f"w{width}": _runs(width) for width in WIDTHS}
    rows = {
        f"w{width}_rows{number:02}": {workload: f"rows[{WIDTHS.index(width)}][{number}]"}
        for width in ROW_WIDTHS
        for number, workload in _rows(width)
    }
    return runs | rows


def part_names() -> list[str]:
    """The names of all parts."""
    return [*parts(), STAGES]


def held(workloads: Iterable[Workload], stages: Iterable[str] = ()) -> list[str]:
    """The names of the parts all of whose workloads, or stages by their names, are among these."""
    found = set(workloads)
    names = [name for name, members in parts().items() if found >= members.keys()]
    has_stages = set(stages) >= {stage.name for stage in all_stages()}
    return [*names, STAGES] if has_stages else names


def members(workloads: Iterable[Workload]) -> dict[Workload, str]:
    """Those of some workloads that make up whole parts, with their places."""
    return places(held(workloads))


def places(names: Iterable[str]) -> dict[Workload, str]:
    """The workloads of some parts, with their places."""
    kernels = (parts()[name] for name in names if name != STAGES)
    return {workload: place for part in kernels for workload, place in part.items()}


def parts_of_width(width: int) -> list[str]:
    """The names of all parts for elements of this many bytes."""
    return [name for name in parts() if name.partition("_")[0] == f"w{width}"]


def part_of_width(width: int) -> str:
    """The part with the runs for elements of this many bytes; the C half may split elements."""
    return f"w{min(width & -width, WIDTHS[-1])}"


def in_words(part: str) -> str:
    """What a part is, for people."""
    if part == STAGES:
        return "conversions"
    width, _, row = part.removeprefix("w").partition("_")
    return f"kernels for {'short rows of ' if row else ''}{width}-byte elements"


def part_of_missing_kernel(number: int) -> str:
    """The name of the part with the kernel of rows that the C half lacked in a call."""
    return next(name for name, own in parts().items() if PLACES[number] in own.values())


def kernels() -> dict[str, Workload]:
    """The workloads by names of which each says the bytes of an element and the loops.

    For example ``"w4 n:cte"`` for runs, and ``"w4 m:cte x n:t"`` for rows: cond and else move from
    row to row only. Elements of 16 bytes have a last loop over their two halves.
    """
    return {f"w{each.element.width} {access_pattern(each)}": each for each in places(parts())}


def typical(member: Workload) -> Workload:
    """A workload of the family at the sizes for which it is tuned."""
    elements = _TYPICAL_BYTES // member.element.width
    row = _TYPICAL_ROW if "m" in member.dim_names else elements
    return member.bind({"m": elements // row, "n": row})


def by_name(counts: Sequence[int]) -> dict[str, int]:
    """Counts by the names of kernels, without zeros; their indices are the C half's numbers."""
    return {name: n for name, n in zip(names(), counts, strict=True) if name and n}


@cache
def names() -> list[str]:
    """The names of kernels by the C half's numbers; empty if a number has no kernel."""
    placed = places(parts())
    found = {placed[each]: name for name, each in kernels().items()}
    return [found.get(place, "") for place in PLACES]


def _runs(width: int) -> dict[Workload, str]:
    shapes = ((), ("n",))
    found = {}
    for number, moves in enumerate(itertools.product((0, 1), repeat=3)):
        if any(moves):
            cond, then, else_ = (shapes[moving] for moving in moves)
            workload = Workload(cond, then, else_, _TYPES[width], "multidirectional")
            found[workload] = f"runs[{WIDTHS.index(width)}][{number}]"
    return found


def _rows(width: int) -> Iterable[tuple[int, Workload]]:
    for number, walks in enumerate(itertools.product(_WALKS, repeat=3)):
        if len(set(walks)) > 1:  # else both loops merge to one
            cond, then, else_ = walks
            yield number, Workload(cond, then, else_, _TYPES[width], "multidirectional")
