"""The networks, layers, ports and edges of an IR file, from its XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ErrorString

from te_select.errors import ModelError, ToolchainError

_DEEPEST = 32  # nested bodies
_MOST_LAYERS = 100_000
MOST_ELEMENTS = 3_000_000  # more than a file of the largest size has, if it is a model
_TAGS_OF_NET = 2  # <net> and <layers>, or <net> and <edges>
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
    dims: tuple[int, ...] = ()


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
    maps
        How ports are connected with layers of the bodies: tag, direction and attributes.
    carried
        Ids of the layers of a body whose values come from the trip before.
    """

    id: str
    name: str
    type: str
    version: str
    data: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: dict[str, Net] = field(default_factory=dict)
    maps: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    carried: set[str] = field(default_factory=set)


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
    ToolchainError
        If the defusedxml package is missing.
    """
    try:
        import defusedxml.ElementTree  # noqa: PLC0415 - optional
        from defusedxml.common import DefusedXmlException  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ToolchainError(
            "OpenVINO IR files are read with defusedxml; pip install 'te-select[models]'"
        ) from error
    try:
        return _read(defusedxml.ElementTree.iterparse(file, ("start", "end"), forbid_dtd=True))
    except DefusedXmlException as error:
        raise ModelError(
            "the file is no OpenVINO IR: it declares a document type or entities"
        ) from error
    except ParseError as error:
        said = f"line {error.position[0]}: {ErrorString(error.code)}"
        raise ModelError(f"the file is no OpenVINO IR: {said}") from error
    except (LookupError, ValueError) as error:  # its encoding
        raise ModelError(f"the file is no OpenVINO IR: {error}") from error


def _read(events: Iterable[tuple[str, Element]]) -> Net:
    """Build the main network while the XML is read; of the XML, one layer at a time is kept."""
    net, around, elements, layers = Net(), list[Element](), 0, 0
    for event, element in events:
        if event == "end":
            around.pop()
            if len(around) == _TAGS_OF_NET:
                _add(net, element, 0)
                around[-1].clear()
            continue
        if not around and element.tag != "net":
            raise ModelError(f"the XML holds <{element.tag}>; expected an OpenVINO IR's <net>")
        around.append(element)
        elements += 1
        layers += element.tag == "layer"
        if len(around) > _MOST_TAGS:
            raise ModelError(f"elements lie in each other more than {_MOST_TAGS} deep")
        if layers > _MOST_LAYERS:
            raise ModelError(f"the file has more than {_MOST_LAYERS} layers")
        if elements > MOST_ELEMENTS:
            raise ModelError(f"the file has more than {MOST_ELEMENTS} elements")
    return net


def _add(net: Net, element: Element, depth: int) -> None:
    """Add a layer or an edge to a network that lies in ``depth`` others."""
    if element.tag == "layer":
        layer = _layer(element, depth)
        if layer.id in net.layers:
            raise ModelError(f"two layers have the id {layer.id!r}; expected one of each")
        net.layers[layer.id] = layer
    elif element.tag == "edge":
        to = element.get("to-layer", ""), element.get("to-port", "")
        if to in net.edges:
            raise ModelError(f"two edges lead to port {to[1]} of layer {to[0]}; expected one")
        net.edges[to] = element.get("from-layer", ""), element.get("from-port", "")


def _layer(element: Element, depth: int) -> Layer:
    said = element.get
    layer = Layer(said("id", ""), said("name", ""), said("type", ""), said("version", ""))
    for part in element:
        if part.tag == "data":
            layer.data = part.attrib
        elif part.tag == "input":
            layer.inputs += map(_port, part.iterfind("port"))
        elif part.tag == "output":
            layer.outputs += map(_port, part.iterfind("port"))
        elif part.tag.endswith("port_map"):
            layer.maps += [(part.tag, entry.tag, entry.attrib) for entry in part]
        elif part.tag == "back_edges":
            layer.carried |= {edge.get("to-layer", "") for edge in part.iterfind("edge")}
        elif part.tag.endswith("body"):
            if depth >= _DEEPEST:
                raise ModelError(f"bodies lie in each other more than {_DEEPEST} deep")
            layer.bodies[part.tag] = Net()
            for inside in (*part.iterfind("layers/layer"), *part.iterfind("edges/edge")):
                _add(layer.bodies[part.tag], inside, depth + 1)
    return layer


def _port(element: Element) -> Port:
    dims = tuple(_int(dim.text or "", "dim") for dim in element.iterfind("dim"))
    return Port(element.get("id", ""), element.get("precision", ""), dims)


def _int(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ModelError(f"{what} {text.strip()[:40]!r} is no int") from error
