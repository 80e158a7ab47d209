"""The LLVM IR of a span, by its symbol: chooses the file that writes it."""

from __future__ import annotations

import re

from te_select.schedules.cpu import plain_span, rows_end_to_end, rows_of_named_length, short_rows
from te_select.schedules.cpu.span import METADATA, Span

_REDUCTION = re.compile(r"(@llvm\.vector\.reduce\.\w+\.v(\d+)i8)")


_WRITERS = {
    "plain run": plain_span.source,
    "short rows": short_rows.source,
    "rows end to end": rows_end_to_end.source,
    "rows of named length": rows_of_named_length.source,
}


def span_source(symbol: str) -> str:
    """Write the LLVM IR of a span. ``symbol`` is what `apply` annotated the leaf with."""
    span = Span.from_symbol(symbol)
    text = _WRITERS[span.kind](span)
    called = sorted(set(_REDUCTION.findall(text)))
    declared = "".join(f"declare i8 {name}(<{lanes} x i8>)\n" for name, lanes in called)
    return f"{text}\n{declared}{METADATA}"
