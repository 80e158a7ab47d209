"""Shapes of images: convolution, pooling, resizing, and operators that move pixels."""

from __future__ import annotations

from te_select.frontends.onnx_graph.layout import Inputs, Rule, Shapes, dims_of
from te_select.frontends.onnx_graph.nodes import Node
from te_select.frontends.symbolic import expressions as ex
from te_select.frontends.symbolic.expressions import UNKNOWN, Dim, Expression, Scalar

_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}  # the input that holds the weights
_SAME = (b"SAME_UPPER", b"SAME_LOWER")
_ROUNDING = 1e-3
_BINARY = 64  # a scale in 64ths is exact in every library


def _window(node: Node, inputs: Inputs) -> Shapes:
    """Conv and the pools: batch, channels, and a window that moves over the other axes."""
    batch, channels, *spatial = dims_of(inputs)
    kernel = node.get("kernel_shape")
    if (at := _WEIGHTS.get(node.op)) is not None:
        channels, _, *weights = dims_of(inputs, at)
        kernel = kernel or weights
    count = len(spatial)
    strides = node.get("strides", [1] * count)
    dilations = node.get("dilations", [1] * count)
    pads = node.get("pads", [0] * 2 * count)
    auto = node.get("auto_pad", b"NOTSET")
    dims: list[Scalar] = [batch, channels]
    for i, dim in enumerate(spatial):
        reach = ex.add(ex.multiply(ex.subtract(kernel[i], 1), dilations[i]), 1)
        room = ex.add(dim, pads[i] + pads[i + count])
        if auto in _SAME:
            room, reach = dim, 1
        steps = ex.floor_divide(ex.subtract(room, reach), strides[i])
        dims.append(UNKNOWN if node.get("ceil_mode", 0) else ex.add(steps, 1))
    return [dims] * len(node.proto.output)


def _resize(node: Node, inputs: Inputs) -> Shapes:
    sizes = inputs[3] if len(inputs) > 3 else None  # noqa: PLR2004 - X, roi, scales, sizes
    policy = node.get("keep_aspect_ratio_policy", b"stretch")
    if "axes" in node.attributes or policy != b"stretch":
        raise LookupError("which axes are resized is not known")
    if sizes is None:
        return _upsample(node, inputs)
    if sizes.values is None:
        return [[UNKNOWN] * len(dims_of(inputs))]
    return [sizes.values.reshape(-1).tolist()]


def _upsample(node: Node, inputs: Inputs) -> Shapes:
    """Upsample, and Resize without sizes: each dim times a scale, rounded down."""
    dims = dims_of(inputs)
    at = 1 if node.op == "Upsample" else 2
    tensor = inputs[at]
    if tensor is None or tensor.values is None or "axes" in node.attributes:
        raise LookupError("the scales are not known")
    if node.get("coordinate_transformation_mode", b"") == b"tf_crop_and_resize":
        raise LookupError("what is cropped is not known")
    scales = tensor.values.reshape(-1).tolist()
    return [[_scaled(dim, scale) for dim, scale in zip(dims, scales, strict=True)]]


def _scaled(dim: Dim, scale: float) -> Scalar:
    if scale == int(scale):
        return ex.multiply(dim, int(scale))
    if isinstance(dim, Expression):
        return UNKNOWN
    size = dim * scale
    near_int = abs(size - round(size)) < _ROUNDING  # so near, libraries round differently
    return UNKNOWN if near_int and scale * _BINARY != int(scale * _BINARY) else int(size)


def _transposed(node: Node, inputs: Inputs) -> Shapes:
    batch, _, *spatial = dims_of(inputs)
    _, per_group, *weights = dims_of(inputs, 1)
    if "output_shape" in node.attributes:
        return [[batch, ex.multiply(per_group, node.get("group", 1)), *node.get("output_shape")]]
    count, auto = len(spatial), node.get("auto_pad", b"NOTSET")
    strides = node.get("strides", [1] * count)
    if auto in _SAME:
        sizes = [ex.multiply(dim, stride) for dim, stride in zip(spatial, strides, strict=True)]
        return [[batch, ex.multiply(per_group, node.get("group", 1)), *sizes]]
    kernel = node.get("kernel_shape") or weights
    dilations = node.get("dilations", [1] * count)
    pads = node.get("pads", [0] * 2 * count)
    extra = node.get("output_padding", [0] * count)
    dims: list[Scalar] = [batch, ex.multiply(per_group, node.get("group", 1))]
    for i, dim in enumerate(spatial):
        reach = ex.add(ex.multiply(ex.subtract(kernel[i], 1), dilations[i]), 1)
        start = ex.multiply(ex.subtract(dim, 1), strides[i])
        dims.append(ex.add(ex.add(start, reach), extra[i] - pads[i] - pads[i + count]))
    return [dims]


def _roi_align(node: Node, inputs: Inputs) -> Shapes:
    channels, rois = dims_of(inputs)[1], dims_of(inputs, 1)[0]
    size = [node.get("output_height", 1), node.get("output_width", 1)]
    return [[rois, channels, *size]]


def _grid_sample(_node: Node, inputs: Inputs) -> Shapes:
    return [[*dims_of(inputs)[:2], *dims_of(inputs, 1)[1:-1]]]


def _depth_to_space(node: Node, inputs: Inputs) -> Shapes:
    batch, channels, height, width = dims_of(inputs)
    block = node.get("blocksize")
    grown = [ex.multiply(height, block), ex.multiply(width, block)]
    return [[batch, ex.floor_divide(channels, block * block), *grown]]


def _space_to_depth(node: Node, inputs: Inputs) -> Shapes:
    batch, channels, height, width = dims_of(inputs)
    block = node.get("blocksize")
    shrunk = [ex.floor_divide(height, block), ex.floor_divide(width, block)]
    return [[batch, ex.multiply(channels, block * block), *shrunk]]


WINDOWS: dict[str, Rule] = {
    "AveragePool": _window,
    "Conv": _window,
    "ConvInteger": _window,
    "ConvTranspose": _transposed,
    "DepthToSpace": _depth_to_space,
    "GridSample": _grid_sample,
    "LpPool": _window,
    "MaxPool": _window,
    "QLinearConv": _window,
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "SpaceToDepth": _space_to_depth,
    "Upsample": _upsample,
}
