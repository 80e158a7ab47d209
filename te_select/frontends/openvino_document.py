"""The networks, layers, ports and edges of an IR file, from its XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from te_select.errors import ModelError, caught

_DEEPEST = 32  # nested bodies
_MOST_TAGS = 8 * _DEEPEST  # nested tags
_MOST_LAYERS = 100_000
_MOST_ELEMENTS = 40 * _MOST_LAYERS


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
    path: list[Any] = []  # what is read now, inside of all that is around it
    nets: list[Net] = []  # the main one, and then those around what is read now
    bodies: dict[Any, Net] = {}
    elements = layers = 0
    try:
        for event, element in iterparse(file, ("start", "end"), forbid_dtd=True):
            if event == "start":
                path.append(element)
                elements += 1
                layers += element.tag == "layer"
                _check(path, len(nets), elements, layers)
                if _is_net(path):
                    nets.append(Net())
            else:
                if element.tag == "layer":
                    _add_layer(nets[-1], element, bodies)
                elif element.tag == "edge" and path[-2].tag == "edges":
                    _add_edge(nets[-1], element)
                elif _is_net(path):
                    bodies[element] = nets.pop()
                path.pop()
    except caught(DefusedXmlException) as error:
        raise ModelError(
            "the file is no OpenVINO IR: it declares a document type or entities"
        ) from error
    except caught(ParseError, LookupError, ValueError) as error:  # or of its encoding
        raise ModelError(f"the file is no OpenVINO IR: {error}") from error
    return bodies[element]


def _is_net(path: Sequence[Any]) -> bool:
    """Whether an element is the main network, or the body of a layer."""
    return len(path) == 1 or (path[-2].tag == "layer" and path[-1].tag.endswith("body"))


def _check(path: Sequence[Any], nets: int, elements: int, layers: int) -> None:
    """Refuse what no IR has, before memory is taken for it."""
    if path[0].tag != "net":
        raise ModelError(f"the XML holds <{path[0].tag}>; expected an OpenVINO IR's <net>")
    if len(path) > _MOST_TAGS:
        raise ModelError(f"elements lie in each other more than {_MOST_TAGS} deep")
    if nets > _DEEPEST:
        raise ModelError(f"bodies lie in each other more than {_DEEPEST} deep")
    if elements > _MOST_ELEMENTS or layers > _MOST_LAYERS:
        raise ModelError(
            f"the file has more than {_MOST_LAYERS} layers, or {_MOST_ELEMENTS} elements"
        )


def _add_layer(net: Net, element: Any, bodies: dict[Any, Net]) -> None:
    """Add a layer that was read, and forget its elements."""
    layer = Layer(
        *(element.get(name, "") for name in ("id", "name", "type", "version")),
        *(dict(each.attrib) for each in element.findall("data")[-1:]),
    )
    if layer.id in net.layers:
        raise ModelError(f"two layers have the id {layer.id!r}; expected one of each")
    for ports in ("input", "output"):
        for port in element.iterfind(f"{ports}/port"):
            dims = [_size(dim.text or "") for dim in port.iterfind("dim")]
            made = Port(port.get("id", ""), port.get("precision", ""), dims)
            (layer.inputs if ports == "input" else layer.outputs).append(made)
    layer.bodies = {each.tag: bodies.pop(each) for each in element if each in bodies}
    net.layers[layer.id] = layer
    element.clear()


def _add_edge(net: Net, element: Any) -> None:
    to = element.get("to-layer", ""), element.get("to-port", "")
    if to in net.edges:
        raise ModelError(f"two edges lead to port {to[1]} of layer {to[0]}; expected one")
    net.edges[to] = element.get("from-layer", ""), element.get("from-port", "")


def _size(text: str) -> int:
    try:
        return int(text)
    except caught(ValueError) as error:
        raise ModelError(f"dim {text.strip()[:40]!r} is no int") from error
