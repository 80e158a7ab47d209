"""Dispatch to the emitter of a span, whose TIR takes the place of a loop."""

from collections.abc import Mapping

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.arguments import Arguments
from te_select.schedules.cpu.plain_span import plain_span
from te_select.schedules.cpu.rows_end_to_end import rows_end_to_end
from te_select.schedules.cpu.rows_of_named_length import rows_of_named_length
from te_select.schedules.cpu.short_rows import short_rows
from te_select.schedules.cpu.span import Span
from te_select.schedules.cpu.vectors import Array, Expr, imported_text, let

_WRITERS = {
    "plain run": plain_span,
    "short rows": short_rows,
    "rows end to end": rows_end_to_end,
    "rows of named length": rows_of_named_length,
}


def statements(
    span: Span, addresses: Mapping[str, Expr], n: Expr, inner: Expr, flags: Expr
) -> tirx.Stmt:
    """Write a span.

    Parameters
    ----------
    span
        The span.
    addresses
        Pointers to the first elements of ``out``, ``cond``, ``then`` and ``else``.
    n, inner
        How many rows there are, and elements in each.
    flags
        Of the call.

    Returns
    -------
    tvm.tirx.Stmt
        The statements.
    """
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("span")
        out, cond, then, else_ = (
            Array.at(name, 1 if name == "cond" else span.width, addresses[name.rstrip("_")])
            for name in ("out", "cond", "then", "else_")
        )
        rows, elements = (extent.astype("int64") for extent in (n, inner))
        given = Arguments(span, out, cond, then, else_, let("n", rows), elements, flags)
        _WRITERS[span.kind](given)
    text = imported_text(span.vector_bytes if span.streaming else None)
    return tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", text, builder.get().body)
