"""The arithmetic by which exported models compute shapes, on ints and on expressions.

ONNX's own data propagation does not know Where, Equal, ConstantOfShape, Expand, Reshape and Range.
But TorchScript puts ``Where(Equal(shape, -1), ones, shape)`` before every Expand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto
from onnx.reference import ReferenceEvaluator

from te_select.frontends.onnx_graph.arithmetic import ARITHMETIC, HOLDS_SIZES, SIGNED
from te_select.frontends.onnx_graph.nodes import INTS, MOST_VALUES, Node
from te_select.frontends.onnx_graph.shapes import Inputs, Shapes
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic import ordering as order
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar
from te_select.frontends.symbolic.tensors import Tensor, Values
from te_select.frontends.words import words

_FOLLOWED = 64  # elements of a tensor about which only its shape is known
_SHAPE, _SIZE, _CONSTANT = "Shape", "Size", "Constant"


def values_of(node: Node, inputs: Inputs, shapes: Shapes) -> list[Values | None]:
    """Follow the values through a node.

    Parameters
    ----------
    node
        A node of ONNX's own domain.
    inputs
        What is known about its inputs; None for an input that is left out.
    shapes
        What is known about the shapes of its outputs.

    Returns
    -------
    list
        The elements of each output, as far as they are known; empty if nothing is.
    """
    if node.op == _CONSTANT:
        return [_constant(node)]
    if node.op in (_SHAPE, _SIZE):
        return [_of_shape(node, inputs[0])]
    present = [tensor for tensor in inputs if tensor is not None]
    if all(tensor.values is None for tensor in present):
        return []
    given = [None if tensor is None else _elements(tensor) for tensor in inputs]
    if sum(value is not None for value in given) < len(present):
        return []
    if node.op in _RULES:
        found = _RULES[node.op](node, given)
    elif node.op in _MOVES and all(_few(dims, MOST_VALUES) is not None for dims in shapes):
        found = _moved(node, given, _MOVES[node.op])
    else:
        return []
    return [None if v is None else np.asarray(v, object) for v in found]


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
    if tensor.dtype not in INTS:
        return None
    sizes = _few(tensor.shape, _FOLLOWED)
    return None if sizes is None else np.full(sizes, UNKNOWN, object)


def _constant(node: Node) -> Values | None:
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
    return np.asarray([ex.as_size(dim) for dim in dims], object)


def _moved(node: Node, inputs: Sequence[Values | None], sources: Sequence[int]) -> list[Any]:
    """Let ONNX's reference move numbers in place of the elements, and put the elements back."""
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    feeds: dict[str, Values] = {}
    elements: list[Any] = []
    for i, value in enumerate(inputs):
        proto.input[i] = "" if value is None else str(i)
        if value is None:
            continue
        numbers = value.reshape(-1).tolist()
        if i in sources:
            numbers, before = list(range(len(elements), len(elements) + value.size)), numbers
            elements += before
        elif not all(isinstance(number, int) for number in numbers):
            return []
        feeds[str(i)] = np.array(numbers, np.int64).reshape(value.shape)
    found = ReferenceEvaluator(proto, opsets={"": node.opset}).run(None, feeds)
    if not sources:
        return list(found)
    held = np.asarray(elements, object)
    return [held[positions] for positions in found]


def _few(dims: Sequence[Scalar] | None, most: int) -> list[int] | None:
    """The dims of a shape that is known and has at most so many elements; otherwise None."""
    sizes = [dim for dim in dims or () if isinstance(dim, int)]
    fits = dims is not None and len(sizes) == len(dims) and math.prod(sizes) <= most
    return sizes if fits else None


def _reduce(function: Callable[[Scalar, Scalar], Scalar]) -> Callable[..., list[Any]]:
    """A rule that folds all elements of a vector into one."""

    def rule(node: Node, inputs: Sequence[Values | None]) -> list[Any]:
        data = inputs[0]
        if data is None or data.ndim != 1 or not data.size:
            return [None]
        given = inputs[1] if len(inputs) > 1 else None
        axes = node.get("axes") if given is None else given.reshape(-1).tolist()
        if axes not in (None, [0], [-1]) or (not axes and node.get("noop_with_empty_axes", 0)):
            return [None]
        result: Scalar = data[0]
        for value in data[1:]:
            result = function(result, value)
        return [np.asarray([result] if node.get("keepdims", 1) else result, object)]

    return rule


_RULES: dict[str, Callable[[Node, Any], list[Any]]] = {
    **ARITHMETIC,
    "ReduceMax": _reduce(order.maximum),
    "ReduceMin": _reduce(order.minimum),
    "ReduceProd": _reduce(ex.multiply),
    "ReduceSum": _reduce(ex.add),
}
_MOVES: dict[str, Sequence[int]] = {  # the inputs whose elements go to the output
    **dict.fromkeys(words("Expand Gather Identity Reshape Slice Split Squeeze Tile"), (0,)),
    **dict.fromkeys(words("ConstantOfShape Range"), ()),
    "Concat": range(MOST_VALUES),
    "ScatterND": (0, 2),
    "Transpose": (0,),
    "Unsqueeze": (0,),
}
