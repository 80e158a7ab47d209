"""The span for rows whose length has a name: each call chooses among other spans.

Shuffles need their lanes at compile time, so some lengths get a span of their own: the short ones
that are usual, such as the channels of points, pixels and boxes. Rows that are not short go end to
end if stores go past the cache (`rows_end_to_end`). Any other row is a plain span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from te_select.schedules.cpu import plain_span, rows_end_to_end, short_rows
from te_select.schedules.cpu.config import SHORT_ROW_BYTES
from te_select.schedules.cpu.flags import STREAM
from te_select.schedules.cpu.llvm_ir import IRWriter
from te_select.schedules.cpu.span import ARGUMENTS, Span

LENGTHS = range(2, 9)  # elements; each length takes 0.07 s to compile
_WITHIN = {"f": "f", "o": "s", "i": "f", "s": "s"}  # how an operand moves within a single row
_DOWN = {"f": "f", "o": "f", "i": "s", "s": "s"}  # and down a column, if rows have one element


def source(span: Span) -> str:
    """Write the span, and the spans that it chooses from.

    Parameters
    ----------
    span
        A span with an ``inner`` of 0.

    Returns
    -------
    str
        LLVM IR text, without `METADATA`.
    """
    single = replace(_plain(span, _WITHIN), streaming=False)
    known = {1: _plain(span, _DOWN)} | {each: replace(span, inner=each) for each in LENGTHS}
    plain = {each.symbol: each for each in (single, *known.values())}.values()
    texts = [(plain_span if each.inner == 1 else short_rows).source(each) for each in plain]
    end_to_end = None
    if span.streaming:
        end_to_end = replace(span, end_to_end=True)
        texts.append(rows_end_to_end.source(end_to_end))
    chooser = _Chooser(span, single, known, end_to_end)
    return "\n".join([*texts, chooser.text()])


def _plain(span: Span, moves: Mapping[str, str]) -> Span:
    cond, then, else_ = (moves[letter] for letter in (span.cond, span.then, span.else_))
    return replace(span, cond=cond, then=then, else_=else_, inner=1)


class _Chooser(IRWriter):
    """Writes the function that looks at the length of the rows."""

    def __init__(
        self, span: Span, single: Span, known: dict[int, Span], end_to_end: Span | None
    ) -> None:
        super().__init__()
        self.span, self.single, self.known = span, single, known
        self.end_to_end = end_to_end

    def text(self) -> str:
        self.lines.append(f"define void @{self.span.symbol}({ARGUMENTS}) alwaysinline nounwind {{")
        self.start("entry")
        blocks = {length: self.label() for length in self.known}
        other = self.label()
        cases = " ".join(f"i64 {length}, label %{block}" for length, block in blocks.items())
        self.line(f"switch i64 %inner, label %{other} [ {cases} ]")
        for length, block in blocks.items():
            self.start(block)
            self._leave_to(self.known[length])
        self.start(other)
        if self.end_to_end is not None:
            joined, each = self.label(), self.label()
            long = self.emit(f"icmp uge i64 %inner, {SHORT_ROW_BYTES // self.span.width}")
            past_cache = self.emit(f"icmp ne i64 {self.emit(f'and i64 %flags, {STREAM}')}, 0")
            self.branch(self.emit(f"and i1 {long}, {past_cache}"), joined, each)
            self.start(joined)
            self._leave_to(self.end_to_end)
            self.start(each)
        self.loop("0", "%n", 1, self._row)
        self.line("ret void")
        return "\n".join([*self.lines, "}"])

    def _leave_to(self, span: Span) -> None:
        self.line(f"call void @{span.symbol}({ARGUMENTS})")
        self.line("ret void")

    def _row(self, row: str) -> None:
        span = self.span
        first = self.emit(f"mul i64 {row}, %inner")
        starts = {"f": first, "o": row, "i": "0", "s": "0"}
        out = self.pointer("out", span.width, first, 0)
        cond = self.pointer("cond", 1, starts[span.cond], 0)
        then = self.pointer("then", span.width, starts[span.then], 0)
        else_ = self.pointer("else", span.width, starts[span.else_], 0)
        self.line(
            f"call void @{self.single.symbol}(ptr {out}, ptr {cond}, ptr {then}, ptr {else_}, "
            "i64 %inner, i64 1, i64 %flags)"
        )
