"""Dims of outputs that are arithmetic of named sizes, which ONNX's own inference does not know.

A rule gets what ONNX knows about the outputs. It returns the dims of each output: `UNKNOWN` for a
dim that it does not know. It assumes that the model runs. For sizes that would be an error, any
result is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from te_select.frontends.onnx_graph.nodes import Node
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic import ordering as order
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar, Unknown
from te_select.frontends.symbolic.tensors import Dims, Tensor, broadcast_dim, broadcast_dims
from te_select.frontends.words import words

Inputs = Sequence[Tensor | None]
Shapes = Sequence[Sequence[Scalar] | None]

_LONGEST_SHAPE = 1024  # elements of a tensor that is a shape, or positions on its axes
_TO_THE_END = 2**31 - 1  # exporters write this or a larger number for "to the end"
_BROADCASTS = words(
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less "
    "LessOrEqual Max Mean Min Mod Mul Or Pow Sub Sum Where Xor"
)
_REDUCTIONS = words(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare"
)
_SAME = (b"SAME_UPPER", b"SAME_LOWER")
_ROUNDING = 1e-3
_BINARY = 64  # a scale in 64ths is exact in every library


def shapes_of(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    """Shapes of the outputs of a node of ONNX's own domain, given what ONNX knows of them."""
    rule = _RULES.get(node.op)
    try:
        return known if rule is None else rule(node, inputs, known)
    except Exception:  # the node is malformed, or too little is known
        return known


def _dims(inputs: Inputs, index: int = 0) -> Dims:
    """The dims of an input; raises LookupError, which ends the rule, if they are not known."""
    tensor = inputs[index]
    if tensor is None or tensor.shape is None:
        raise LookupError(f"the shape of input {index} is not known")
    return tensor.shape


def _elements(inputs: Inputs, index: int) -> list[Scalar]:
    """The elements of an input that is a vector, as far as they are known."""
    tensor = inputs[index]
    if tensor is not None and tensor.values is not None:
        elements: list[Scalar] = tensor.values.reshape(-1).tolist()
        return elements
    (count,) = _dims(inputs, index)
    if isinstance(count, Expression) or count > _LONGEST_SHAPE:
        raise LookupError(f"the length of input {index} is not known")
    return [UNKNOWN] * count


def _axes(node: Node, inputs: Inputs, count: int) -> list[int]:
    """The axes of Slice and Pad: the attribute, the fourth input, or the first ``count``."""
    given = len(inputs) > 3 and inputs[3] is not None  # noqa: PLR2004
    found = _elements(inputs, 3) if given else node.get("axes", range(count))
    axes = [axis for axis in found if isinstance(axis, int)]
    if len(axes) < len(found):
        raise LookupError("the axes are not known")
    return axes


