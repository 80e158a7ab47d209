"""Walks the layers of IR networks and notes what is known about the operands of every Select.

The file states the dims of every output. Of those that it leaves open, only the main network's
Parameters have names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from te_select.errors import ModelError
from te_select.frontends.names import named
from te_select.frontends.openvino_ir.document import Layer, Net, Port
from te_select.frontends.order import in_order
from te_select.frontends.status import Operands, Site
from te_select.frontends.tensors import Dims, Tensor, agree
from te_select.frontends.words import words
from te_select.operator.systems import TYPE_NAMES

_NOT_KNOWN = ("", "dynamic", "undefined", "unspecified")  # element types
_TO_BOOL = words(
    "Equal Greater GreaterEqual IsFinite IsInf IsNaN Less LessEqual LogicalAnd LogicalNot "
    "LogicalOr LogicalXor NotEqual"
)
_STATIC_RANK = words(
    "Gather ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum Reshape Squeeze StridedSlice Unsqueeze"
)
_WITH_CONTROL = 2  # inputs: the data, and one that decides the rank
_CHANGES = frozenset(("Assign", "Multinomial", "Parameter", "RandomUniform", "ReadValue"))
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


@dataclass(frozen=True)
class Found:
    """A Select with what is known about its operands."""

    site: Site
    layer: Layer
    operands: Operands


class Walker:
    """Walks a file's networks.

    Parameters
    ----------
    main
        The main network.
    """

    def __init__(self, main: Net) -> None:
        self._main = main
        sizes = {
            (layer.id, axis): (layer.name, word)
            for layer in main.layers.values()
            if layer.type == "Parameter"
            for axis, word in enumerate(_stated(layer) or ())
            if isinstance(word, str)
        }
        self._names = named({size: f"{name}_{size[1]}" for size, (name, _) in sizes.items()})
        self.texts = {
            self._names[size]: f"dim {size[1]} of Parameter {name!r}"
            + (f", {word}" if ".." in word else "")
            for size, (name, word) in sizes.items()
        }

    def walk(self, net: Net | None = None, path: str = "net") -> Iterator[Found]:
        """Find every Select of a network, by default the main one, and of the bodies in it."""
        net = net or self._main
        known: dict[tuple[str, str], Tensor] = {}
        found: dict[str, list[Found]] = {layer_id: [] for layer_id in net.layers}
        makes_shapes = _shape_layers(net)
        for layer in _order(net, path):
            inputs = [_input(net, layer, port, known, path) for port in layer.inputs]
            constants = (tensor.constant for tensor in inputs)
            constant = not layer.bodies and layer.type not in _CHANGES and all(constants)
            for index, port in enumerate(layer.outputs):
                if any(dim < -1 for dim in port.dims):
                    raise ModelError(f"layer {path}#{layer.id} has the dims {list(port.dims)}")
                dtype = dtype_of(port.precision) or _dtype_after(layer, inputs, index)
                dims = self._dims(net, layer, port, inputs)
                known[layer.id, port.id] = Tensor(dtype, dims, constant)
            if layer.type == "Select" and layer.version in ("", "opset1"):
                site = _site(net, layer, path)
                site = replace(
                    site, makes_shapes=layer.id in makes_shapes, conditional=net is not self._main
                )
                found[layer.id].append(Found(site, layer, (inputs[0], inputs[1], inputs[2])))
            for tag, body in layer.bodies.items():
                found[layer.id] += self.walk(body, f"{path}/{layer.id}:{layer.type}.{tag}")
        yield from chain.from_iterable(found.values())

    def _dims(self, net: Net, layer: Layer, port: Port, inputs: Sequence[Tensor]) -> Dims | None:
        """The dims of an output; None if its rank is not known."""
        if layer.type == "Parameter":
            stated = _stated(layer)
            names = self._names if net is self._main else {}
            return stated and tuple(
                dim if isinstance(dim, int) else names.get((layer.id, axis))
                for axis, dim in enumerate(stated)
            )
        is_known = port.dims or layer.type == "Const" or _is_scalar(layer, inputs)
        return tuple(None if dim < 0 else dim for dim in port.dims) if is_known else None


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
        shape = ", ".join("?" if dim is None else str(dim) for dim in tensor.shape)
        raise ModelError(
            f"input {port.id} of layer {place} is {list(port.dims)}, and what feeds it is "
            f"[{shape}]; expected the same shape"
        )
    return replace(tensor, dtype=tensor.dtype or dtype_of(port.precision))


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


def _site(net: Net, layer: Layer, path: str) -> Site:
    if len(layer.inputs) != 3:  # noqa: PLR2004 - cond, then and else
        raise ModelError(f"Select {path}#{layer.id} has {len(layer.inputs)} inputs; expected three")
    maker = net.layers[net.edges[layer.id, layer.inputs[0].id][0]].type
    if maker == "Parameter":
        maker = "graph input" if path == "net" else "body input"
    maker = "initializer" if maker == "Const" else maker
    return Site(layer.name, f"{path}#{layer.id}", "Select-1", maker)


def dtype_of(spelled: str) -> str | None:
    """Our name of an element type, or the file's own if we have none; None if it is not known."""
    word = spelled.lower()
    return None if word in _NOT_KNOWN else TYPE_NAMES["openvino"].get(word, word)


def _dtype_after(layer: Layer, inputs: Sequence[Tensor], index: int) -> str | None:
    """Element type of an output, for a file that leaves it out."""
    if layer.type in ("Const", "Parameter"):
        return dtype_of(layer.data.get("element_type", ""))
    if layer.type in _TO_BOOL:
        return "bool"
    return inputs[1].dtype if layer.type == "Select" and len(inputs) > 1 and not index else None


def _is_scalar(layer: Layer, inputs: Sequence[Tensor]) -> bool:
    """Whether an output that is stated without dims is a scalar, and not of unknown rank.

    It is if all inputs are scalars. In layers that change the rank it is, too, if the ranks of the
    inputs are known and only constants decide that of the output.
    """
    if inputs and not layer.bodies and all(tensor.shape == () for tensor in inputs):
        return True
    if layer.type not in _STATIC_RANK or len(inputs) < _WITH_CONTROL:
        return False
    known = all(tensor.shape is not None for tensor in inputs)
    return known and (layer.type == "Gather" or all(tensor.constant for tensor in inputs[1:]))


def _order(net: Net, path: str) -> list[Layer]:
    """The layers, each behind those that feed it."""
    waits: dict[str, set[str]] = {layer_id: set() for layer_id in net.layers}
    for (to, _), (source, _) in net.edges.items():
        if to not in waits or source not in waits:
            missing = to if to not in waits else source
            raise ModelError(f"an edge of {path} names layer {missing!r}, which is not there")
        waits[to].add(source)
    return [net.layers[layer_id] for layer_id in in_order(waits, path, "layers")]


def _shape_layers(net: Net) -> set[str]:
    """Ids of the layers whose outputs become shapes through arithmetic of ints."""
    sources: dict[str, list[str]] = {}
    ids: set[str] = set()
    for layer in net.layers.values():
        ports = [port.id for port in layer.inputs]
        feeds = [net.edges[layer.id, port][0] for port in ports if (layer.id, port) in net.edges]
        sources[layer.id] = feeds if layer.type in _INTEGER_ARITHMETIC else []
        pairs = zip(feeds, _READS_SHAPES, strict=False)
        ids |= {source for source, readers in pairs if layer.type in readers}
    waiting = list(ids)
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in ids:
                ids.add(source)
                waiting.append(source)
    return ids
