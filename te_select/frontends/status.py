"""What te-select does with a Where or Select, from what is known about its operands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from te_select.errors import BroadcastError, DTypeError, ModelError
from te_select.frontends.tensors import Dim, Dims, Tensor
from te_select.operator.broadcast import MAX_RANK, Shape
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.node import ModelNode, Status
from te_select.operator.systems import System
from te_select.operator.workload import Workload

# The dims of all operands on each axis, with the operands' names.
_Met = list[tuple[int, list[tuple[str, Dim]]]]
_OPERANDS = ("cond", "then", "else")
_MOST_SHAPE_ELEMENTS = 64  # a shape has at most so many dims
_SHAPE_TYPES = ("int64", "int32")


@dataclass(frozen=True)
class Site:
    """A Where or Select in the file.

    Parameters
    ----------
    name, place, op, cond_producer
        The fields of `ModelNode` with these names.
    system
        The format's operator.
    mode, axis
        The node's broadcast mode, by the system's own name, and the axis at which else and cond
        start; -1 if they are aligned right with then.
    makes_shapes
        Whether shapes are made from its output.
    conditional
        Whether it may never run. If so, contradictions are not errors.
    """

    name: str
    place: str
    op: str
    cond_producer: str
    system: System
    mode: str
    axis: int = -1
    makes_shapes: bool = False
    conditional: bool = False


def model_node(site: Site, operands: Sequence[Tensor], texts: Mapping[str, str] = {}) -> ModelNode:
    """Decide the status of a node, and make its workload.

    Parameters
    ----------
    site
        The node.
    operands
        What is known about cond, then and else.
    texts
        What the names of the file's sizes stand for.

    Raises
    ------
    ModelError
        If the system has no such mode, or the operands contradict each other and the node surely
        runs.
    """
    try:
        rule = site.system.rule(site.mode)
    except BroadcastError as error:
        raise ModelError(f"{site.op} at {site.place}: {error}") from error
    shapes: Sequence[Dims | None] = [tensor.shape for tensor in operands]
    known: Sequence[Dims] = [shape for shape in shapes if shape is not None]
    met: _Met = []
    if len(known) == len(shapes):
        shapes = known = _one_shape(known) if rule == "none" else known
        met = _aligned(known, site.axis)
    dtype = _dtype(site, operands)
    status, reason = next(_obstacles(site, operands, dtype, shapes, met), ("compiled", ""))
    cond, then, else_ = (None if shape is None else _shown(shape) for shape in shapes)
    out = _out_shape(known, met, site.axis) if len(known) == len(shapes) else None
    names = (dim for shape in known for dim in shape if isinstance(dim, str))
    dims = {name: texts.get(name, name) for name in names}
    node = ModelNode(
        site.name,
        site.place,
        site.op,
        status,
        None,
        reason,
        site.cond_producer,
        cond,
        then,
        else_,
        out,
        dtype,
        dims,
        auto_broadcast=rule,
        axis=site.axis,
    )
    return _compiled(node, site) if status == "compiled" else node


def _obstacles(
    site: Site,
    operands: Sequence[Tensor],
    dtype: str | None,
    shapes: Sequence[Dims | None],
    met: _Met,
) -> Iterator[tuple[Status, str]]:
    """Statuses other than ``"compiled"`` that a node may have, with reasons; the first one counts.

    This is before a workload is tried.
    """
    if dtype == "string":
        yield "refused", "strings have no kernel; NumPy selects them on the host"
    if dtype is not None and dtype not in ELEMENT_TYPES:
        yield "refused", f"{dtype} has no kernel: its elements are no whole bytes of a known type"
    if site.makes_shapes and dtype in _SHAPE_TYPES and _is_handful(shapes):
        yield "shape", f"a few {dtype} elements from which shapes are made"
    if all(tensor.constant for tensor in operands):
        yield "folded", "all three operands are constant, so the output is"
    if (rank := max(map(len, filter(None, shapes)), default=0)) > MAX_RANK:
        yield "refused", f"it has {rank} axes, and kernels take up to {MAX_RANK}"
    if unlike := _unlike(met, int):
        if not site.conditional:
            raise ModelError(f"{site.op} at {site.place}: {unlike}, which do not broadcast")
        yield "dispatched", f"if it ever runs: {unlike}, which do not broadcast"
    if dtype is None:
        yield "dispatched", "the element type is known only at the call"
    for operand, shape in zip(_OPERANDS, shapes, strict=True):
        if shape is None:
            yield "dispatched", f"the rank of {operand} is known only at the call"
        elif None in shape:
            axis = shape.index(None)
            yield "dispatched", f"dim {axis} of {operand} is known only at the call"
    if unlike := _unlike(met, (int, str)):
        yield "dispatched", f"{unlike}: only the call tells which of them is 1"


def _compiled(node: ModelNode, site: Site) -> ModelNode:
    shapes = (node.cond_shape, node.then_shape, node.else_shape)
    cond, then, else_ = (shape for shape in shapes if shape is not None)  # all are known
    try:
        workload = Workload.of_system(
            site.system, cond, then, else_, node.dtype, site.mode, site.axis
        )
    except DTypeError as error:
        return replace(node, status="refused", reason=str(error))
    except BroadcastError as error:
        if not node.dims and not site.conditional:
            raise ModelError(f"{site.op} at {site.place}: {error}") from error
        return replace(node, status="dispatched", reason=f"if it ever runs: {error}")
    return replace(node, workload=workload, out_shape=workload.out_shape)


def _dtype(site: Site, operands: Sequence[Tensor]) -> str | None:
    cond, then, else_ = (tensor.dtype for tensor in operands)
    if cond not in (None, "bool"):
        raise ModelError(f"{site.op} at {site.place}: cond is {cond}; expected bool")
    if None not in (then, else_) and then != else_:
        raise ModelError(
            f"{site.op} at {site.place}: then is {then} and else is {else_}; expected one type"
        )
    return else_ if then is None else then


def _is_handful(shapes: Sequence[Dims | None]) -> bool:
    return all(
        shape is not None
        and len(shape) <= 1
        and all(isinstance(dim, int) and dim <= _MOST_SHAPE_ELEMENTS for dim in shape)
        for shape in shapes
    )


def _one_shape(shapes: Sequence[Dims]) -> Sequence[Dims]:
    """Give shapes that must be equal the same dims, unless two of them are ints that differ."""
    if len(set(map(len, shapes))) > 1:
        return shapes
    known = [
        next((d for kind in (int, str) for d in dims if isinstance(d, kind)), None)
        for dims in zip(*shapes, strict=True)
    ]
    return [
        tuple(p if isinstance(p, int) else q for p, q in zip(shape, known, strict=True))
        for shape in shapes
    ]


def _unlike(met: _Met, kinds: type | tuple[type, ...]) -> str:
    """The axis on which two dims of some kinds differ, and none is 1; empty if there is none."""
    for axis, dims in met:
        wide = {dim: operand for operand, dim in dims if isinstance(dim, kinds) and dim != 1}
        if len(wide) > 1:
            (a, one), (b, two), *_ = wide.items()
            return f"axis {axis} is {a} of {one} and {b} of {two}"
    return ""


def _aligned(shapes: Sequence[Dims], from_axis: int) -> _Met:
    """The dims on each axis, counted from the right end of the output."""
    met: dict[int, list[tuple[str, Dim]]] = {}
    for operand, shape in zip(_OPERANDS, shapes, strict=True):
        over_then = from_axis != -1 and operand != "then"
        start = from_axis - len(shapes[1]) if over_then else -len(shape)
        for axis, dim in enumerate(shape, start):
            met.setdefault(axis, []).append((operand, dim))
    return sorted(met.items())


def _out_shape(shapes: Sequence[Dims], met: _Met, from_axis: int) -> Shape:
    if from_axis != -1:
        return _shown(shapes[1])
    return _shown([_broadcast({dim for _, dim in dims} - {1}) for _, dims in met])


def _broadcast(wide: set[Dim]) -> Dim:
    """The dim to which dims that are not 1 broadcast in a model that runs."""
    known = {dim for dim in wide if isinstance(dim, int)} or wide or {1}
    return known.pop() if len(known) == 1 else None


def _shown(dims: Sequence[Dim]) -> Shape:
    return tuple("?" if dim is None else dim for dim in dims)
