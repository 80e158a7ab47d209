"""Nodes of ONNX graphs: their attributes and bodies, and the element types of ONNX by name."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, GraphProto, NodeProto, OperatorSetIdProto, TensorProto, defs

from te_select.errors import caught
from te_select.operator.systems import TYPE_NAMES

DTYPES: dict[int, str] = {
    number: TYPE_NAMES["onnx"].get(name.lower(), name.lower())
    for name, number in TensorProto.DataType.items()
    if number != TensorProto.UNDEFINED
}


def operator_of(node: NodeProto) -> str:
    """Type of a node's operator, with its domain unless that is ONNX's own."""
    domain, op = text(node.domain), text(node.op_type)
    return op if is_default(domain) else f"{domain}::{op}"


def bodies(node: NodeProto) -> list[tuple[str, GraphProto]]:
    """The graphs among the attributes of a node, by attribute."""
    found = []
    for each in node.attribute:
        if each.HasField("g"):
            found.append((each.name, each.g))
        found += [(f"{each.name}[{i}]", graph) for i, graph in enumerate(each.graphs)]
    return found


def text(value: str | bytes) -> str:
    """A string of the file; protobuf leaves it as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def is_default(domain: str) -> bool:
    """Whether a domain is ONNX's own."""
    return domain in ("", "ai.onnx")


def opset_of(imports: Iterable[OperatorSetIdProto]) -> int:
    """Version of ONNX's own operators; 0 if they are not imported."""
    return next((each.version for each in reversed(list(imports)) if is_default(each.domain)), 0)


def schema_of(node: NodeProto, opset: int) -> Any:
    """The ``onnx.defs.OpSchema`` of one of ONNX's own operators; None if it is none of them."""
    return _schema(text(node.op_type), opset) if is_default(node.domain) else None


@lru_cache(maxsize=1024)
def _schema(op_type: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset)
    except caught(Exception):  # onnx has its own kinds of errors for unknown operators
        return None


def with_given(node: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    """Replace references to attributes of a function call by these attributes."""
    if not any(each.ref_attr_name for each in node.attribute):
        return node
    filled = NodeProto()
    filled.CopyFrom(node)
    del filled.attribute[:]
    for each in node.attribute:
        value = given.get(each.ref_attr_name) if each.ref_attr_name else each
        if value is not None:
            filled.attribute.add().CopyFrom(value)
            filled.attribute[-1].name = each.name
    return filled


def reads(node: NodeProto) -> set[str]:
    """The names of the tensors that a node and its bodies read."""
    names = set(node.input)
    for _, body in bodies(node):
        own = {info.name for info in body.input} | {tensor.name for tensor in body.initializer}
        own |= {name for inner in body.node for name in inner.output}
        names |= set().union(*map(reads, body.node)) - own
    return names
