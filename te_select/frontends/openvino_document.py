"""The networks, layers, ports and edges of an IR file, from its XML."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat

from te_select.errors import ModelError, caught

_DEEPEST = 32  # nested bodies
_MOST_LAYERS = 100_000
_MOST_TAGS = 30 * _MOST_LAYERS  # a layer has about 25


@dataclass(slots=True)
class Port:
    """An input or output of a layer.

    Parameters
    ----------
    id
        Its id, by which edges name it.
    precision
        The element type as the file spells it; empty if it is left out.
    dims
        The dims in the file; -1 is an unknown dim. There are no dims for a scalar, or if the rank
        is not known.
    """

    id: str
    precision: str
    dims: list[int]


@dataclass(slots=True)
class Layer:
    """A layer.

    Parameters
    ----------
    id, name, type, version
        As the file has them.
    data
        The attributes of the operator.
    inputs, outputs
        Its ports.
    bodies
        The networks inside it, by the tag that holds them.
    """

    id: str
    name: str
    type: str
    version: str
    data: Mapping[str, str]
    inputs: list[Port]
    outputs: list[Port]
    bodies: dict[str, Net]


@dataclass(slots=True)
class Net:
    """A network: its layers by id, what feeds each input port, and how deep bodies lie in it."""

    layers: dict[str, Layer] = field(default_factory=dict)
    edges: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    depth: int = 0


def read_document(file: BinaryIO) -> Net:
    """Read the XML of an IR file.

    Parameters
    ----------
    file
        The file, opened.

    Returns
    -------
    Net
        The main network.

    Raises
    ------
    ModelError
        If the file is not XML, declares entities or a document type, or is not an IR.
    """
    made: dict[Any, Any] = {}  # layers and networks whose elements have ended
    builder, parser, count = ElementTree.TreeBuilder(), expat.ParserCreate(), itertools.count()

    def end(tag: str) -> None:
        element = builder.end(tag)
        if tag == "layer":
            made[element] = _layer(element, made)
        elif tag == "net" or tag.endswith("body"):
            made[element] = _net(element, made)
        if next(count) > _MOST_TAGS or len(made) > _MOST_LAYERS:
            raise ModelError(f"the file has more than {_MOST_LAYERS} layers")

    def refuse(*_: object) -> None:
        raise ModelError("it declares a document type or entities")

    parser.StartElementHandler, parser.EndElementHandler = builder.start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, refuse
    try:
        parser.ParseFile(file)
    except caught(expat.ExpatError, LookupError, ValueError) as error:  # or of its encoding
        raise ModelError(f"the file is no OpenVINO IR: {error}") from error
    root = builder.close()
    if root.tag != "net":
        raise ModelError(f"the XML holds <{root.tag}>; expected an OpenVINO IR's <net>")
    main: Net = made[root]
    return main


def _layer(element: Any, made: dict[Any, Any]) -> Layer:
    """Make a layer of an element, which is emptied."""
    own, name, kind, version = (element.get(each, "") for each in ("id", "name", "type", "version"))
    parts = {child.tag: child for child in element}
    data = parts["data"].attrib if "data" in parts else {}
    inputs, outputs = (
        [_port(port) for port in parts.get(side, ()) if port.tag == "port"]
        for side in ("input", "output")
    )
    bodies = {tag: made.pop(part) for tag, part in parts.items() if tag.endswith("body")}
    element.clear()
    return Layer(own, name, kind, version, data, inputs, outputs, bodies)


def _port(element: Any) -> Port:
    dims = [_size(dim.text or "") for dim in element if dim.tag == "dim"]
    return Port(element.get("id", ""), element.get("precision", ""), dims)


def _net(element: Any, made: dict[Any, Any]) -> Net:
    net = Net()
    for layer in map(made.pop, element.iterfind("layers/layer")):
        net.depth = max([net.depth, *(1 + body.depth for body in layer.bodies.values())])
        if net.depth > _DEEPEST:
            raise ModelError(f"bodies lie in each other more than {_DEEPEST} deep")
        if layer.id in net.layers:
            raise ModelError(f"two layers have the id {layer.id!r}; expected one of each")
        net.layers[layer.id] = layer
    for edge in element.iterfind("edges/edge"):
        to = edge.get("to-layer", ""), edge.get("to-port", "")
        if to in net.edges:
            raise ModelError(f"two edges lead to port {to[1]} of layer {to[0]}; expected one")
        net.edges[to] = edge.get("from-layer", ""), edge.get("from-port", "")
    return net


def _size(text: str) -> int:
    try:
        return int(text)
    except caught(ValueError) as error:
        raise ModelError(f"dim {text.strip()[:40]!r} is no int") from error
