"""The networks, layers, ports and edges of an IR file, from its XML."""

from __future__ import annotations

import xml.sax.handler
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import defusedxml.sax
from defusedxml.common import DefusedXmlException

from te_select.errors import ModelError, caught

_DEEPEST = 32  # nested bodies
_MOST_LAYERS = 100_000
_MOST_TAGS = 8 * _DEEPEST  # nested tags


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
    dims: list[int] = field(default_factory=list)


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
    data: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Net] = field(default_factory=dict)


@dataclass(slots=True)
class Net:
    """A network: its layers by id, and for each input port the output port that feeds it."""

    layers: dict[str, Layer] = field(default_factory=dict)
    edges: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)


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
        raise ModelError(f"the file is no OpenVINO IR: {_text(error)}") from error
    return handler.nets[0]


def _text(error: Exception) -> str:
    """What is wrong and where, without the file's name."""
    if isinstance(error, xml.sax.SAXParseException):
        return f"line {error.getLineNumber()}: {error.getMessage()}"
    return str(error)


class _Handler(xml.sax.handler.ContentHandler):
    """Builds the networks while the XML is read; the XML itself is not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.nets: list[Net] = []  # the main one first, and then those around what is read now
        self._tags: list[str] = []
        self._layers: list[Layer] = []
        self._port: Port | None = None
        self._dims: list[int] = []
        self._text: list[str] | None = None
        self._count = 0

    def startElement(self, name: str, attrs: Any) -> None:
        """Begin an element."""
        parent = self._tags[-1] if self._tags else ""
        self._tags.append(name)
        if len(self._tags) > _MOST_TAGS:
            raise ModelError(f"elements lie in each other more than {_MOST_TAGS} deep")
        if not parent:
            if name != "net":
                raise ModelError(f"the XML holds <{name}>; expected an OpenVINO IR's <net>")
            self.nets.append(Net())
        elif name == "dim":
            self._text = []
        elif name == "port" and self._layers:
            self._port = Port(attrs.get("id", ""), attrs.get("precision", ""))
            layer = self._layers[-1]
            (layer.inputs if parent == "input" else layer.outputs).append(self._port)
        elif name == "edge":
            self._edge(parent, attrs)
        elif name == "layer":
            self._layer(attrs)
        elif name == "data" and parent == "layer":
            self._layers[-1].data = dict(attrs)
        elif parent == "layer" and name.endswith("body"):
            if len(self.nets) > _DEEPEST:
                raise ModelError(f"bodies lie in each other more than {_DEEPEST} deep")
            self._layers[-1].bodies[name] = Net()
            self.nets.append(self._layers[-1].bodies[name])

    def endElement(self, name: str) -> None:
        """End an element."""
        self._tags.pop()
        parent = self._tags[-1] if self._tags else ""
        if name == "dim" and self._text is not None:
            self._dims.append(_size("".join(self._text)))
            self._text = None
        elif name == "port" and self._port is not None:
            self._port.dims = self._dims
            self._dims, self._port = [], None
        elif name == "layer":
            self._layers.pop()
        elif parent == "layer" and name.endswith("body"):
            self.nets.pop()

    def characters(self, content: str) -> None:
        """Collect the text of a dim."""
        if self._text is not None:
            self._text.append(content)

    def _layer(self, attrs: Any) -> None:
        layer = Layer(*(attrs.get(name, "") for name in ("id", "name", "type", "version")))
        net = self.nets[-1]
        if layer.id in net.layers:
            raise ModelError(f"two layers have the id {layer.id!r}; expected one of each")
        net.layers[layer.id] = layer
        self._count += 1
        if self._count > _MOST_LAYERS:
            raise ModelError(f"the file has more than {_MOST_LAYERS} layers")
        self._layers.append(layer)

    def _edge(self, parent: str, attrs: Any) -> None:
        if parent == "edges":
            to = attrs.get("to-layer", ""), attrs.get("to-port", "")
            if to in self.nets[-1].edges:
                raise ModelError(f"two edges lead to port {to[1]} of layer {to[0]}; expected one")
            self.nets[-1].edges[to] = attrs.get("from-layer", ""), attrs.get("from-port", "")


def _size(text: str) -> int:
    try:
        return int(text)
    except caught(ValueError) as error:
        raise ModelError(f"dim {text.strip()[:40]!r} is no int") from error
