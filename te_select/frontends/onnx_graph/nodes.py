"""A node of an ONNX graph with its attributes, and the element types of ONNX by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from te_select.frontends.symbolic.tensors import Tensor, Values
from te_select.operator.systems import TYPE_NAMES

DTYPES: dict[int, str] = {
    number: TYPE_NAMES["onnx"].get(name.lower(), name.lower())
    for name, number in TensorProto.DataType.items()
    if number != TensorProto.UNDEFINED
}
NUMBERS = {name: number for number, name in DTYPES.items()}
INTS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
FLOATS = ("float32", "float64", "float16")
MOST_VALUES = 1024  # elements of a tensor whose values are followed
_DEFAULT_DOMAINS = ("", "ai.onnx")


class Node:
    """A node; its attributes are read when they are used.

    Parameters
    ----------
    proto
        The node.
    opset
        Version of its domain's operator set; 0 if the file does not import it.
    given
        The attributes of the function call in which the node stands.
    """

    def __init__(
        self, proto: NodeProto, opset: int, given: Mapping[str, AttributeProto] | None = None
    ) -> None:
        self.proto = _with_given(proto, given) if given is not None else proto
        self.opset = opset

    @cached_property
    def op(self) -> str:
        """Type of the operator, with its domain unless that is ONNX's own."""
        domain, op = text(self.proto.domain), text(self.proto.op_type)
        return op if is_default(domain) else f"{domain}::{op}"

    @cached_property
    def attributes(self) -> dict[str, AttributeProto]:
        """The attributes by name."""
        return {attribute.name: attribute for attribute in self.proto.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or the default."""
        attribute = self.attributes.get(name)
        return default if attribute is None else helper.get_attribute_value(attribute)

    @property
    def bodies(self) -> list[tuple[str, GraphProto]]:
        """The graphs among its attributes, with their names in places."""
        return bodies(self.proto)


def bodies(proto: NodeProto) -> list[tuple[str, GraphProto]]:
    """The graphs among the attributes of a node, by attribute."""
    found = []
    for attribute in proto.attribute:
        if attribute.HasField("g"):
            found.append((attribute.name, attribute.g))
        found += [(f"{attribute.name}[{i}]", graph) for i, graph in enumerate(attribute.graphs)]
    return found


def text(value: str | bytes) -> str:
    """A string of the file; protobuf leaves it as bytes if it is not UTF-8."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def is_default(domain: str) -> bool:
    """Whether a domain is ONNX's own."""
    return domain in _DEFAULT_DOMAINS


def tensor_of(proto: TensorProto) -> Tensor:
    """What is known about a tensor in the file; its data is read if it is small."""
    dtype, shape = DTYPES.get(proto.data_type), tuple(proto.dims)
    values = None
    if math.prod(shape) <= MOST_VALUES and proto.data_location != TensorProto.EXTERNAL:
        values = _values(proto, dtype)
    return Tensor(dtype, shape, values, constant=True)


def _values(proto: TensorProto, dtype: str | None) -> Values | None:
    if dtype not in (*INTS, *FLOATS):
        return None
    try:
        return numpy_helper.to_array(proto).astype(object)
    except Exception:  # malformed data may raise any error
        return None


def _with_given(proto: NodeProto, given: Mapping[str, AttributeProto]) -> NodeProto:
    """Replace references to attributes of a function call by these attributes."""
    if not any(attribute.ref_attr_name for attribute in proto.attribute):
        return proto
    filled = onnx.NodeProto()
    filled.CopyFrom(proto)
    del filled.attribute[:]
    for attribute in proto.attribute:
        value = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if value is not None:
            filled.attribute.add().CopyFrom(value)
            filled.attribute[-1].name = attribute.name
    return filled
