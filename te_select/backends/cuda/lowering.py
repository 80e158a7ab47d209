"""Lowering for CUDA: from a scheduled function to the source of a kernel.

The schedule's bound loops say how many blocks and threads there are, and how many vectors a thread
takes. The annotated leaf becomes a span kernel (`te_select.schedules.cuda.span`). There is one
kernel per workload. Where its code depends on the pointers, it decides at run time, and all threads
decide alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx

from te_select.backends.select_leaf import block_of, operands_of, steps_of
from te_select.operator.access import AccessPattern
from te_select.schedules.cuda import schedule
from te_select.schedules.cuda import span as spans
from te_select.schedules.cuda.span import Span
from te_select.schedules.leaf import leaves, refused, with_leaf

_FLAT_LOOPS = 4  # tile, thread, vector and lane; a fifth loop goes from tile to tile
_OPERATORS = {tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*", tirx.FloorDiv: "/", tirx.FloorMod: "%"}


@dataclass(frozen=True)
class CudaFunction:
    """A kernel and how it is launched.

    Parameters
    ----------
    symbol
        The kernel: ``extern "C" __global__ void symbol(const void* cond, const void* then,
        const void* else_, void* out, long long dim, ..., te_select_scalars scalars)``. Each pointer
        is aligned to its carried element (at most 8 bytes); out may be then or else_. The pointer
        of an operand of one element may be null. Then its value is in ``scalars``.
    kernel
        CUDA C++ of this kernel alone, without the code that it shares with others.
    threads
        Threads per block.
    blocks
        Blocks of the grid: a C expression of type int64_t over ``sizes[k]``, the k-th named dim, or
        an integer. It is at most 2^31-1. It is 0 if there is nothing to do; then nothing may be
        launched.
    func
        The function whose leaf is a call of the span.
    """

    symbol: str
    kernel: str
    threads: int
    blocks: str
    func: tirx.PrimFunc

    @property
    def source(self) -> str:
        """CUDA C++ of the kernel and everything that it needs, without includes."""
        return translation_unit([self])


def translation_unit(functions: Iterable[CudaFunction]) -> str:
    """Join kernels to one translation unit.

    Parameters
    ----------
    functions
        The kernels; their symbols differ.

    Returns
    -------
    str
        CUDA C++ without any include.
    """
    return spans.prelude() + "".join(function.kernel for function in functions)


def lower(
    func: tirx.PrimFunc, symbol: str, dim_names: Sequence[str], pattern: AccessPattern
) -> CudaFunction:
    """Lower a scheduled function.

    Parameters
    ----------
    func
        The function that `te_select.schedules.cuda.schedule.apply` made from the definition.
    symbol
        Name of the kernel to make.
    dim_names
        The named dims, in the order of their parameters.
    pattern
        The workload's access pattern.

    Returns
    -------
    CudaFunction
        The kernel's source and its grid.
    """
    if pattern.elements == 0:
        nothing = tirx.PrimFunc(func.params, tirx.Evaluate(0))
        return CudaFunction(symbol, _nothing(symbol, len(dim_names)), 1, "0", nothing)
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(func.body, (tirx.For, loops.append), order="pre")
    grid, block = (_bound(loops, axis) for axis in ("blockIdx.x", "threadIdx.x"))
    (leaf,) = leaves(func.body)
    span = schedule.span_of(pattern, schedule.config_of(func))
    _check(func, leaf, pattern, span)
    # If a name decides how many tiles there are, there may be more tiles than a grid has blocks.
    strided = len(loops) > _FLAT_LOOPS or not isinstance(grid.extent, tirx.IntImm)
    threads, vectors = int(block.extent), int(leaf.extent)
    text = spans.kernel(span, symbol, pattern, dim_names, (threads, vectors, strided))
    lowered = _call_span(func, grid, span.symbol)
    return CudaFunction(symbol, text, threads, _blocks(grid.extent, dim_names), lowered)


def _check(func: tirx.PrimFunc, leaf: tirx.For, pattern: AccessPattern, span: Span) -> None:
    """Refuse a leaf whose operands are not the parameters, or move otherwise than in the span."""
    block = block_of(leaf)
    steps_of(block, pattern)
    given = dict(zip(("cond", "then", "else", "out"), func.params, strict=True))
    loads = operands_of(block.body)
    if not all(load.source.same_as(given[operand]) for operand, load in loads.items()):
        raise refused(block.body)
    if [span.cond, span.then, span.else_] != spans.moves(pattern):
        raise refused(block.body)


def _bound(loops: Sequence[tirx.For], axis: str) -> tirx.For:
    bound = (loop for loop in loops if loop.thread_binding is not None)
    return next(loop for loop in bound if loop.thread_binding.thread_tag == axis)


def _call_span(func: tirx.PrimFunc, grid: tirx.For, symbol: str) -> tirx.PrimFunc:
    """Replace the leaf by a call of the span."""
    zero = tirx.IntImm("int64", 0)
    pointers = [
        tirx.address_of(tirx.BufferLoad(param, [zero] * len(param.ty.shape)))
        for param in func.params
    ]
    dims = {dim.name: dim for dim in func.params[-1].ty.shape if isinstance(dim, ir.Var)}
    call = tirx.Evaluate(tirx.call_extern("void", symbol, *pointers, *dims.values()))
    return tirx.PrimFunc(func.params, with_leaf(grid, call))


def _nothing(symbol: str, dims: int) -> str:
    sizes = "long long, " * dims
    pointers = "const void*, const void*, const void*, void*"
    return (
        f'\nextern "C" __global__ void\n{symbol}({pointers}, {sizes}const te_select_scalars) {{}}\n'
    )


def _blocks(extent: ir.Expr, dim_names: Sequence[str]) -> str:
    """Write the number of blocks in C."""
    if isinstance(extent, tirx.IntImm):
        return str(extent.value)
    blocks = _c(extent, dim_names)
    return f"({blocks} < {schedule.LARGEST_GRID} ? {blocks} : {schedule.LARGEST_GRID})"


def _c(expr: ir.Expr, dim_names: Sequence[str]) -> str:
    """Write an expression over the named dims in C; no term may be negative."""
    if isinstance(expr, ir.Var):
        return f"sizes[{list(dim_names).index(expr.name)}]"
    if isinstance(expr, tirx.IntImm):
        return f"INT64_C({expr.value})"
    if isinstance(expr, tirx.Cast):
        return _c(expr.value, dim_names)
    a, b = (_c(term, dim_names) for term in (expr.a, expr.b))
    return f"({a} {_OPERATORS[type(expr)]} {b})"
