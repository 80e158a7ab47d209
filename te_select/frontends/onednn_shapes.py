"""Element types of oneDNN Graph, and shapes of outputs that a file leaves to be inferred."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic.expressions import UNKNOWN, Scalar
from te_select.frontends.symbolic.tensors import Dims, Tensor, broadcast_dim, broadcast_dims
from te_select.frontends.words import words
from te_select.operator.systems import TYPE_NAMES

Shape = tuple[Scalar, ...]

_NAMES = TYPE_NAMES["onednn"]
_SAME_AS_FIRST = words(
    "Abs BatchNormInference BiasAdd Clamp Dequantize Dropout DynamicDequantize DynamicQuantize Elu "
    "Exp GELU GenIndex GroupNorm HardSigmoid HardSwish LayerNorm LeakyReLU Log LogSoftmax Mish "
    "PReLU Pow Quantize ReLU Reciprocal Reorder Round Sigmoid SoftMax SoftPlus Sqrt Square Tanh "
    "TypeCast"
)
_BROADCASTS = words(
    "Add Divide Equal Greater GreaterEqual Less LessEqual Maximum Minimum Multiply NotEqual Select "
    "SquaredDifference Subtract"
)


def dtype_of(spelled: str) -> str | None:
    """Our name of an element type, or the file's own if we have none; None if it is not known."""
    return None if spelled == "undef" else _NAMES.get(spelled, spelled)


def shape_of(op: Mapping[str, Any], inputs: Sequence[Tensor]) -> Shape | None:
    """Shape of the first output, as it follows from the inputs; None if it does not follow."""
    kind = op["kind"]
    if kind in _SAME_AS_FIRST and inputs:
        return inputs[0].shape
    shapes = [tensor.shape for tensor in inputs if tensor.shape is not None]
    if not shapes or len(shapes) < len(inputs):
        return None
    if kind in _BROADCASTS:
        return shapes[0] if _attr(op, "auto_broadcast") == "none" else broadcast_dims(shapes)
    rule = _RULES.get(kind)
    try:
        return None if rule is None else rule(op, shapes)
    except (IndexError, TypeError, ValueError):  # attributes that do not fit the shape
        return None


def _attr(op: Mapping[str, Any], name: str) -> Any:
    attr = op["attrs"].get(name)
    return attr.get("value") if isinstance(attr, Mapping) else attr


def _matmul(op: Mapping[str, Any], shapes: Sequence[Dims]) -> Shape | None:
    a, b = shapes[:2]
    if min(len(a), len(b)) < 2:  # noqa: PLR2004 - matrices
        return None
    row = a[-1] if _attr(op, "transpose_a") else a[-2]
    column = b[-2] if _attr(op, "transpose_b") else b[-1]
    return (*broadcast_dims([a[:-2], b[:-2]]), row, column)


def _transpose(op: Mapping[str, Any], shapes: Sequence[Dims]) -> Shape | None:
    order = _attr(op, "order")
    if sorted(axis % len(order) for axis in order) != list(range(len(shapes[0]))):
        return None
    return tuple(shapes[0][axis] for axis in order)


def _reshape(op: Mapping[str, Any], shapes: Sequence[Dims]) -> Shape | None:
    dims, copies = shapes[0], _attr(op, "special_zero")
    target = [dims[i] if copies and n == 0 else n for i, n in enumerate(_attr(op, "shape"))]
    if -1 in target:
        at = target.index(-1)
        others = ex.product(target[:at] + target[at + 1 :])
        target[at] = ex.floor_divide(ex.product(dims), others)
    return tuple(UNKNOWN if isinstance(n, int) and n < 0 else n for n in target)


def _concat(op: Mapping[str, Any], shapes: Sequence[Dims]) -> Shape | None:
    axis = _attr(op, "axis")
    met = list(zip(*shapes, strict=True))
    joined = [broadcast_dim(dims) for dims in met]  # all are equal, one may be an int
    joined[axis] = ex.total(met[axis])
    return tuple(joined)


def _reduce(op: Mapping[str, Any], shapes: Sequence[Dims]) -> Shape | None:
    axes = _attr(op, "axes")
    if len(shapes) > 1 or not axes:
        return None
    dims: list[Scalar] = list(shapes[0])
    for axis in axes:
        dims[axis] = 1
    if _attr(op, "keep_dims"):
        return tuple(dims)
    dropped = {axis % len(dims) for axis in axes}
    return tuple(dim for axis, dim in enumerate(dims) if axis not in dropped)


_RULES: dict[str, Callable[[Mapping[str, Any], Sequence[Dims]], Shape | None]] = {
    "Concat": _concat,
    "MatMul": _matmul,
    "StaticReshape": _reshape,
    "StaticTranspose": _transpose,
    **dict.fromkeys(
        words("ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"), _reduce
    ),
}
