"""Walks the layers of IR networks and notes what is known about the operands of every Select."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from te_select.errors import ModelError
from te_select.frontends.openvino_ir.document import Layer, Net, Port
from te_select.frontends.order import in_order
from te_select.frontends.symbolic.expressions import UNKNOWN, Dim
from te_select.frontends.symbolic.names import Names
from te_select.frontends.symbolic.rules import COMPARES, RULES, SAME_AS_FIRST, shape_of
from te_select.frontends.symbolic.status import Operands, Site
from te_select.frontends.symbolic.tensors import Sizes, Tensor, agree
from te_select.frontends.words import words
from te_select.operator.systems import TYPE_NAMES

_NOT_KNOWN = ("", "dynamic", "undefined", "unspecified")  # element types
_TO_BOOL = COMPARES | words("IsFinite IsInf IsNaN LogicalNot")
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
    """Walks a file's networks, the main one first."""

    def __init__(self) -> None:
        self.sizes = Sizes()
        self.names = Names(self.sizes)

    def walk(
        self, net: Net, path: str = "net", fed: dict[str, Tensor] | None = None
    ) -> Iterator[Found]:
        """Find every Select of a network and of the bodies in it.

        Parameters
        ----------
        net
            The network.
        path
            Its place.
        fed
            For a body, which may never run: what is known about its parameters, by layer id.
        """
        known: dict[tuple[str, str], Tensor] = {}
        found: dict[str, list[Found]] = {layer_id: [] for layer_id in net.layers}
        makes_shapes = _shape_layers(net)
        for layer in _order(net, path):
            inputs = [self._input(net, layer, port, known, path) for port in layer.inputs]
            outputs = self._outputs(layer, inputs, path, fed)
            known.update({(layer.id, port.id): outputs[i] for i, port in enumerate(layer.outputs)})
            if layer.type == "Select" and layer.version in ("", "opset1"):
                site = _site(net, layer, path)
                site = replace(
                    site, makes_shapes=layer.id in makes_shapes, conditional=fed is not None
                )
                found[layer.id].append(Found(site, layer, (inputs[0], inputs[1], inputs[2])))
            for tag, body in layer.bodies.items():
                place = f"{path}/{layer.id}:{layer.type}.{tag}"
                found[layer.id] += self.walk(body, place, _passed(layer, tag, inputs))
        yield from chain.from_iterable(found.values())

    def _input(
        self, net: Net, layer: Layer, port: Port, known: dict[tuple[str, str], Tensor], path: str
    ) -> Tensor:
        """What is known about an input, from its producer, or otherwise from the port."""
        place = f"{path}#{layer.id}"
        source = net.edges.get((layer.id, port.id))
        if source is None:
            raise ModelError(f"no edge leads to port {port.id} of layer {place}")
        if source not in known:
            raise ModelError(f"{place} reads port {source[1]} of layer {source[0]}, which has none")
        tensor = known[source]
        said = [UNKNOWN if dim == -1 else dim for dim in port.dims]
        if tensor.shape is not None and said and not agree(tensor.shape, said):
            raise ModelError(
                f"input {port.id} of layer {place} is {list(port.dims)}, and what feeds it is "
                f"[{', '.join(map(str, tensor.shape))}]; expected the same shape"
            )
        return replace(tensor, dtype=tensor.dtype or dtype_of(port.precision))

    def _outputs(
        self, layer: Layer, inputs: list[Tensor], path: str, fed: dict[str, Tensor] | None
    ) -> list[Tensor]:
        if layer.type == "Parameter" and layer.outputs:
            return [self._parameter(layer, fed)] * len(layer.outputs)
        constants = [tensor.constant for tensor in inputs]
        constant = not layer.bodies and layer.type not in _CHANGES and all(constants)
        return [
            replace(self._output(layer, port, i, inputs, path), constant=constant)
            for i, port in enumerate(layer.outputs)
        ]

    def _output(
        self, layer: Layer, port: Port, index: int, inputs: list[Tensor], path: str
    ) -> Tensor:
        """What the file says about an output; for the first one, also what follows."""
        if any(dim < -1 for dim in port.dims):
            raise ModelError(f"layer {path}#{layer.id} has the dims {list(port.dims)}")
        dtype, follows = dtype_of(port.precision), None
        if index == 0:
            dtype = dtype or _dtype_after(layer, inputs)
            follows = shape_of(layer.type, layer.data.get, [tensor.shape for tensor in inputs])
        if not port.dims and (layer.type == "Const" or (not follows and _is_scalar(layer, inputs))):
            follows = ()
        stated = [UNKNOWN if dim < 0 else dim for dim in port.dims]
        if follows is None or (stated and len(follows) != len(stated)):
            follows = stated
        if not stated and follows is stated:
            return Tensor(dtype)
        return Tensor(dtype, self.sizes.dims(follows, f"layer {layer.name!r}", stated or None))

    def _parameter(self, layer: Layer, fed: dict[str, Tensor] | None) -> Tensor:
        """What is known about an input of the network or of a body."""
        given = (fed or {}).get(layer.id, Tensor())
        port = layer.outputs[0]
        dtype = dtype_of(port.precision) or dtype_of(layer.data.get("element_type", ""))
        said = layer.data.get("shape")
        if said is None and port.dims:
            said = ",".join("?" if dim == -1 else str(dim) for dim in port.dims)
        if said is None or "..." in said:
            return Tensor(dtype or given.dtype, given.shape)
        words = [word.strip() for word in said.split(",")] if said.strip() else []
        shape = given.shape if given.shape and len(given.shape) == len(words) else None
        dims: list[Dim] = []
        names = []
        for axis, word in enumerate(words):
            dim: Dim
            if word.isdecimal() and len(word) <= _MOST_DIGITS:
                dim = int(word)
            elif word not in ("?", "-1") and not _INTERVAL.fullmatch(word):
                raise ModelError(
                    f"Parameter {layer.name!r} has the dim {word[:40]!r}; expected a size, an "
                    "interval such as 1..8, or ?"
                )
            elif shape is not None:
                dim = shape[axis]
            else:
                text = f"dim {axis} of Parameter {layer.name!r}"
                text += f", {word}" if ".." in word else ""
                dim = self.sizes.fresh(text)
                names.append((dim, text, f"{layer.name}_{axis}"))
            dims.append(dim)
        if fed is None:
            self.names.give(names)
        return Tensor(dtype, tuple(dims))


