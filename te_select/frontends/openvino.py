"""Reads OpenVINO IR files.

The file states the dims of every output. Of those that it leaves open, only the main network's
Parameters have names.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import BinaryIO

from te_select.errors import ModelError
from te_select.frontends.graphs import in_order, named, words
from te_select.frontends.openvino_document import Layer, Net, Port, read_document
from te_select.frontends.status import Site, model_node
from te_select.frontends.tensors import Dims, Tensor, agree, format_dims
from te_select.operator.node import ModelNode
from te_select.operator.systems import OPS, TYPE_NAMES

_AXIS = "auto_broadcast.auto_broadcast_axis"  # OpenVINO heeds no other spelling
_AXIS_TEXT = re.compile(r"\s*-?\d+\s*", re.ASCII)
_OPSET = re.compile(r"(opset\d+)?")  # all have the same Select
_NOT_KNOWN = ("", "dynamic", "undefined", "unspecified")  # element types
_CHANGES = words("Assign Multinomial Parameter RandomUniform ReadValue")
_MOST_DIGITS = 19  # of a dim, which is an int64
_INTERVAL = re.compile(r"(\d*)\.\.(\d*)")
_INTEGER_ARITHMETIC = words(
    "Abs Add Broadcast Concat Convert Divide Equal Floor FloorMod Gather Maximum Minimum Mod "
    "Multiply Negative ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterElementsUpdate "
    "ScatterNDUpdate ScatterUpdate Select Slice Split Squeeze StridedSlice Subtract Tile "
    "Unsqueeze VariadicSplit"
)
_READS_SHAPES = (  # for each input: the operators that take a shape, or a part of one, there
    words("RandomUniform Range"),
    words("Broadcast Interpolate Pad Range Reshape Slice StridedSlice Tile TopK"),
    words("Pad Range Slice StridedSlice VariadicSplit"),
)


def read_openvino(file: BinaryIO) -> list[ModelNode]:
    """Read every Select of an OpenVINO IR file.

    Parameters
    ----------
    file
        The ``.xml``. The ``.bin`` beside it is not read.

    Returns
    -------
    list of ModelNode
        In the order of the file; those of a body come after the layer that holds it.

    Raises
    ------
    ModelError
        If the file is not an IR, or contradicts itself.

    Notes
    -----
    OpenVINO operation set, Select-1. For its ``numpy`` mode see `Workload.openvino_select`.
    """
    return list(_Walker(read_document(file)).walk())


class _Walker:
    """Walks a file's networks.

    Parameters
    ----------
    main
        The main network.
    """

    def __init__(self, main: Net) -> None:
        self._main = main
        wishes, texts = {}, {}
        for layer in main.layers.values():
            for axis, word in enumerate(_stated(layer) or () if layer.type == "Parameter" else ()):
                if isinstance(word, str):
                    interval = f", {word}" if ".." in word else ""
                    wishes[layer.id, axis] = f"{layer.name}_{axis}"
                    texts[layer.id, axis] = f"dim {axis} of Parameter {layer.name!r}{interval}"
        self._names = named(wishes)
        self._texts = {name: texts[size] for size, name in self._names.items()}

    def walk(self, net: Net | None = None, path: str = "net") -> Iterator[ModelNode]:
        """Find every Select of a network, by default the main one, and of the bodies in it."""
        net = net or self._main
        known: dict[tuple[str, str], Tensor] = {}
        found: dict[str, list[ModelNode]] = {layer_id: [] for layer_id in net.layers}
        order = _order(net, path)
        makes_shapes = _shape_layers(net, order)
        for layer in order:
            inputs = [_input(net, layer, port, known, path) for port in layer.inputs]
            constants = (tensor.constant for tensor in inputs)
            constant = not layer.bodies and layer.type not in _CHANGES and all(constants)
            for port in layer.outputs:
                if any(dim < -1 for dim in port.dims):
                    raise ModelError(f"layer {path}#{layer.id} has the dims {list(port.dims)}")
                said = port.precision or layer.data.get("element_type", "")
                dims = self._dims(net, layer, port, inputs)
                known[layer.id, port.id] = Tensor(_dtype_of(said), dims, constant)
            if layer.type == "Select" and _OPSET.fullmatch(layer.version):
                site = _site(net, layer, path, layer.id in makes_shapes)
                found[layer.id].append(model_node(site, inputs, self._texts))
            for tag, body in layer.bodies.items():
                found[layer.id] += self.walk(body, f"{path}/{layer.id}:{layer.type}.{tag}")
        yield from chain.from_iterable(found.values())

    def _dims(self, net: Net, layer: Layer, port: Port, inputs: Sequence[Tensor]) -> Dims | None:
        """The dims of an output; None if its rank is not known."""
        if layer.type == "Parameter":
            names = self._names if net is self._main else {}
            stated = _stated(layer)
            if stated is None:
                return None
            pairs = enumerate(stated)
            return tuple(d if isinstance(d, int) else names.get((layer.id, i)) for i, d in pairs)
        only_scalars = inputs and all(tensor.shape == () for tensor in inputs)
        only_scalars = only_scalars and not layer.bodies and layer.type not in _CHANGES
        if port.dims or layer.type == "Const" or only_scalars:
            return tuple(None if dim < 0 else dim for dim in port.dims)
        return None  # or a scalar: the file states both alike


def _input(
    net: Net, layer: Layer, port: Port, known: dict[tuple[str, str], Tensor], path: str
) -> Tensor:
    """What is known about an input, from its producer, or otherwise from the port."""
    place = f"{path}#{layer.id}"
    source = net.edges.get((layer.id, port.id))
    if source is None:
        raise ModelError(f"no edge leads to port {port.id} of layer {place}")
    if source not in known:
        raise ModelError(f"{place} reads port {source[1]} of layer {source[0]}, which has none")
    tensor = known[source]
    said = [None if dim == -1 else dim for dim in port.dims]
    if tensor.shape is not None and said and not agree(tensor.shape, said):
        raise ModelError(
            f"input {port.id} of layer {place} is {format_dims(said)}, and what feeds it is "
            f"{format_dims(tensor.shape)}; expected the same shape"
        )
    return replace(tensor, dtype=tensor.dtype or _dtype_of(port.precision))


def _stated(layer: Layer) -> list[int | str] | None:
    """The dims of a Parameter: ints, and what stands for a dim that is open; None if all are."""
    ports = layer.outputs[0].dims if layer.outputs else []
    said = layer.data.get("shape", ",".join(map(str, ports)) or "...")
    if "..." in said:
        return None
    stated: list[int | str] = []
    for word in map(str.strip, said.split(",") if said.strip() else []):
        if word.isdecimal() and len(word) <= _MOST_DIGITS:
            stated.append(int(word))
        elif word in ("?", "-1") or _INTERVAL.fullmatch(word):
            stated.append(word)
        else:
            raise ModelError(
                f"Parameter {layer.name!r} has the dim {word[:40]!r}; expected a size, an "
                "interval such as 1..8, or ?"
            )
    return stated


def _site(net: Net, layer: Layer, path: str, makes_shapes: bool) -> Site:
    place = f"{path}#{layer.id}"
    in_body = path != "net"
    if len(layer.inputs) != 3:  # noqa: PLR2004 - cond, then and else
        raise ModelError(f"Select {place} has {len(layer.inputs)} inputs; expected three")
    maker = net.layers[net.edges[layer.id, layer.inputs[0].id][0]].type
    if maker == "Parameter":
        maker = "body input" if in_body else "graph input"
    maker = "initializer" if maker == "Const" else maker
    said = layer.data.get("auto_broadcast", "numpy").lower()
    mode = "none" if said == "explicit" else said
    axis = layer.data.get(_AXIS, "0") if mode == "pdpd" else "-1"
    if not _AXIS_TEXT.fullmatch(axis) or len(axis) > _MOST_DIGITS:
        raise ModelError(f"Select {place} has the axis {axis[:40]!r}; expected an int")
    of = (OPS["openvino"], mode, int(axis))
    return Site(layer.name, place, "Select-1", maker, *of, makes_shapes, conditional=in_body)


def _dtype_of(spelled: str) -> str | None:
    """Our name of an element type, or the file's own if we have none; None if it is not known."""
    word = spelled.lower()
    return None if word in _NOT_KNOWN else TYPE_NAMES["openvino"].get(word, word)


def _order(net: Net, path: str) -> list[Layer]:
    """The layers, each behind those that feed it."""
    waits: dict[str, set[str]] = {layer_id: set() for layer_id in net.layers}
    for (to, _), (source, _) in net.edges.items():
        if to not in waits or source not in waits:
            missing = to if to not in waits else source
            raise ModelError(f"an edge of {path} names layer {missing!r}, which is not there")
        waits[to].add(source)
    return [net.layers[layer_id] for layer_id in in_order(waits, path, "layers")]


def _shape_layers(net: Net, order: Sequence[Layer]) -> set[str]:
    """Ids of the layers whose outputs become shapes through arithmetic of ints."""
    ids: set[str] = set()
    for layer in reversed(order):
        ports = [(layer.id, port.id) for port in layer.inputs]
        feeds = [net.edges[port][0] for port in ports if port in net.edges]
        pairs = zip(feeds, _READS_SHAPES, strict=False)
        ids |= {source for source, readers in pairs if layer.type in readers}
        if layer.type in _INTEGER_ARITHMETIC and layer.id in ids:
            ids |= set(feeds)
    return ids
