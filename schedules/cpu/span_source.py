"""The LLVM IR of a span, by its symbol: chooses the file that writes it."""

from __future__ import annotations

import re

from te_select.schedules.cpu import plain_span, rows_end_to_end, rows_of_named_length, short_rows
from te_select.schedules.cpu.span import METADATA, Span

_REDUCTION = re.compile(r"(@llvm\.vector\.reduce\.\w+\.v(\d+)i8)")


def span_source(symbol: str) -> str:
    """Write the LLVM IR of a span. ``symbol`` is what `apply` annotated the leaf with."""
    span = Span.from_symbol(symbol)
    if span.end_to_end:
        source = rows_end_to_end.source
    elif span.inner == 0:
        source = rows_of_named_length.source
    else:
        source = plain_span.source if span.inner == 1 else short_rows.source
    text = source(span)
    called = sorted(set(_REDUCTION.findall(text)))
    declared = "".join(f"declare i8 {name}(<{lanes} x i8>)\n" for name, lanes in called)
    return f"{text}\n{declared}{METADATA}"
