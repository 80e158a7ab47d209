"""Spans of short rows, several of which share a vector.

The scalar loop that they stand for, here with a row-constant cond and an ``else_`` of one row::

    for r in range(n):
        for x in range(inner):
            out[r * inner + x] = then[r * inner + x] if cond[r] else else_[x]

The main loop (`walk`) takes ``lanes`` rows at a time: ``inner`` whole vectors, however short a row
is. Lane l of vector j of the rows from r on is::

    element = j * lanes + l
    out[r * inner + element] = Select(cond[r + element // inner] != 0,
                                      then[r * inner + element], else_[element % inner])

Shuffles make the vectors of row-constant operands, and of operands of one row. The latter are made
once, before the loop.
"""

from collections.abc import Callable, Sequence
from math import gcd
from typing import TypeAlias

from tvm import tirx

from te_select.schedules.cpu.arguments import Arguments
from te_select.schedules.cpu.plain_span import choice, reader
from te_select.schedules.cpu.vectors import Array, Expr, let
from te_select.schedules.cpu.walk import Walk, loop

# Vector j of an operand: from arguments, a first row, a number of rows, and j.
Column: TypeAlias = Callable[[Arguments, Expr, int, int], Expr]


def short_rows(given: Arguments) -> None:
    """Write the span's statements."""
    inner = given.span.inner
    vector = choice(*(_column(given, name) for name in ("cond", "then", "else_")))

    def select(here: Arguments, row: Expr, rows: int) -> list[Expr]:
        return [vector(here, row, rows, j) for j in range(inner)]

    def one_by_one(first: Expr, count: Expr) -> None:
        loop(first, first + count, 1, lambda row: walk.store(select, [(given.from_row(row), 0)], 1))

    walk = Walk(given, select, remainder=one_by_one)
    walk.cover()


def _column(given: Arguments, name: str) -> Column:
    """What gives the vectors of an operand, by how it moves."""
    inner = given.span.inner
    moves = given.moves[name]
    if moves == "o":
        return lambda here, row, rows, j: _shuffled(
            [getattr(here, name).load(row, rows)], [(j * rows + k) // inner for k in range(rows)]
        )
    if moves == "i":
        return _periodic_column(getattr(given, name), inner, given.span.lanes)
    read = reader(given, name)
    return lambda here, row, rows, j: read(here, row * inner + j * rows, rows)


def _periodic_column(array: Array, inner: int, lanes: int) -> Column:
    """The vectors of an operand that is the same in every row; few enough are made here."""
    count = inner // gcd(inner, lanes) if inner <= lanes else 0
    periods = [let("period", _periodic(array, inner, lanes, j)) for j in range(count)]

    def column(_here: Arguments, _row: Expr, rows: int, j: int) -> Expr:
        if periods and rows == lanes:
            return periods[j % count]
        return _periodic(array, inner, rows, j)

    return column


def _periodic(array: Array, inner: int, rows: int, j: int) -> Expr:
    """Lanes ``(j * rows + l) % inner`` of a row."""
    first = j * rows % inner
    if first + rows <= inner:
        return array.load(first, rows)
    if inner <= rows:
        return _shuffled([array.load(0, inner)], [(first + k) % inner for k in range(rows)])
    ends = [array.load(inner - rows, rows), array.load(0, rows)]
    return _shuffled(ends, [first - (inner - rows) + k for k in range(rows)])


def _shuffled(vectors: Sequence[Expr], picks: Sequence[int]) -> Expr:
    """Pick lanes of vectors that follow each other; a scalar is what it picks of itself.

    TVM takes no more picks than there are lanes, so the vectors are repeated.
    """
    if len(picks) == 1:
        return vectors[0]
    lanes = sum(vector.ty.dtype.lanes for vector in vectors)
    copies = list(vectors) * -(-len(picks) // lanes)
    return tirx.Shuffle(copies, [tirx.IntImm("int32", pick) for pick in picks])
