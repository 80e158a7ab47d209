"""Lowering: from a scheduled function to a raw C function whose leaves are spans.

Three steps are added to TVM's own pipeline. Annotated loops become the statements of spans
(`te_select.schedules.cpu.statements`). The parallel loop becomes the share of one task, because the
C half has threads of its own; TVM would call a pointer that all its objects in a program share.
Parameters become plain pointers and sizes, because the exported function with its checks is written
in C (``runtime/c/host.c``). All extents are int64.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform
from tvm.target import Target

from te_select.backends.scheduled import Scheduled
from te_select.backends.select_leaf import block_of, operands_of, steps_of
from te_select.operator.access import AccessPattern, access_pattern
from te_select.schedules.cpu import schedule
from te_select.schedules.cpu.span import FLAGS, Span
from te_select.schedules.cpu.statements import statements
from te_select.schedules.leaf import leaves, opened, with_leaf
from te_select.schedules.seam import Condition

_TO_LOOPS = (
    s_tir.transform.CanonicalizeLoop,
    s_tir.transform.LowerInitBlock,
    s_tir.transform.PlanAndUpdateBufferAllocationLocation,
    s_tir.transform.ConvertBlocksToOpaque,
    s_tir.transform.CompactBufferAllocation,
    s_tir.transform.LowerMatchBuffer,
    s_tir.transform.StmtSimplify,
    s_tir.transform.LowerOpaqueBlock,
    tirx.transform.FlattenBuffer,
    tirx.transform.StmtSimplify,
)
_TO_CODE = (tirx.transform.LowerTVMBuiltin, tirx.transform.LowerIntrin)


def lower(
    func: tirx.PrimFunc,
    symbol: str,
    dim_names: Sequence[str],
    pattern: AccessPattern,
    target: Target | None,
    instead: Mapping[str, Condition] = {},
    *,
    shown: bool = False,
) -> tirx.PrimFunc:
    """Lower a scheduled function.

    Parameters
    ----------
    func
        The definition, after a schedule was applied.
    symbol
        Name of the C function to make:
        ``int32_t symbol(void* cond, void* then, void* else_, void* out, int64_t dim, ...,
        int64_t flags, int64_t task, int64_t tasks)``, with the flags of
        `te_select.schedules.cpu.span.FLAGS`. It does one of ``tasks`` shares of the work.
    dim_names
        The named dims, in the order of their parameters.
    pattern
        The workload's access pattern.
    target
        The TVM target, as `te_select.schedules.cpu.schedule.span_of` has it.
    instead
        Other functions with the same parameters, by symbol, each with the condition of the calls
        that it takes over. If several conditions hold, the last function is called.
    shown
        Whether to leave out what can never be reached, which LLVM does otherwise.

    Returns
    -------
    tvm.tirx.PrimFunc
        The function, ready for `build`.
    """
    how = [tirx.Var(name, "int64") for name in ("flags", "task", "tasks")]
    flags, *part = how
    if pattern.elements == 0:
        return raw(func.params, tirx.Evaluate(0), symbol, dim_names, how)
    (leaf,) = leaves(func.body)
    steps_of(block_of(leaf), pattern)  # refuses a leaf that moves otherwise
    span = schedule.span_of(pattern, schedule.config_of(func), target)
    flat = to_loops(func)
    # Not in a callback, because TVM turns an exception in a callback into a RuntimeError.
    (leaf,) = leaves(flat.body)
    written = _written(leaf, span, flags)
    if shown:
        whole = tirx.PrimFunc([*flat.params, *how], with_leaf(flat.body, written))
        simple = tirx.transform.StmtSimplify()(IRModule({"main": whole}))["main"]
        body = _shared(simple.body, *part)
    else:
        body = with_leaf(_shared(flat.body, *part), written)
    return raw(flat.params, body, symbol, dim_names, how, instead)


def to_loops(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Make plain loops over flat buffers of a function's blocks."""
    passes = transform.Sequential([make() for make in _TO_LOOPS])
    return passes(IRModule({"main": func}))["main"]


