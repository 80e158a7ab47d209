"""Shapes of outputs that follow from inputs, for operations of OpenVINO and oneDNN Graph.

Both state most shapes, but not which of the unknown dims are equal. An operation that both know has
one meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic.expressions import UNKNOWN, Scalar
from te_select.frontends.symbolic.tensors import Dims, broadcast_dim, broadcast_dims
from te_select.frontends.words import words

Shape = Sequence[Scalar]
Attribute = Callable[[str], Any]
"""The value of an attribute; None if it is left out."""

SAME_AS_FIRST = words(
    "Abs Acos Acosh Asin Asinh Atan Atanh BatchNormInference BiasAdd BitwiseNot Ceiling Clamp "
    "Convert ConvertLike Cos Cosh CumSum Dequantize Dropout DynamicDequantize DynamicQuantize Elu "
    "Erf Exp FakeConvert Floor GELU GRN Gelu GenIndex GroupNorm HSigmoid HSwish HardSigmoid "
    "HardSwish Identity IsFinite IsInf IsNaN LayerNorm LeakyReLU Log LogSoftmax LogicalNot MVN "
    "Mish Negative NormalizeL2 PReLU Pow Quantize ReLU Reciprocal Relu Reorder Round "
    "ScatterElementsUpdate ScatterNDUpdate ScatterUpdate Selu Sigmoid Sign Sin Sinh SoftMax "
    "SoftPlus SoftSign Softmax Sqrt Square Swish Tan Tanh TypeCast"
)
COMPARES = words(
    "Equal Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor NotEqual"
)
_BROADCASTS = COMPARES | words(
    "Add BitwiseAnd BitwiseLeftShift BitwiseOr BitwiseRightShift BitwiseXor Divide FloorMod "
    "Maximum Minimum Mod Multiply Power Select SquaredDifference Subtract"
)
_REDUCTIONS = words("ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum")


def shape_of(op: str, attribute: Attribute, inputs: Sequence[Dims | None]) -> Shape | None:
    """Shape of the first output, as it follows from the inputs; None if it does not follow."""
    if op in SAME_AS_FIRST and inputs:
        return inputs[0]
    shapes = [shape for shape in inputs if shape is not None]
    rule = RULES.get(op)
    if rule is None or not shapes or len(shapes) < len(inputs):
        return None
    try:
        return rule(attribute, shapes)
    except (IndexError, TypeError, ValueError):  # attributes that do not fit the shape
        return None


def _broadcast(attribute: Attribute, shapes: Sequence[Dims]) -> Shape | None:
    mode = attribute("auto_broadcast") or "numpy"
    if mode == "none":
        return shapes[0]
    return broadcast_dims(shapes) if mode == "numpy" else None


def _matmul(attribute: Attribute, shapes: Sequence[Dims]) -> Shape | None:
    a, b = shapes[:2]
    if min(len(a), len(b)) < 2:  # noqa: PLR2004 - matrices
        return None
    turned = [str(attribute(f"transpose_{x}")).lower() in ("true", "1") for x in "ab"]
    row = a[-1] if turned[0] else a[-2]
    column = b[-2] if turned[1] else b[-1]
    return (*broadcast_dims([a[:-2], b[:-2]]), row, column)


def _transpose(attribute: Attribute, shapes: Sequence[Dims]) -> Shape | None:
    order = attribute("order")
    if sorted(axis % len(order) for axis in order) != list(range(len(shapes[0]))):
        return None
    return [shapes[0][axis] for axis in order]


def _reshape(attribute: Attribute, shapes: Sequence[Dims]) -> Shape | None:
    dims, copies = shapes[0], attribute("special_zero")
    target = [dims[i] if copies and n == 0 else n for i, n in enumerate(attribute("shape"))]
    if -1 in target:
        at = target.index(-1)
        others = ex.product(target[:at] + target[at + 1 :])
        target[at] = ex.floor_divide(ex.product(dims), others)
    return [UNKNOWN if isinstance(n, int) and n < 0 else n for n in target]


def _concat(attribute: Attribute, shapes: Sequence[Dims]) -> Shape | None:
    axis = int(attribute("axis"))
    met = list(zip(*shapes, strict=True))
    joined = [broadcast_dim(dims) for dims in met]  # all are equal, one may be an int
    joined[axis] = ex.total(met[axis])
    return joined


def _reduce(attribute: Attribute, shapes: Sequence[Dims]) -> Shape | None:
    axes = attribute("axes")
    if len(shapes) > 1 or not axes:
        return None
    dims: list[Scalar] = list(shapes[0])
    for axis in axes:
        dims[axis] = 1
    if attribute("keep_dims"):
        return dims
    dropped = {axis % len(dims) for axis in axes}
    return [dim for axis, dim in enumerate(dims) if axis not in dropped]


RULES: dict[str, Callable[[Attribute, Sequence[Dims]], Shape | None]] = {
    **dict.fromkeys(_BROADCASTS, _broadcast),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "Concat": _concat,
    "MatMul": _matmul,
    "ShapeOf": lambda _attribute, shapes: [len(shapes[0])],
    "StaticReshape": _reshape,
    "StaticTranspose": _transpose,
}
