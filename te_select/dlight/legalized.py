"""Recognizes the function that TVM makes of a where: exactly one Select, and nothing beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, s_tir, sym, tirx

from te_select.operator.broadcast import Dim, Shape
from te_select.operator.workload import Workload
from te_select.schedules.leaf import is_zero, parts_of

_NAME = "T_where"  # of the blocks that TVM's topi makes of a where


@dataclass(frozen=True)
class Legalized:
    """A function that computes one where, as ``relax.transform.LegalizeOps`` writes it.

    Parameters
    ----------
    block
        Its only block.
    params
        Which parameters are cond, then and else.
    workload
        What it computes.
    """

    block: s_tir.SBlock
    params: tuple[int, ...]
    workload: Workload


def legalized(func: tirx.PrimFunc) -> Legalized | None:
    """Recognize the function of a where.

    Parameters
    ----------
    func
        A function, not scheduled yet.

    Returns
    -------
    Legalized or None
        None if it is not ``out[...] = Select(cond[...], then[...], else_[...])`` alone, with every
        operand broadcast as ONNX and NumPy do it.

    Raises
    ------
    SelectError
        If its shapes or element types are none that a kernel has.
    """
    block = _only_block(func)
    loads = {} if block is None else loads_of(block)
    if block is None or not loads:
        return None
    *inputs, out = loads.values()
    types = [load.source.ty for load in loads.values()]
    axes = [axis.var for axis in block.iter_vars]
    extents = [axis.dom.extent for axis in block.iter_vars]
    is_whole = (
        out.source.same_as(func.params[-1])
        and all(map(_is, out.indices, axes))
        and all(map(sym.Analyzer().can_prove_equal, extents, types[-1].shape))
    )
    if not is_whole:
        return None
    params = list(func.params[:-1])  # the last one is out
    sources = tuple(
        k for load in inputs for k, param in enumerate(params) if param.same_as(load.source)
    )
    of_cond, *elements = (str(each.dtype) for each in types)
    if len(sources) < len(inputs) or of_cond != "bool" or len(set(elements)) > 1:
        return None
    cond, then, else_, whole = _dims_of(each.shape for each in types)
    pairs = zip(inputs, (cond, then, else_), strict=True)
    is_aligned = all(_is_aligned(load, dims, axes, whole) for load, dims in pairs)
    if not is_aligned or any(each.strides for each in types):
        return None
    workload = Workload(cond, then, else_, elements[0], "multidirectional")
    if workload.out_shape != whole:  # out is larger than what the operands broadcast to
        return None
    return Legalized(block, sources, workload)


def loads_of(block: s_tir.SBlock) -> dict[str, ir.TensorLoad]:
    """The loads of ``cond``, ``then`` and ``else``, and as ``out`` the element that is written.

    They are empty if the block is no Select of elements.
    """
    loads = parts_of(block.body)
    if loads:
        loads["cond"] = _tested(loads["cond"])
    return loads if all(isinstance(load, ir.TensorLoad) for load in loads.values()) else {}


def holds_where(func: tirx.PrimFunc) -> bool:
    """Whether a function computes a where, be it among other things."""
    names: list[str] = []
    tvm_ffi.structural_walk(
        func.body, (s_tir.SBlock, lambda block: names.append(str(block.name_hint))), order="pre"
    )
    return any(name.startswith(_NAME) for name in names)


def workload_of(shapes: Iterable[Iterable[ir.Expr]], dtype: str) -> Workload:
    """The workload of a where on shapes of TVM: cond, then, else.

    Raises
    ------
    SelectError
        If there is no such workload.
    """
    cond, then, else_ = _dims_of(shapes)
    return Workload(cond, then, else_, dtype, "multidirectional")


def _dims_of(shapes: Iterable[Iterable[ir.Expr]]) -> list[tuple[Dim, ...]]:
    """The dims of shapes of TVM.

    Dims that are no numbers get the names d0, d1, ... in the order in which they come, the same for
    those that are provably equal. So one kernel serves functions that only name them differently.
    """
    analyzer = sym.Analyzer()
    known: list[ir.Expr] = []

    def dim(extent: ir.Expr) -> Dim:
        if isinstance(extent, tirx.IntImm):
            return int(extent.value)
        for k, other in enumerate(known):
            if analyzer.can_prove_equal(extent, other):
                return f"d{k}"
        known.append(extent)
        return f"d{len(known) - 1}"

    return [tuple(map(dim, shape)) for shape in shapes]


def _only_block(func: tirx.PrimFunc) -> s_tir.SBlock | None:
    """The block of a function that is one nest of loops, each of which is an axis of the block."""
    if not isinstance(func.body, s_tir.SBlockRealize):
        return None
    root = func.body.block
    loops = []
    body: Any = root.body
    while isinstance(body, tirx.For) and body.kind == tirx.ForKind.SERIAL:
        loops.append(body)
        body = body.body
    if not isinstance(body, s_tir.SBlockRealize) or any(map(_has_more, (root, body.block))):
        return None
    values = list(body.iter_values)
    axes = body.block.iter_vars
    analyzer = sym.Analyzer()
    if any(axis.iter_type != tirx.IterVar.DataPar for axis in axes):
        return None
    if not loops:  # a single element
        return body.block if len(values) <= 1 else None
    plain = len(values) == len(loops) and all(
        value.same_as(loop.loop_var)
        and is_zero(loop.min)
        and analyzer.can_prove_equal(loop.extent, axis.dom.extent)
        for value, axis, loop in zip(values, axes, loops, strict=True)
    )
    return body.block if plain and analyzer.can_prove(body.predicate) else None


def _has_more(block: s_tir.SBlock) -> bool:
    """Whether a block has more than its body."""
    return block.init is not None or len(block.alloc_buffers) + len(block.match_buffers) > 0


def _tested(condition: ir.Expr) -> ir.Expr:
    """What is tested in ``0 < Cast(int64, cond)``, the form that TVM gives to cond; or in cond."""
    if isinstance(condition, tirx.LT) and is_zero(condition.a):
        condition = condition.b
    return condition.value if isinstance(condition, tirx.Cast) else condition


def _is_aligned(load: ir.TensorLoad, dims: Shape, axes: Sequence[ir.Var], whole: Shape) -> bool:
    """Whether an operand is indexed by the axes of out, aligned right, or by 0 where it has 1."""
    behind = range(len(whole) - len(dims), len(whole))
    return all(
        (_is(index, axes[k]) and dim == whole[k]) or (is_zero(index) and dim == 1)
        for index, dim, k in zip(load.indices, dims, behind, strict=True)
    )


def _is(index: ir.Expr, axis: ir.Var) -> bool:
    return bool(index.same_as(axis))
