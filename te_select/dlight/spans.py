"""Puts a span into the place of a leaf, in a function that TVM's own pipeline lowers."""

import tvm_ffi
from tvm import ir, tirx

from te_select.dlight.legalized import loads_of
from te_select.schedules.cpu.span import Span
from te_select.schedules.cpu.statements import statements
from te_select.schedules.leaf import leaves, opened, replaced, rows_left, with_leaf

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


def with_span(func: tirx.PrimFunc, span: Span, flags: int) -> tirx.PrimFunc:
    """Replace the leaf of a scheduled function by the statements of its span.

    Parameters
    ----------
    func
        The function of a where, scheduled by ``schedules.cpu.schedule.apply_to``.
    span
        The span of its leaf.
    flags
        What is decided for all calls: bits of `te_select.schedules.cpu.span.FLAGS`.

    Returns
    -------
    tvm.tirx.PrimFunc
        The function, whose root block holds the statements.
    """
    (leaf,) = leaves(func.body)
    body = with_leaf(func.body, _written(leaf, span, flags))
    return tirx.PrimFunc(func.params, body, func.ret_type, func.attrs)


def _written(leaf: tirx.For, span: Span, flags: int) -> tirx.Stmt:
    """The statements that replace a leaf around the block."""
    rows, inner, realize, at_start = opened(leaf)
    if isinstance(realize.predicate, tirx.LT):  # of the last piece
        rows = tirx.min(rows, rows_left(realize.predicate, leaf.loop_var))
    axes = [axis.var for axis in realize.block.iter_vars]
    values = list(map(at_start, realize.iter_values))
    addresses = {
        name: tirx.address_of(replaced(load, axes, values))
        for name, load in loads_of(realize.block).items()
    }
    written = statements(span, addresses, rows, inner, tirx.IntImm("int64", flags))
    written = tvm_ffi.structural_map(written, (ir.Call, _without_pointer), order="post")
    return tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", _OF_POINTERS, written)


def _without_pointer(call: ir.Call) -> ir.Call:
    """A reinterpret of a pointer, as a call of one of `_OF_POINTERS`."""
    if not call.op.same_as(_REINTERPRET) or not isinstance(call.args[0].ty, ir.PointerType):
        return call
    name = "te_select_pointer" if isinstance(call.ty, ir.PointerType) else "te_select_address"
    return tirx.call_extern(call.ty, name, call.args[0])
