"""Shapes of outputs that are arithmetic of sizes: Reshape, Slice, Concat, Conv and the like.

A rule returns the dims of each output: `UNKNOWN` for a dim that it does not know, or None if it
does not know the rank. It assumes that the model runs. For sizes that would be an error, any result
is right.
"""

from __future__ import annotations

from collections.abc import Sequence

from te_select.frontends.onnx_graph.layout import LAYOUT, Inputs, Rule, Shapes, dims_of, ints_of
from te_select.frontends.onnx_graph.nodes import Node
from te_select.frontends.onnx_graph.windows import WINDOWS
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic import ordering as order
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar, Unknown
from te_select.frontends.symbolic.tensors import broadcast_dim

_LONGEST_SHAPE = 1024  # elements of a tensor that is a shape, or positions on its axes
_TO_THE_END = 2**31 - 1  # exporters write this or a larger number for "to the end"


def shapes_of(node: Node, inputs: Inputs) -> Shapes:
    """Shapes of the outputs of a node of ONNX's own domain; empty if there is no rule.

    Raises
    ------
    Exception
        Of any kind, if the node is malformed or too little is known.
    """
    rule = _RULES.get(node.op)
    return [] if rule is None else rule(node, inputs)


def _elements(inputs: Inputs, index: int) -> list[Scalar]:
    """The elements of an input that is a vector, as far as they are known."""
    tensor = inputs[index]
    if tensor is not None and tensor.values is not None:
        elements: list[Scalar] = tensor.values.reshape(-1).tolist()
        return elements
    (count,) = dims_of(inputs, index)
    if isinstance(count, Expression) or count > _LONGEST_SHAPE:
        raise LookupError(f"the length of input {index} is not known")
    return [UNKNOWN] * count


def _reshape(node: Node, inputs: Inputs) -> Shapes:
    dims, target = dims_of(inputs), _elements(inputs, 1)
    copies = not node.get("allowzero", 0)
    found = [dims[i] if copies and size == 0 else size for i, size in enumerate(target)]
    sure = [size if order.at_least(size, 0) else UNKNOWN for size in found]  # none of these is -1
    if -1 in found:
        at = found.index(-1)
        sure[at] = ex.floor_divide(ex.product(dims), ex.product(sure[:at] + sure[at + 1 :]))
    return [sure]


def _flatten(node: Node, inputs: Inputs) -> Shapes:
    dims, axis = dims_of(inputs), node.get("axis", 1)
    axis += len(dims) if axis < 0 else 0
    return [[ex.product(dims[:axis]), ex.product(dims[axis:])]]


def _expand(_node: Node, inputs: Inputs) -> Shapes:
    dims, target = dims_of(inputs), _elements(inputs, 1)
    rank = max(len(dims), len(target))
    data = [1] * (rank - len(dims)) + list(dims)
    wanted = [1] * (rank - len(target)) + target
    return [[_expanded(dim, size) for dim, size in zip(data, wanted, strict=True)]]


def _expanded(dim: int | Expression, size: Scalar) -> Scalar:
    if isinstance(size, Unknown):
        return dim if isinstance(dim, int) and dim != 1 else UNKNOWN
    return broadcast_dim((dim, size))


def _constant_of_shape(_node: Node, inputs: Inputs) -> Shapes:
    return [_elements(inputs, 0)]


def _range(_node: Node, inputs: Inputs) -> Shapes:
    bounds = [None if t is None or t.values is None else t.values.item() for t in inputs]
    start, limit, step = (UNKNOWN if bound is None else bound for bound in bounds)
    if not isinstance(step, int) or step <= 0:
        return [[UNKNOWN]]
    length = ex.floor_divide(ex.add(ex.subtract(limit, start), step - 1), step)
    if start == 0 and order.at_least(limit, 0) and step == 1:
        return [[limit]]
    return [[order.maximum(length, 0)]]


def _slice(node: Node, inputs: Inputs) -> Shapes:
    dims: list[Scalar] = list(dims_of(inputs))
    if "starts" in node.attributes:
        starts: list[Scalar] = list(node.get("starts"))
        ends: list[Scalar] = list(node.get("ends"))
    else:
        starts, ends = _elements(inputs, 1), _elements(inputs, 2)
    axes = ints_of(node, "axes", inputs, 3)
    axes = list(range(len(starts))) if axes is None else axes
    given = len(inputs) > 4 and inputs[4]  # noqa: PLR2004 - data, starts, ends, axes, steps
    steps = _elements(inputs, 4) if given else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        dims[axis] = _sliced(dims[axis], start, end, step)
    return [dims]