def _site(net: Net, layer: Layer, path: str) -> Site:
    if len(layer.inputs) != 3:  # noqa: PLR2004 - cond, then and else
        raise ModelError(f"Select {path}#{layer.id} has {len(layer.inputs)} inputs; expected three")
    maker = net.layers[net.edges[layer.id, layer.inputs[0].id][0]].type
    if maker == "Parameter":
        maker = "graph input" if path == "net" else "body input"
    maker = "initializer" if maker == "Const" else maker
    return Site(layer.name, f"{path}#{layer.id}", "Select-1", maker)


def _passed(layer: Layer, tag: str, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
    """What is known of the parameters of a body that are whole tensors, the same in each trip."""
    by_port = {port.id: tensor for port, tensor in zip(layer.inputs, inputs, strict=True)}
    wanted = f"{tag.removesuffix('body')}port_map"
    return {
        entry.get("internal_layer_id", ""): by_port[entry["external_port_id"]]
        for place, direction, entry in layer.maps
        if place == wanted
        and direction == "input"
        and "axis" not in entry
        and entry.get("external_port_id") in by_port
        and entry.get("internal_layer_id") not in layer.carried
    }


def dtype_of(spelled: str) -> str | None:
    """Our name of an element type, or the file's own if we have none; None if it is not known."""
    word = spelled.lower()
    return None if word in _NOT_KNOWN else TYPE_NAMES["openvino"].get(word, word)


def _dtype_after(layer: Layer, inputs: Sequence[Tensor]) -> str | None:
    """Element type of the first output, for a file that leaves it out."""
    if layer.type == "Const":
        return dtype_of(layer.data.get("element_type", ""))
    if layer.type in _TO_BOOL:
        return "bool"
    if layer.type == "Select":
        return inputs[1].dtype if len(inputs) > 1 else None
    follows = layer.type != "Convert" and (layer.type in SAME_AS_FIRST or layer.type in RULES)
    return inputs[0].dtype if follows and inputs else None


def _is_scalar(layer: Layer, inputs: Sequence[Tensor]) -> bool:
    """Whether an output that is stated without dims is a scalar, and not of unknown rank.

    Its rank is known if the ranks of the inputs are known and only constants decide it.
    """
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
