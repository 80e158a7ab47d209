"""Spans of short rows, several of which share a vector.

Rows are taken ``lanes`` at a time. Together these have ``inner`` whole vectors, however short a row
is. Shuffles make the vectors of an operand that has one value per row, or that is the same in every
row. The walk is that of a plain span.
"""

from __future__ import annotations

from math import gcd

from te_select.schedules.cpu.plain_span import PlainWriter
from te_select.schedules.cpu.span import Group, Span


def source(span: Span) -> str:
    """Write the span as LLVM IR text, without `METADATA`."""
    return _Writer(span).text()


class _Writer(PlainWriter):
    """Writes the LLVM IR of one span."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.periods: dict[str, list[str]] = {}

    def few(self, first: str, count: str, group: Group) -> None:
        """Cover ``count`` rows from row ``first`` on, one by one."""
        stop = self.emit(f"add i64 {first}, {count}")
        self.loop(first, stop, 1, lambda at: self.store(group(at, 1)))

    def operand(
        self, name: str, moves: str, width: int, at: str, base: str, rows: int, j: int
    ) -> str:
        """Vector j of ``rows`` lanes: lane l holds element ``j * rows + l`` of the group."""
        inner = self.span.inner
        if moves == "o":
            loaded = self.load(name, width, at, 0, rows)
            picks = [(j * rows + k) // inner for k in range(rows)]
            return self.shuffle(loaded, "poison", width, rows, picks)
        if moves == "i":
            return self._periodic(name, width, rows, j)
        return super().operand(name, moves, width, at, base, rows, j)

    def _periodic(self, name: str, width: int, rows: int, j: int) -> str:
        """Lanes ``(j * rows + l) % inner`` of a row."""
        inner = self.span.inner
        if rows == self.span.lanes and inner <= rows and name in self.periods:
            return self.periods[name][j % len(self.periods[name])]
        first = j * rows % inner
        if first + rows <= inner:
            return self.load(name, width, "0", first, rows)
        if inner <= rows:
            loaded = self.load(name, width, "0", 0, inner)
            lanes = [(first + k) % inner for k in range(rows)]
            return self.shuffle(loaded, "poison", width, inner, lanes)
        end = self.load(name, width, "0", inner - rows, rows)
        begin = self.load(name, width, "0", 0, rows)
        skip = first - (inner - rows)
        return self.shuffle(end, begin, width, rows, [skip + k for k in range(rows)])

    def preload(self, name: str, moves: str, width: int) -> None:
        """Load and shuffle once, before the loop, what stays the same."""
        super().preload(name, moves, width)
        lanes, inner = self.span.lanes, self.span.inner
        if moves == "i" and inner <= lanes:
            count = inner // gcd(inner, lanes)
            self.periods[name] = [self._periodic(name, width, lanes, j) for j in range(count)]