def _same(_node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    return [_dims(inputs)]


def _broadcast(_node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    return [broadcast_dims([_dims(inputs, i) for i in range(len(inputs))])]


def _reshape(node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    dims, target = _dims(inputs), _elements(inputs, 1)
    copies = not node.get("allowzero", 0)
    found = [dims[i] if copies and size == 0 else size for i, size in enumerate(target)]
    sure = [size if order.at_least(size, 0) else UNKNOWN for size in found]  # none of these is -1
    if -1 in found:
        at = found.index(-1)
        sure[at] = ex.floor_divide(ex.product(dims), ex.product(sure[:at] + sure[at + 1 :]))
    return [sure]


def _flatten(node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    dims, axis = _dims(inputs), node.get("axis", 1)
    axis += len(dims) if axis < 0 else 0
    return [[ex.product(dims[:axis]), ex.product(dims[axis:])]]


def _expand(_node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    dims, target = _dims(inputs), _elements(inputs, 1)
    rank = max(len(dims), len(target))
    data = [1] * (rank - len(dims)) + list(dims)
    wanted = [1] * (rank - len(target)) + target
    return [[_expanded(dim, size) for dim, size in zip(data, wanted, strict=True)]]


def _expanded(dim: int | Expression, size: Scalar) -> Scalar:
    if isinstance(size, Unknown):
        return dim if isinstance(dim, int) and dim != 1 else UNKNOWN
    return broadcast_dim((dim, size))


def _constant_of_shape(_node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    return [_elements(inputs, 0)]


def _range(_node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    bounds = [None if t is None or t.values is None else t.values.item() for t in inputs]
    start, limit, step = (UNKNOWN if bound is None else bound for bound in bounds)
    if not isinstance(step, int) or step <= 0:
        return [[UNKNOWN]]
    length = ex.floor_divide(ex.add(ex.subtract(limit, start), step - 1), step)
    if start == 0 and order.at_least(limit, 0) and step == 1:
        return [[limit]]
    return [[order.maximum(length, 0)]]


def _slice(node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    dims: list[Scalar] = list(_dims(inputs))
    starts: list[Scalar] = list(node.get("starts", ())) or _elements(inputs, 1)
    ends: list[Scalar] = list(node.get("ends", ())) or _elements(inputs, 2)
    given = len(inputs) > 4 and inputs[4]  # noqa: PLR2004 - data, starts, ends, axes, steps
    steps = _elements(inputs, 4) if given else [1] * len(starts)
    axes = _axes(node, inputs, len(starts))
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


def _concat(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    axis = node.get("axis")
    return [_at_axis(known[0], axis, ex.total(_dims(inputs, i)[axis] for i in range(len(inputs))))]


def _split(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    axis, count = node.get("axis", 0), len(known)
    if "split" in node.attributes:
        parts: list[Scalar] = list(node.get("split"))
    elif len(inputs) > 1 and inputs[1] is not None:
        parts = _elements(inputs, 1)
    else:
        whole = _dims(inputs)[axis]
        each = ex.floor_divide(ex.add(whole, count - 1), count)
        parts = [each] * (count - 1) + [ex.subtract(whole, ex.multiply(each, count - 1))]
    return [_at_axis(_dims(inputs), axis, part) for part in parts]


def _one_hot(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    (depth,) = _elements(inputs, 1)
    return [_at_axis(known[0], node.get("axis", -1), depth)]


def _top_k(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    (count,) = _elements(inputs, 1)
    return [_at_axis(_dims(inputs), node.get("axis", -1), count)] * len(known)


def _reduce(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    """The rank is kept even if the axes are not known."""
    if known[0] is None and node.get("keepdims", 1):
        return [[UNKNOWN] * len(_dims(inputs))]
    return known


def _einsum(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    """An index broadcasts: ONNX takes the first name that it has."""
    terms, _, result = node.get("equation").decode().replace(" ", "").partition("->")
    met: dict[str, list[int | Expression]] = {}
    for i, term in enumerate(terms.split(",")):
        for letter, dim in zip(term, _dims(inputs, i), strict=True):
            met.setdefault(letter, []).append(dim)
    return [[broadcast_dim(met[letter]) for letter in result]] if result else known


def _at_axis(dims: Sequence[Scalar] | None, axis: int, size: Scalar) -> Sequence[Scalar]:
    """The dims with another size of one axis."""
    changed = list(dims or ())
    changed[axis] = size
    return changed


def _tile(_node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    dims, repeats = _dims(inputs), _elements(inputs, 1)
    return [[ex.multiply(dim, count) for dim, count in zip(dims, repeats, strict=True)]]


def _pad(node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    dims: list[Scalar] = list(_dims(inputs))
    pads: list[Scalar] = list(node.get("pads", ())) or _elements(inputs, 1)
    axes = _axes(node, inputs, len(dims))
    for i, axis in enumerate(axes):
        dims[axis] = ex.add(dims[axis], ex.add(pads[i], pads[i + len(axes)]))
    return [dims]


def _window(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    """Convolutions and pools: a window that moves over all axes but batch and channels."""
    dims = _dims(inputs)[2:]
    weights = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "QLinearConv": 3}.get(node.op)
    kernel = node.get("kernel_shape") or _dims(inputs, weights or 0)[2:]
    pads = node.get("pads", [0] * 2 * len(dims))
    found: list[Scalar] = []
    for i, dim in enumerate(dims):
        stride, dilation = (node.get(name, [1] * (i + 1))[i] for name in ("strides", "dilations"))
        reach = ex.add(ex.multiply(ex.subtract(kernel[i], 1), dilation), 1)
        pad = pads[i] + pads[i + len(dims)]
        if node.op == "ConvTranspose":
            extra = node.get("output_padding", [0] * (i + 1))[i]
            start = ex.multiply(ex.subtract(dim, 1), stride)
            same = ex.multiply(dim, stride)
            size = ex.add(ex.add(start, reach), extra - pad)
        else:
            same = ex.floor_divide(ex.add(dim, stride - 1), stride)
            size = ex.add(ex.floor_divide(ex.subtract(ex.add(dim, pad), reach), stride), 1)
        if node.get("ceil_mode", 0) or "output_shape" in node.attributes:
            size = UNKNOWN
        found.append(same if node.get("auto_pad") in _SAME else size)
    return [_spatial(shape, found) for shape in known]


def _blocks(node: Node, inputs: Inputs, known: Shapes) -> Shapes:
    """DepthToSpace and SpaceToDepth."""
    scaled = ex.multiply if node.op == "DepthToSpace" else ex.floor_divide
    return [_spatial(known[0], [scaled(dim, node.get("blocksize")) for dim in _dims(inputs)[2:]])]


def _spatial(known: Sequence[Scalar] | None, found: Sequence[Scalar]) -> Sequence[Scalar]:
    """Fill in the axes behind batch and channels that ONNX does not know."""
    batch, channels, *dims = known or ()
    pairs = zip(dims, found, strict=True)
    return [batch, channels, *(q if isinstance(p, Unknown) else p for p, q in pairs)]


def _resize(node: Node, inputs: Inputs, _known: Shapes) -> Shapes:
    """Resize and Upsample: to sizes, or each dim times a scale, rounded down."""
    dims = _dims(inputs)
    if len(inputs) > 3 and (sizes := inputs[3]) is not None:  # noqa: PLR2004 - X, roi, scales, sizes
        plain = node.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
        followed = plain and "axes" not in node.attributes and sizes.values is not None
        return [_elements(inputs, 3) if followed else [UNKNOWN] * len(dims)]
    scales = inputs[1 if node.op == "Upsample" else 2]
    crops = node.get("coordinate_transformation_mode", b"") == b"tf_crop_and_resize"
    if scales is None or scales.values is None or crops or "axes" in node.attributes:
        return [[UNKNOWN] * len(dims)]
    pairs = zip(dims, scales.values.reshape(-1).tolist(), strict=True)
    return [[_scaled(dim, scale) for dim, scale in pairs]]


def _scaled(dim: int | Expression, scale: float) -> Scalar:
    if scale == int(scale):
        return ex.multiply(dim, int(scale))
    if isinstance(dim, Expression):
        return UNKNOWN
    size = dim * scale
    near_int = abs(size - round(size)) < _ROUNDING  # so near, libraries round differently
    return UNKNOWN if near_int and scale * _BINARY != int(scale * _BINARY) else int(size)


_RULES: dict[str, Callable[[Node, Inputs, Shapes], Shapes]] = {
    **dict.fromkeys(_BROADCASTS, _broadcast),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(words("AveragePool Conv ConvInteger ConvTranspose LpPool MaxPool"), _window),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _blocks,
    "Einsum": _einsum,
    "Expand": _expand,
    "Flatten": _flatten,
    "GroupNormalization": _same,
    "MeanVarianceNormalization": _same,
    "OneHot": _one_hot,
    "Pad": _pad,
    "QLinearConv": _window,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "SpaceToDepth": _blocks,
    "Split": _split,
    "Tile": _tile,
    "TopK": _top_k,
    "Upsample": _resize,
}
