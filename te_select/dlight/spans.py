"""Puts spans into the place of leaves, in functions that TVM's own pipeline lowers."""

from typing import Any

import tvm_ffi
from tvm import ir, sym, tirx

from te_select.dlight.legalized import loads_of
from te_select.schedules.cpu.span import Span
from te_select.schedules.cpu.statements import statements
from te_select.schedules.leaf import ANNOTATION

_REINTERPRET = ir.Op.get("tirx.reinterpret")
# TVM's FP8StorageLegalize refuses a reinterpret whose operand is a pointer.
_OF_POINTERS = """\
define linkonce_odr ptr @te_select_pointer(ptr %from) alwaysinline nounwind {
  ret ptr %from
}
define linkonce_odr i64 @te_select_address(ptr %from) alwaysinline nounwind {
  %address = ptrtoint ptr %from to i64
  ret i64 %address
}
"""


def with_spans(func: tirx.PrimFunc, flags: int) -> tirx.PrimFunc:
    """Replace the leaves of a scheduled function by the statements of their spans.

    Parameters
    ----------
    func
        The function of a where, scheduled by ``schedules.cpu.schedule.apply_to``.
    flags
        What is decided for all calls: bits of `te_select.schedules.cpu.span.FLAGS`.

    Returns
    -------
    tvm.tirx.PrimFunc
        The function, whose root block holds the statements.
    """

    def span_or_loop(loop: tirx.For) -> tirx.Stmt:
        if ANNOTATION in loop.annotations:
            return _span(loop, flags)
        return loop

    body = tvm_ffi.structural_map(func.body, (tirx.For, span_or_loop), order="pre")
    return tirx.PrimFunc(func.params, body, func.ret_type, func.attrs)


def _span(leaf: tirx.For, flags: int) -> tirx.Stmt:
    """The statements that replace a leaf, which is one loop or two around the block."""
    rows = leaf.loop_var
    inner = tirx.IntImm("int64", 1)
    realize = leaf.body
    at_start = [rows]
    if isinstance(realize, tirx.For):
        at_start.append(realize.loop_var)
        inner, realize = realize.extent, realize.body
    limit = leaf.extent
    if isinstance(realize.predicate, tirx.LT):  # scale * row + first < end, of the last piece
        scale, first = sym.detect_linear_equation(realize.predicate.a, [rows])
        left = tirx.floordiv(realize.predicate.b - first + scale - 1, scale)
        limit = tirx.min(limit, left)
    zero = tirx.IntImm("int64", 0)
    axes = [axis.var for axis in realize.block.iter_vars]
    values = [_replaced(value, at_start, [zero] * 2) for value in realize.iter_values]
    addresses = {
        name: tirx.address_of(_replaced(load, axes, values))
        for name, load in loads_of(realize.block).items()
    }
    span = Span.from_symbol(str(leaf.annotations[ANNOTATION]))
    n, elements = (extent.astype("int64") for extent in (limit, inner))
    written = statements(span, addresses, n, elements, tirx.IntImm("int64", flags))
    written = tvm_ffi.structural_map(written, (ir.Call, _without_pointer), order="post")
    return tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", _OF_POINTERS, written)


def _replaced(expr: Any, variables: list[ir.Var], values: list[ir.Expr]) -> Any:
    pairs = list(zip(variables, values, strict=False))
    return tvm_ffi.structural_map(
        expr, (ir.Var, lambda var: next((to for each, to in pairs if var.same_as(each)), var))
    )


def _without_pointer(call: ir.Call) -> ir.Call:
    """A reinterpret of a pointer, as a call of one of `_OF_POINTERS`."""
    if not call.op.same_as(_REINTERPRET) or not isinstance(call.args[0].ty, ir.PointerType):
        return call
    name = "te_select_pointer" if isinstance(call.ty, ir.PointerType) else "te_select_address"
    return tirx.call_extern(call.ty, name, call.args[0])
