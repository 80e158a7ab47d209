"""The networks, layers, ports and edges of an IR file, from its XML."""

from __future__ import annotations

import xml.sax.handler
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from xml.etree import ElementTree

import defusedxml.sax
from defusedxml.common import DefusedXmlException

from te_select.errors import ModelError, caught
from te_select.operator.broadcast import shown

_DEEPEST = 32  # nested bodies
_MOST_LAYERS = 100_000
_MOST_TAGS = 30 * _MOST_LAYERS  # a layer has about 25
_READ = {"net", "layers", "layer", "data", "input", "output", "port", "dim", "edges", "edge"}


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
    handler = _Handler()
    parser = defusedxml.sax.make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    try:
        parser.parse(file)
    except caught(DefusedXmlException) as error:
        raise ModelError(
            "the file is no OpenVINO IR: it declares a document type or entities"
        ) from error
    except caught(xml.sax.SAXException, LookupError, ValueError) as error:  # or of its encoding
        said = str(error).removeprefix("<unknown>:")
        raise ModelError(f"the file is no OpenVINO IR: {said}") from error
    root = handler.tree.close()
    if root.tag != "net":
        raise ModelError(f"the XML holds <{root.tag}>; expected an OpenVINO IR's <net>")
    main: Net = handler.made[root]
    return main


class _Handler(xml.sax.handler.ContentHandler):
    """Builds a tree of the elements that are read; those of layers are emptied at their end."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[Any, Any] = {}  # layers and networks whose elements have ended
        self.tree = ElementTree.TreeBuilder()
        self._tags = self._layers = 0
        self._passed_over = 0  # how deep we are inside an element that is not read

    def startElement(self, name: str, attrs: Any) -> None:
        """Begin an element."""
        self._tags += 1
        self._layers += name == "layer"
        if self._tags > _MOST_TAGS or self._layers > _MOST_LAYERS:
            raise ModelError(f"the file has more than {_MOST_LAYERS} layers or {_MOST_TAGS} tags")
        is_read = name in _READ or name.endswith("body") or self._tags == 1
        if self._passed_over or not is_read:
            self._passed_over += 1
        else:
            self.tree.start(name, dict(attrs))

    def endElement(self, name: str) -> None:
        """End an element."""
        if self._passed_over:
            self._passed_over -= 1
            return
        element = self.tree.end(name)
        if name == "layer":
            self.made[element] = _layer(element, self.made)
        elif name == "net" or name.endswith("body"):
            self.made[element] = _net(element, self.made)

    def characters(self, content: str) -> None:
        """Add text."""
        if not self._passed_over:
            self.tree.data(content)


def _layer(element: Any, made: dict[Any, Any]) -> Layer:
    """Make a layer of an element, which is emptied."""
    own, name, kind, version = (element.get(each, "") for each in ("id", "name", "type", "version"))
    parts = {child.tag: child for child in element}
    if len(parts) < len(element):
        raise ModelError(f"layer {shown(own)} has two parts of one tag; expected one of each")
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