def _sliced(dim: Scalar, start: Scalar, end: Scalar, step: Scalar) -> Scalar:
    """Number of elements of ``range(dim)[start:end:step]``."""
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(dim)[start:end:step]) if isinstance(step, int) else UNKNOWN
    if step == -1 and start == -1 and isinstance(end, int) and end <= -_TO_THE_END:
        return dim
    if not isinstance(step, int) or step < 1:
        return UNKNOWN
    first, last = _bound(start, dim), _bound(end, dim)
    length = last if start == 0 else order.maximum(ex.subtract(last, first), 0)
    return ex.floor_divide(ex.add(length, step - 1), step)


def _bound(position: Scalar, dim: Scalar) -> Scalar:
    """A start or an end, clipped to ``0 .. dim``."""
    if isinstance(position, int) and position >= _TO_THE_END:
        return dim
    if order.at_least(position, 0):
        return dim if position == dim else order.minimum(position, dim)
    if isinstance(position, int):
        return order.maximum(ex.add(dim, position), 0)
    return UNKNOWN


def _concat(node: Node, inputs: Inputs) -> Shapes:
    shapes = [dims_of(inputs, i) for i in range(len(inputs))]
    rank, axis = len(shapes[0]), node.get("axis", 1)
    axis += rank if axis < 0 else 0
    dims: list[Scalar] = []
    for i, met in enumerate(zip(*shapes, strict=True)):
        ints = [dim for dim in met if isinstance(dim, int)]
        dims.append(ex.total(met) if i == axis else (ints or list(met))[0])
    return [dims]


def _split(node: Node, inputs: Inputs) -> Shapes:
    dims, axis = dims_of(inputs), node.get("axis", 0)
    count = len(node.proto.output)
    if "split" in node.attributes:
        parts: list[Scalar] = list(node.get("split"))
    elif len(inputs) > 1 and inputs[1] is not None:
        parts = _elements(inputs, 1)
    else:
        each = ex.floor_divide(ex.add(dims[axis], count - 1), count)
        last = ex.subtract(dims[axis], ex.multiply(each, count - 1))
        parts = [each] * (count - 1) + [last]
    found: list[Sequence[Scalar]] = []
    for part in parts:
        shape: list[Scalar] = list(dims)
        shape[axis] = part
        found.append(shape)
    return found


def _tile(_node: Node, inputs: Inputs) -> Shapes:
    dims, repeats = dims_of(inputs), _elements(inputs, 1)
    return [[ex.multiply(dim, count) for dim, count in zip(dims, repeats, strict=True)]]


def _pad(node: Node, inputs: Inputs) -> Shapes:
    dims: list[Scalar] = list(dims_of(inputs))
    pads: list[Scalar] = list(node.get("pads", ())) or _elements(inputs, 1)
    axes = ints_of(node, "axes", inputs, 3)
    axes = list(range(len(dims))) if axes is None else axes
    for i, axis in enumerate(axes):
        dims[axis] = ex.add(dims[axis], ex.add(pads[i], pads[i + len(axes)]))
    return [dims]


def _one_hot(node: Node, inputs: Inputs) -> Shapes:
    dims: list[Scalar] = list(dims_of(inputs))
    (depth,) = _elements(inputs, 1) if inputs[1] and inputs[1].values is not None else (UNKNOWN,)
    axis = node.get("axis", -1)
    dims.insert(axis + len(dims) + 1 if axis < 0 else axis, depth)
    return [dims]


def _top_k(node: Node, inputs: Inputs) -> Shapes:
    dims: list[Scalar] = list(dims_of(inputs))
    tensor = inputs[1]
    known = tensor is not None and tensor.values is not None
    dims[node.get("axis", -1)] = _elements(inputs, 1)[0] if known else UNKNOWN
    return [dims, dims]


_RULES: dict[str, Rule] = {
    **LAYOUT,
    **WINDOWS,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Flatten": _flatten,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "TopK": _top_k,
}
