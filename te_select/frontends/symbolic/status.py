"""What te-select does with a Where or Select, from what is known about its operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from te_select.errors import BroadcastError, DTypeError, ModelError
from te_select.frontends.symbolic.expressions import Dim, Expression, Unknown
from te_select.frontends.symbolic.names import Named, Names
from te_select.frontends.symbolic.tensors import Dims, Sizes, Tensor, broadcast_dims, is_cut, join
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.node import ModelNode, Status
from te_select.operator.systems import System
from te_select.operator.workload import Workload

Operands = tuple[Tensor, Tensor, Tensor]
"""cond, then and else."""

_Met = list[tuple[int, list[tuple[str, Dim]]]]
"""The dims of all operands on each axis, with the operands' names."""
_OPERANDS = ("cond", "then", "else")
_OF_SITE = ("name", "place", "op", "cond_producer")
_OF_TEXT = "string"
MOST_SHAPE_ELEMENTS = 64  # a shape has at most so many dims
SHAPE_TYPES = ("int64", "int32")


@dataclass(frozen=True)
class Rule:
    """How a format's operator combines its operands.

    Parameters
    ----------
    system
        The format's operator.
    auto_broadcast
        The node's broadcast mode, by the system's own name.
    axis
        The axis at which else and cond start; -1 if they are aligned right with then.
    """

    system: System
    auto_broadcast: str
    axis: int = -1


@dataclass(frozen=True)
class Site:
    """A Where or Select in the file.

    Parameters
    ----------
    name, place, op, cond_producer
        The fields of `ModelNode` with these names.
    makes_shapes
        Whether shapes are made from its output.
    conditional
        Whether it may never run. If so, contradictions are not errors.
    """

    name: str
    place: str
    op: str
    cond_producer: str = ""
    makes_shapes: bool = False
    conditional: bool = False


def one_view(views: Sequence[Operands], sizes: Sizes) -> Operands:
    """What holds for the operands in all of several calls.

    Dims that are the same in every view stay. Others become new sizes. Two dims that differ in the
    same way become the same size.
    """
    first, *others = views
    if not others:
        return first
    joined: dict[tuple[Dim, ...], Dim] = {}

    def differing(_axis: int, dims: tuple[Dim, ...]) -> Dim:
        if dims not in joined:
            joined[dims] = sizes.fresh("one of " + ", ".join(sorted({str(dim) for dim in dims})))
        return joined[dims]

    cond, then, else_ = (join(tensors, differing) for tensors in zip(*views, strict=True))
    return cond, then, else_


