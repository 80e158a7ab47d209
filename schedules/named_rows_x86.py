"""The span for short rows whose length only a call knows: one span per length, chosen at the call.

Shuffles need their lanes at compile time. So the lengths that occur, channels of points, pixels
and boxes, get the span of rows of that very length; any other row is a plain span of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from te_select.schedules.llvm_ir import IRWriter
from te_select.schedules.spans_x86 import ARGUMENTS, Span

LENGTHS = range(2, 9)  # a length costs 0.07 s of compilation
_WITHIN = {"f": "f", "o": "s", "i": "f", "s": "s"}  # how an operand moves within a single row
_DOWN = {"f": "f", "o": "f", "i": "s", "s": "s"}  # and from row to row, where rows are one element


def source(span: Span) -> str:
    """Write the span, and the spans that it chooses from.

    Parameters
    ----------
    span
        A span with an ``inner`` of 0.

    Returns
    -------
    str
        LLVM IR text.
    """
    single = replace(_plain(span, _WITHIN), streaming=False)
    known = {1: _plain(span, _DOWN)} | {each: replace(span, inner=each) for each in LENGTHS}
    spans = {each.symbol: each.llvm(metadata=False) for each in (single, *known.values())}
    chooser = _Chooser(span, single, known)
    return "\n".join([*spans.values(), chooser.text(), Span.METADATA])


def _plain(span: Span, moves: Mapping[str, str]) -> Span:
    cond, then, else_ = (moves[letter] for letter in (span.cond, span.then, span.else_))
    return replace(span, cond=cond, then=then, else_=else_, inner=1)


class _Chooser(IRWriter):
    """Writes the function that looks at the length of the rows."""

    def __init__(self, span: Span, single: Span, known: dict[int, Span]) -> None:
        super().__init__()
        self.span, self.single, self.known = span, single, known

    def text(self) -> str:
        self.lines.append(f"define void @{self.span.symbol}({ARGUMENTS}) alwaysinline nounwind {{")
        self.start("entry")
        blocks = {length: self.label() for length in self.known}
        other = self.label()
        cases = " ".join(f"i64 {length}, label %{block}" for length, block in blocks.items())
        self.line(f"switch i64 %inner, label %{other} [ {cases} ]")
        for length, block in blocks.items():
            self.start(block)
            self.line(f"call void @{self.known[length].symbol}({ARGUMENTS})")
            self.line("ret void")
        self.start(other)
        self.loop("0", "%n", 1, self._row)
        self.line("ret void")
        return "\n".join([*self.lines, "}"])

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
            "i64 %inner, i64 1, i64 0)"
        )