def lower_kernel(
    one: Scheduled, name: str, target: Target, *, shown: bool = False
) -> list[tirx.PrimFunc]:
    """Lower to a raw C function ``name``, and to the functions that take over some of its calls."""
    of = (one.workload.dim_names, access_pattern(one.workload), target)
    instead: dict[str, Condition] = {}
    others = []
    for variant, func in reversed(list(one.functions.items())):  # the last is asked first
        if variant.applies is not None:
            other = f"{name}_{variant.name}"
            instead[other] = variant.applies
            others.append(lower(func, other, *of, shown=shown))
    return [lower(one.func, name, *of, instead, shown=shown), *others]


def build(functions: Sequence[tirx.PrimFunc], target: Target) -> Any:
    """Generate code for lowered functions.

    Parameters
    ----------
    functions
        Functions that `lower` made, with different symbols.
    target
        The TVM target.

    Returns
    -------
    tvm.runtime.Module
        One LLVM module.
    """
    mod = IRModule({str(f.attrs["global_symbol"]): f for f in functions})
    mod = tirx.transform.BindTarget(target)(mod)
    mod = transform.Sequential([make() for make in _TO_CODE])(mod)
    return tvm_ffi.get_global_func("target.build.llvm")(mod, target)


def _written(loop: tirx.For, span: Span, flags: ir.Var) -> tirx.Stmt:
    """The statements of a span that replace a leaf."""
    rows, inner, store, at_start = opened(loop)
    addresses = {
        operand: tirx.address_of(at_start(load)) for operand, load in operands_of(store).items()
    }
    return statements(span, addresses, rows, inner, flags)


def _shared(stmt: tirx.Stmt, task: ir.Var, tasks: ir.Var) -> tirx.Stmt:
    """What a task does: its share of parallel loops; the first one does what is in none of them."""
    if isinstance(stmt, tirx.SeqStmt) and not any(isinstance(s, tirx.Bind) for s in stmt.seq):
        return tirx.SeqStmt([_shared(each, task, tasks) for each in stmt.seq])
    if isinstance(stmt, tirx.DeclBuffer):
        return stmt
    if not (isinstance(stmt, tirx.For) and stmt.kind == tirx.ForKind.PARALLEL):
        return tirx.IfThenElse(task == 0, stmt, None)
    begin, count = (tirx.Var(name, "int64") for name in ("begin", "count"))
    return tirx.SeqStmt(
        [
            tirx.Bind(begin, _share(stmt.extent, task, tasks)),
            tirx.Bind(count, _share(stmt.extent, task + 1, tasks) - begin),
            tirx.For(stmt.loop_var, begin, count, tirx.ForKind.SERIAL, stmt.body),
        ]
    )


def _share(things: ir.Expr, part: ir.Expr, parts: ir.Var) -> ir.Expr:
    """Where the share of a part begins, as ``te_select_share`` of ``task.h``."""
    rest = tirx.truncdiv(tirx.truncmod(things, parts) * part, parts)
    return tirx.truncdiv(things, parts) * part + rest


def raw(
    params: Sequence[ir.Var],
    body: tirx.Stmt,
    symbol: str,
    dim_names: Sequence[str],
    how: Sequence[ir.Var],
    instead: Mapping[str, Condition] = {},
) -> tirx.PrimFunc:
    """Make the buffer parameters plain pointers, followed by the named dims and ``how``."""
    pointers: list[ir.Var] = []
    declarations: list[tirx.Stmt] = []
    dims: dict[str, ir.Var] = {}
    for param in params:
        t = param.ty
        pointer = ir.Var(f"{param.name}_data", ir.PointerType(t.dtype))
        pointers.append(pointer)
        declarations.append(tirx.DeclBuffer(param, data=pointer))
        dims.update({dim.name: dim for dim in t.shape if isinstance(dim, ir.Var)})
    parameters = [*pointers, *(dims[name] for name in dim_names), *how]
    named_flags = {name: how[0] & bit for name, bit in FLAGS.items()}
    for other, applies in instead.items():
        call = tirx.call_extern("int32", other, *parameters)
        body = tirx.IfThenElse(applies(dims, named_flags), tirx.Evaluate(call), body)
    # An explicit calling convention keeps TVM from wrapping the function in its packed ABI.
    attrs = {"global_symbol": symbol, "calling_conv": 2}
    return tirx.PrimFunc(
        parameters, tirx.SeqStmt([*declarations, body]), ir.PrimType("int32")
    ).with_attr(attrs)