class Judge:
    """Decides what becomes of each node of a file; equal nodes are decided once.

    Parameters
    ----------
    names
        The names of the file's sizes.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._judged: dict[tuple[object, ...], ModelNode] = {}

    def node(self, site: Site, operands: Operands, rule: Rule) -> ModelNode:
        """Decide the status of a node, and make its workload.

        Parameters
        ----------
        site
            The node.
        operands
            What is known about cond, then and else, without values.
        rule
            The operator's rule.

        Raises
        ------
        ModelError
            If the operands contradict each other, and the node surely runs.
        """
        key = (operands, rule, site.makes_shapes, site.conditional)
        if key not in self._judged:
            self._judged[key] = _model_node(site, operands, rule, self._names)
        return replace(self._judged[key], **{name: getattr(site, name) for name in _OF_SITE})


def _model_node(site: Site, operands: Operands, rule: Rule, names: Names) -> ModelNode:
    shapes: Sequence[Dims | None] = [tensor.shape for tensor in operands]
    known = [shape for shape in shapes if shape is not None]
    met: _Met = []
    if len(known) == len(shapes):
        shapes = known = _uncut(_one_shape(known) if rule.auto_broadcast == "none" else known, rule)
        met = _aligned(known, rule)
    named = names.of_node(known)
    dtype = _dtype(site, operands)
    cond, then, else_ = (None if shape is None else named.shape(shape) for shape in shapes)
    found = _obstacles(site, operands, dtype, shapes, met, named)
    status, reason = next(found, ("compiled", ""))
    node = ModelNode(
        site.name,
        site.place,
        site.op,
        status,
        None,
        reason,
        site.cond_producer,
        cond_shape=cond,
        then_shape=then,
        else_shape=else_,
        out_shape=_out_shape(known, rule, named) if len(known) == len(shapes) else None,
        dtype=dtype,
        dims=named.texts,
    )
    return _compiled(node, site, rule) if status == "compiled" else node


def _obstacles(
    site: Site,
    operands: Operands,
    dtype: str | None,
    shapes: Sequence[Dims | None],
    met: _Met,
    named: Named,
) -> Iterator[tuple[Status, str]]:
    """Statuses other than ``"compiled"`` that a node may have, with reasons; the first one counts.

    This is before a workload is tried.
    """
    if dtype == _OF_TEXT:
        yield "refused", "strings have no kernel; NumPy selects them on the host"
    if dtype is not None and dtype not in ELEMENT_TYPES:
        yield "refused", f"{dtype} has no kernel: its elements are no whole bytes of a known type"
    if site.makes_shapes and dtype in SHAPE_TYPES and _is_handful(shapes):
        yield "shape", f"a few {dtype} elements from which shapes are made"
    if all(tensor.constant for tensor in operands):
        yield "folded", "all three operands are constant, so the output is"
    if contradiction := _contradiction(met):
        if not site.conditional:
            raise ModelError(f"{site.op} at {site.place}: {contradiction}")
        yield "dispatched", f"if it ever runs: {contradiction}"
    if dtype is None:
        yield "dispatched", "the element type is known only at the call"
    for operand, shape in zip(_OPERANDS, shapes, strict=True):
        if shape is None:
            yield "dispatched", f"the rank of {operand} is known only at the call"
    if clash := _clash(met, named):
        yield "dispatched", clash


def _compiled(node: ModelNode, site: Site, rule: Rule) -> ModelNode:
    shapes = (node.cond_shape, node.then_shape, node.else_shape)
    cond, then, else_ = (shape for shape in shapes if shape is not None)  # all are known
    try:
        workload = Workload.of_system(
            rule.system, cond, then, else_, node.dtype, rule.auto_broadcast, rule.axis
        )
    except DTypeError as error:
        return replace(node, status="refused", reason=str(error))
    except BroadcastError as error:
        if not node.dims and not site.conditional:
            raise ModelError(f"{site.op} at {site.place}: {error}") from error
        return replace(node, status="dispatched", reason=f"if it ever runs: {error}")
    return replace(node, workload=workload, out_shape=workload.out_shape)


def _dtype(site: Site, operands: Operands) -> str | None:
    cond, then, else_ = (tensor.dtype for tensor in operands)
    if cond not in (None, "bool"):
        raise ModelError(f"{site.op} at {site.place}: cond is {cond}; expected bool")
    if None not in (then, else_) and then != else_:
        raise ModelError(
            f"{site.op} at {site.place}: then is {then} and else is {else_}; expected one type"
        )
    return else_ if then is None else then


def _is_handful(shapes: Sequence[Dims | None]) -> bool:
    return all(shape is not None and len(shape) <= 1 for shape in shapes) and all(
        isinstance(dim, int) and dim <= MOST_SHAPE_ELEMENTS
        for shape in shapes
        for dim in shape or ()
    )


def _one_shape(shapes: Sequence[Dims]) -> list[Dims]:
    """Give shapes that must be equal the same dims: an int if one of the shapes has one."""
    if len(set(map(len, shapes))) > 1:
        return list(shapes)
    same = [
        next((dim for dim in dims if isinstance(dim, int)), dims[0])
        for dims in zip(*shapes, strict=True)
    ]
    return [
        tuple(q if isinstance(p, Expression) else p for p, q in zip(shape, same, strict=True))
        for shape in shapes
    ]


def _uncut(shapes: Sequence[Dims], rule: Rule) -> list[Dims]:
    """Replace ``min(n, size)`` by ``size`` where the two must be equal."""
    met = dict(_aligned(shapes, rule))
    return [
        tuple(
            next((other for _, other in met[axis] if is_cut(dim, other)), dim)
            for axis, dim in enumerate(shape, start)
        )
        for start, shape in zip(_starts(shapes, rule), shapes, strict=True)
    ]


def _contradiction(met: _Met) -> str:
    """The axis on which two ints do not broadcast, in words; empty if there is none."""
    for axis, dims in met:
        ints = {dim: operand for operand, dim in dims if isinstance(dim, int) and dim != 1}
        if len(ints) > 1:
            (a, one), (b, two), *_ = ints.items()
            return f"axis {axis} is {a} of {one} and {b} of {two}, which do not broadcast"
    return ""


def _clash(met: _Met, named: Named) -> str:
    """The axis on which only the call tells which dim broadcasts; empty if there is none."""
    for axis, dims in met:
        wide = {dim: operand for operand, dim in dims if dim != 1}
        sized = [dim for dim in wide if isinstance(dim, Expression)]
        if sized and len(wide) > 1:
            a, b = list(wide)[:2]
            one, two = (f"{named.shape((dim,))[0]} of {wide[dim]}" for dim in (a, b))
            return f"axis {axis} is {one} and {two}: only the call tells which of them is 1"
    return ""


def _starts(shapes: Sequence[Dims], rule: Rule) -> list[int]:
    """The axis of each operand's first dim, counted from the right end of the output."""
    return [
        -len(shape) if rule.axis == -1 or shape is shapes[1] else rule.axis - len(shapes[1])
        for shape in shapes
    ]


def _aligned(shapes: Sequence[Dims], rule: Rule) -> _Met:
    met: dict[int, list[tuple[str, Dim]]] = {}
    for operand, start, shape in zip(_OPERANDS, _starts(shapes, rule), shapes, strict=True):
        for axis, dim in enumerate(shape, start=start):
            met.setdefault(axis, []).append((operand, dim))
    return sorted(met.items())


def _out_shape(shapes: Sequence[Dims], rule: Rule, named: Named) -> tuple[int | str, ...]:
    dims = named.shape(shapes[1]) if rule.axis != -1 else ()
    if dims:
        return dims
    return tuple(
        "?" if isinstance(dim, Unknown) else named.shape((dim,))[0]
        for dim in broadcast_dims(shapes)
    )
