"""The span for rows of named length: each call chooses among other spans.

The scalar loop that it stands for, with ``inner`` known only at the call::

    for r in range(n):
        for x in range(inner):
            out[r * inner + x] = then[r * inner + x] if cond[r] else else_[r * inner + x]

Shuffles need their lanes at compile time, so usual short lengths get a span of their own, such as
the channels of points, pixels and boxes. Longer rows go end to end if stores go past the cache
(`rows_end_to_end`). Any other row is a plain span::

    if inner == 1:                                          the plain span of n elements
    elif inner == 2: ... elif inner == 8:                   short rows of that length
    elif rows are long and stores go past the cache:        rows end to end
    else:                                                   for r in range(n): a plain span
"""

from collections.abc import Mapping
from dataclasses import replace

from tvm.tirx.script.builder import ir as T

from te_select.base.levels import SHORT_ROW_BYTES
from te_select.schedules.cpu.aliasing import LEAST_BYTES
from te_select.schedules.cpu.arguments import Arguments
from te_select.schedules.cpu.plain_span import plain_span
from te_select.schedules.cpu.rows_end_to_end import rows_end_to_end
from te_select.schedules.cpu.short_rows import short_rows
from te_select.schedules.cpu.span import STREAM
from te_select.schedules.cpu.vectors import ZERO, Expr, branch
from te_select.schedules.cpu.walk import loop

LENGTHS = range(2, 9)  # elements; each length takes 0.07 s to compile
_WITHIN = {"f": "f", "o": "s", "i": "f", "s": "s"}  # how an operand moves within a single row
_DOWN = {"f": "f", "o": "f", "i": "s", "s": "s"}  # and down a column, if rows have one element


def rows_of_named_length(given: Arguments) -> None:
    """Write the span's statements."""
    branch(
        given.inner == 1,
        lambda: plain_span(_plain(given, given.n, _DOWN)),
        lambda: _of_length(given, LENGTHS),
    )


def _of_length(given: Arguments, lengths: range) -> None:
    """Spans for the given lengths, and for all that are longer."""
    if not lengths:
        _longer(given)
        return
    known = replace(given.span, inner=lengths[0])
    branch(
        given.inner == lengths[0],
        lambda: short_rows(replace(given, span=known, inner=T.int64(lengths[0]))),
        lambda: _of_length(given, lengths[1:]),
    )


def _longer(given: Arguments) -> None:
    if not given.span.streaming:
        _by_direction(given)
        return
    long = given.inner >= SHORT_ROW_BYTES // given.span.width
    worth = T.And(long, given.has_flag(STREAM))
    branch(worth, lambda: rows_end_to_end(given), lambda: _by_direction(given))


def _by_direction(given: Arguments) -> None:
    """Rows that are too short to go backwards do not ask for the direction of each."""
    forwards = replace(given, span=replace(given.span, forwards=True))
    long = given.inner >= LEAST_BYTES // given.span.width
    branch(long, lambda: _row_by_row(given), lambda: _row_by_row(forwards))


def _row_by_row(given: Arguments) -> None:
    def row(r: Expr) -> None:
        run = _plain(given.from_row(r), given.inner, _WITHIN)
        plain_span(replace(run, span=replace(run.span, streaming=False)))

    loop(ZERO, given.n, 1, row)


def _plain(given: Arguments, n: Expr, moves: Mapping[str, str]) -> Arguments:
    """The arguments of a plain span of n elements."""
    cond, then, else_ = (moves[given.moves[name]] for name in ("cond", "then", "else_"))
    span = replace(given.span, cond=cond, then=then, else_=else_, inner=1)
    return replace(given, span=span, n=n, inner=T.int64(1))
