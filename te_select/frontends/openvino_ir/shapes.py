"""Shapes of outputs that follow from inputs, to find out which dims of -1 are equal.

IR files state every shape, but not which of the unknown dims are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from te_select.frontends.openvino_ir.document import Layer
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic.expressions import Scalar
from te_select.frontends.symbolic.tensors import Dims, Tensor, broadcast_dim, broadcast_dims
from te_select.frontends.words import words

Shape = tuple[Scalar, ...]

_SAME_AS_FIRST = words(
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceiling Clamp Convert ConvertLike Cos Cosh "
    "CumSum Elu Erf Exp FakeConvert Floor GRN Gelu HSigmoid HSwish HardSigmoid Identity IsFinite "
    "IsInf IsNaN Log LogSoftmax LogicalNot MVN Mish Negative NormalizeL2 PReLU ReLU Relu Round "
    "ScatterElementsUpdate ScatterNDUpdate ScatterUpdate Selu Sigmoid Sign Sin Sinh SoftMax "
    "SoftPlus SoftSign Softmax Sqrt Swish Tan Tanh"
)
_COMPARES = words(
    "Equal Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor NotEqual"
)
_BROADCASTS = _COMPARES | words(
    "Add BitwiseAnd BitwiseLeftShift BitwiseOr BitwiseRightShift BitwiseXor Divide FloorMod "
    "Maximum Minimum Mod Multiply Power Select SquaredDifference Subtract"
)
_TO_BOOL = _COMPARES | frozenset(("IsFinite", "IsInf", "IsNaN", "LogicalNot"))
_STATIC_RANK = words(
    "Gather ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum Reshape Squeeze StridedSlice Unsqueeze"
)
_WITH_CONTROL = 2  # inputs: the data, and one that decides the rank


def shape_of(layer: Layer, inputs: Sequence[Tensor]) -> Shape | None:
    """Shape of the first output, as it follows from the inputs; None if it does not follow."""
    shapes = [tensor.shape for tensor in inputs if tensor.shape is not None]
    if not shapes or len(shapes) < len(inputs):
        return None
    if layer.type in _SAME_AS_FIRST:
        return shapes[0]
    if layer.type in _BROADCASTS:
        return _broadcast(layer, shapes)
    rule = _RULES.get(layer.type)
    return None if rule is None else rule(layer, shapes)


def dtype_after(layer: Layer, inputs: Sequence[Tensor]) -> str | None:
    """Element type of the first output, for a file that leaves it out."""
    if layer.type in _TO_BOOL:
        return "bool"
    if layer.type == "Select":
        return inputs[1].dtype if len(inputs) > 1 else None
    if layer.type == "Convert" or not inputs:
        return None
    return inputs[0].dtype if layer.type in (*_SAME_AS_FIRST, *_BROADCASTS, *_RULES) else None


def is_scalar(layer: Layer, inputs: Sequence[Tensor], constants: Sequence[bool]) -> bool:
    """Whether an output that is stated without dims is a scalar, and not of unknown rank.

    Its rank is known if the ranks of the inputs are known and only constants decide it.
    """
    if layer.type not in _STATIC_RANK or len(inputs) < _WITH_CONTROL:
        return False
    known = all(tensor.shape is not None for tensor in inputs)
    return known and (layer.type == "Gather" or all(constants[1:]))


def _broadcast(layer: Layer, shapes: Sequence[Dims]) -> Shape | None:
    rule = layer.data.get("auto_broadcast", "numpy")
    if rule == "none":
        return shapes[0]
    return broadcast_dims(shapes) if rule == "numpy" else None


def _matmul(layer: Layer, shapes: Sequence[Dims]) -> Shape | None:
    if len(shapes) != 2:  # noqa: PLR2004 - the product has two factors
        return None
    a, b = shapes
    if min(len(a), len(b)) < 2:  # noqa: PLR2004 - matrices
        return None
    row = a[-1] if _flag(layer, "transpose_a") else a[-2]
    column = b[-2] if _flag(layer, "transpose_b") else b[-1]
    return (*broadcast_dims([a[:-2], b[:-2]]), row, column)


def _flag(layer: Layer, name: str) -> bool:
    return layer.data.get(name, "false").lower() in ("true", "1")


def _concat(layer: Layer, shapes: Sequence[Dims]) -> Shape | None:
    try:
        axis = int(layer.data.get("axis", ""))
    except ValueError:
        return None
    rank = len(shapes[0])
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        return None
    met = list(zip(*shapes, strict=True))
    joined = [broadcast_dim(dims) for dims in met]  # all are equal, one may be an int
    joined[axis] = ex.total(met[axis])
    return tuple(joined)


_RULES: dict[str, Callable[[Layer, Sequence[Dims]], Shape | None]] = {
    "Concat": _concat,
    "MatMul": _matmul,
    "ShapeOf": lambda _layer, shapes: (len(shapes[0]),),
}
