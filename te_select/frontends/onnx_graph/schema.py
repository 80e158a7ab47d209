"""ONNX's schemas of operators: their functions and default attributes.

ONNX's own shape inference is not used. It sometimes takes an unknown dim for 0, and attributes out
of range have crashed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, FunctionProto, TypeProto, defs

from te_select.frontends.onnx_graph.nodes import NUMBERS, Node, is_default, text
from te_select.frontends.symbolic.expressions import Expression
from te_select.frontends.symbolic.tensors import Tensor

_MOST_BYTES = 1 << 20  # of a node for which ONNX makes a function, because it copies the node
_LARGEST_INT = 1 << 16  # of an attribute: no axis, kernel or count is larger
_MOST_DIMS = 16  # dims of an input
_LARGEST_DIM = 1 << 40


def schema_of(node: Node) -> Any:
    """The ``onnx.defs.OpSchema`` of a node; None for an operator that ONNX does not know."""
    return _schema(text(node.proto.op_type), text(node.proto.domain), node.opset)


def function_body(node: Node, schema: Any, inputs: Sequence[Tensor | None]) -> FunctionProto | None:
    """The function by which ONNX defines an operator; None if the operator is primitive."""
    if not _is_modest(node, schema, inputs):
        return None
    if versions := [v for v in schema.function_opset_versions if v <= node.opset]:
        return _function(schema.get_function_with_opset_version(max(versions)))
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= node.opset]
    if not versions:
        return None
    types = [TypeProto() if tensor is None else _type(tensor) for tensor in inputs]
    try:
        body = schema.get_context_dependent_function_with_opset_version(
            max(versions),
            node.proto.SerializeToString(),
            [proto.SerializeToString() for proto in types],
        )
    except Exception:  # whatever a malformed node leads to
        return None
    return _function(body)


def default_attributes(schema: Any) -> list[AttributeProto]:
    """The default attributes of an operator."""
    defaults = [attribute.default_value for attribute in schema.attributes.values()]
    return [value for value in defaults if value.type != AttributeProto.UNDEFINED]


def _type(tensor: Tensor) -> TypeProto:
    """The type of a tensor, in ONNX's form."""
    proto = TypeProto()
    proto.tensor_type.elem_type = NUMBERS.get(tensor.dtype or "", 0)
    if tensor.shape is not None:
        shape = proto.tensor_type.shape
        shape.SetInParent()
        for dim in tensor.shape:
            if isinstance(dim, Expression):
                shape.dim.add().dim_param = str(dim)
            else:
                shape.dim.add().dim_value = dim
    return proto


def _function(body: bytes) -> FunctionProto:
    function = FunctionProto()
    function.ParseFromString(body)
    return function


def _is_modest(node: Node, schema: Any, inputs: Sequence[Tensor | None]) -> bool:
    """Whether a node fits its schema and has no absurdly large number."""
    proto = node.proto
    if not schema.min_input <= len(proto.input) <= schema.max_input:
        return False
    if not schema.min_output <= len(proto.output) <= schema.max_output:
        return False
    for attribute in proto.attribute:
        formal = schema.attributes.get(text(attribute.name))
        if formal is None or int(formal.type.value) != attribute.type:
            return False
        if any(abs(value) > _LARGEST_INT for value in (attribute.i, *attribute.ints)):
            return False
    for tensor in inputs:
        dims = () if tensor is None or tensor.shape is None else tensor.shape
        if len(dims) > _MOST_DIMS or any(d > _LARGEST_DIM for d in dims if isinstance(d, int)):
            return False
    return bool(proto.ByteSize() <= _MOST_BYTES)


@lru_cache(maxsize=1024)
def _schema(op_type: str, domain: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset, "" if is_default(domain) else domain)
    except Exception:  # onnx has its own kinds of errors for unknown operators
        return None
