"""The arithmetic by which exported models compute shapes, on ints and on expressions.

ONNX's own data propagation does not know Where, Equal, ConstantOfShape, Expand, Reshape and Range.
But TorchScript puts ``Where(Equal(shape, -1), ones, shape)`` before every Expand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from te_select.frontends.onnx_graph.arithmetic import ARITHMETIC, HOLDS_SIZES, SIGNED
from te_select.frontends.onnx_graph.nodes import (
    INTS,
    MOST_VALUES,
    Node,
    all_unknown,
    literal_ints,
)
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic import ordering as order
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar
from te_select.frontends.symbolic.tensors import Tensor, Values

_FOLLOWED = 64  # elements of a tensor about which only its shape is known
_SHAPE, _SIZE, _CONSTANT = "Shape", "Size", "Constant"


def values_of(node: Node, inputs: Sequence[Tensor | None]) -> list[Values | None]:
    """Follow the values through a node.

    Parameters
    ----------
    node
        A node of ONNX's own domain.
    inputs
        What is known about its inputs; None for an input that is left out.

    Returns
    -------
    list
        The elements of each output, as far as they are known; empty if nothing is.
    """
    if node.op == _CONSTANT:
        return [_constant(node)]
    if node.op in (_SHAPE, _SIZE):
        return [_of_shape(node, inputs[0])]
    rule = _RULES.get(node.op)
    present = [tensor for tensor in inputs if tensor is not None]
    if rule is None or all(tensor.values is None for tensor in present):
        return []
    given = [None if tensor is None else _elements(tensor) for tensor in inputs]
    if sum(value is not None for value in given) < len(present):
        return []
    found = [None if v is None else np.asarray(v, object) for v in rule(node, given)]
    return [None if v is None or v.size > MOST_VALUES else v for v in found]


def in_range(values: Values, dtype: str | None) -> Values | None:
    """Forget values that the element type may not hold; None if no known value is left."""
    if dtype not in INTS:
        return values if dtype is not None else None
    kept = np.asarray(np.frompyfunc(lambda v: _in_range(v, dtype), 1, 1)(values), object)
    return None if kept.size and all(v is UNKNOWN for v in kept.flat) else kept


def _in_range(value: Any, dtype: str) -> Any:
    if isinstance(value, Expression):
        signed = dtype in SIGNED
        return value if signed or (dtype in HOLDS_SIZES and order.at_least(value, 0)) else UNKNOWN
    if dtype == "bool" or not isinstance(value, int):
        return value
    limits = np.iinfo(dtype)
    return value if limits.min <= value <= limits.max else UNKNOWN


def _elements(tensor: Tensor) -> Values | None:
    if tensor.values is not None:
        return tensor.values
    if tensor.dtype not in INTS or tensor.shape is None:
        return None
    dims = [dim for dim in tensor.shape if isinstance(dim, int)]
    if len(dims) < len(tensor.shape) or np.prod(dims, dtype=float) > _FOLLOWED:
        return None
    return all_unknown(dims)


def _constant(node: Node) -> Values | None:
    if "value" in node.attributes:
        return node.held.values
    for name in ("value_int", "value_ints", "value_float", "value_floats"):
        if (value := node.get(name)) is not None:
            values = np.asarray(value, object)
            return values if values.size <= MOST_VALUES else None
    return None


def _of_shape(node: Node, tensor: Tensor | None) -> Values | None:
    if tensor is None or tensor.shape is None:
        return None
    if node.op == _SIZE:
        return np.asarray(ex.product(tensor.shape), object)
    dims = tensor.shape[node.get("start", 0) : node.get("end", len(tensor.shape))]
    values = np.empty(len(dims), object)
    values[:] = [ex.as_size(dim) for dim in dims]
    return values


def _gather(node: Node, inputs: Sequence[Values]) -> list[Any]:
    data, indices = inputs[:2]
    if not all(isinstance(i, int) for i in indices.flat):
        return [None]
    return [np.take(data, indices.astype(np.int64), axis=node.get("axis", 0))]


def _concat(node: Node, inputs: Sequence[Values]) -> list[Any]:
    return [np.concatenate(inputs, axis=node.get("axis", 0))]


def _slice(node: Node, inputs: Sequence[Values | None]) -> list[Any]:
    data = inputs[0]
    assert data is not None
    parts = [_int_list(node, name, inputs, i) for i, name in enumerate(_SLICED, start=1)]
    starts, ends, axes, steps = parts
    if starts is None or ends is None:
        return [None]
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[axis] = slice(start, end, step)
    return [data[tuple(index)]]


_SLICED = ("starts", "ends", "axes", "steps")


def _int_list(
    node: Node, name: str, inputs: Sequence[Values | None], index: int
) -> list[int] | None:
    """Ints from an attribute or an input; None if they are left out."""
    given = [None if value is None else Tensor(values=value) for value in inputs]
    found = node.ints(name, given, index)
    if found is None and len(given) > index and given[index] is not None:
        raise ValueError(f"{name} is not known")  # so nothing is known of the output
    return found


def _squeeze(node: Node, inputs: Sequence[Values | None]) -> list[Any]:
    axes = _int_list(node, "axes", inputs, 1)
    return [np.squeeze(inputs[0], axis=None if axes is None else tuple(axes))]  # type: ignore[arg-type]


def _unsqueeze(node: Node, inputs: Sequence[Values | None]) -> list[Any]:
    axes = _int_list(node, "axes", inputs, 1)
    return [None if axes is None else np.expand_dims(inputs[0], tuple(axes))]  # type: ignore[arg-type]


def _reshape(node: Node, inputs: Sequence[Values]) -> list[Any]:
    shape = literal_ints(Tensor(values=inputs[1]))
    if shape is None or node.get("allowzero", 0):
        return [None]
    copied = [inputs[0].shape[i] if dim == 0 else dim for i, dim in enumerate(shape)]
    return [inputs[0].reshape(copied)]


def _transpose(node: Node, inputs: Sequence[Values]) -> list[Any]:
    return [np.transpose(inputs[0], node.get("perm"))]


def _expand(_node: Node, inputs: Sequence[Values]) -> list[Any]:
    shape = literal_ints(Tensor(values=inputs[1]))
    if shape is None or np.prod(shape, dtype=float) > MOST_VALUES:
        return [None]
    return [np.broadcast_to(inputs[0], np.broadcast_shapes(inputs[0].shape, tuple(shape)))]


def _tile(_node: Node, inputs: Sequence[Values]) -> list[Any]:
    repeats = literal_ints(Tensor(values=inputs[1]))
    if repeats is None or np.prod(repeats, dtype=float) * inputs[0].size > MOST_VALUES:
        return [None]
    return [np.tile(inputs[0], repeats)]


def _constant_of_shape(node: Node, inputs: Sequence[Values]) -> list[Any]:
    shape = literal_ints(Tensor(values=inputs[0]))
    if shape is None or np.prod(shape, dtype=float) > MOST_VALUES:
        return [None]
    value = node.held.values if "value" in node.attributes else np.asarray([0.0], object)
    return [None if value is None else np.broadcast_to(value.reshape(()), shape)]


def _range(_node: Node, inputs: Sequence[Values]) -> list[Any]:
    bounds = [value.item() for value in inputs]
    if not all(isinstance(bound, int) for bound in bounds) or bounds[2] == 0:
        return [None]
    numbers = range(*bounds)
    return [np.array(numbers, object) if len(numbers) <= MOST_VALUES else None]


def _reduce(function: Callable[[Scalar, Scalar], Scalar]) -> Callable[..., list[Any]]:
    """A rule that folds all elements of a vector into one."""

    def rule(node: Node, inputs: Sequence[Values | None]) -> list[Any]:
        data = inputs[0]
        if data is None or data.ndim != 1 or not data.size:
            return [None]
        axes = _int_list(node, "axes", inputs, 1)
        if axes not in (None, [0], [-1]) or (not axes and node.get("noop_with_empty_axes", 0)):
            return [None]
        result: Scalar = data[0]
        for value in data[1:]:
            result = function(result, value)
        return [np.asarray([result] if node.get("keepdims", 1) else result, object)]

    return rule


def _scatter(node: Node, inputs: Sequence[Values]) -> list[Any]:
    """ScatterND into a vector: models assign elements of a shape in this way."""
    data, indices, updates = inputs
    if data.ndim != 1 or node.get("reduction", b"none") != b"none":
        return [None]
    if indices.shape[-1:] != (1,) or not all(isinstance(i, int) for i in indices.flat):
        return [None]
    result = data.copy()
    result[indices.reshape(-1).astype(np.int64)] = updates.reshape(-1)
    return [result]


def _split(node: Node, inputs: Sequence[Values | None]) -> list[Any]:
    sizes = _int_list(node, "split", inputs, 1)
    count = len(node.proto.output)
    data, axis = inputs[0], node.get("axis", 0)
    assert data is not None
    if sizes is None:
        part = -(-data.shape[axis] // count)
        return list(np.split(data, [part * i for i in range(1, count)], axis=axis))
    return list(np.split(data, np.cumsum(sizes)[:-1], axis=axis))


_RULES: dict[str, Callable[[Node, Any], list[Any]]] = {
    **ARITHMETIC,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": lambda _node, inputs: [inputs[0]],
    "Range": _range,
    "ReduceMax": _reduce(order.maximum),
    "ReduceMin": _reduce(order.minimum),
    "ReduceProd": _reduce(ex.multiply),
    "ReduceSum": _reduce(ex.add),
    "Reshape": _reshape,
    "ScatterND": _scatter,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
