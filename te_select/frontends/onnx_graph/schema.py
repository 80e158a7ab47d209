"""What ONNX knows of its operators: functions that define them, and default attributes."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, defs, helper

from te_select.errors import caught
from te_select.frontends.onnx_graph.nodes import NUMBERS, is_default, text
from te_select.frontends.tensors import Tensor


def schema_of(node: NodeProto, opset: int) -> Any:
    """The ``onnx.defs.OpSchema`` of one of ONNX's own operators; None if it is none of them."""
    return _schema(text(node.op_type), opset) if is_default(node.domain) else None


def function_body(
    node: NodeProto, schema: Any, opset: int, inputs: Sequence[Tensor]
) -> FunctionProto | None:
    """The function by which ONNX defines an operator; None if the operator is primitive."""
    if not _fits(node, schema):
        return None
    if versions := [v for v in schema.function_opset_versions if v <= opset]:
        body = schema.get_function_with_opset_version(max(versions))
    elif versions := [v for v in schema.context_dependent_function_opset_versions if v <= opset]:
        types = [
            helper.make_tensor_type_proto(NUMBERS.get(tensor.dtype or "", 0), tensor.shape)
            for tensor in inputs
        ]
        try:
            body = schema.get_context_dependent_function_with_opset_version(
                max(versions),
                node.SerializeToString(),
                [proto.SerializeToString() for proto in types],
            )
        except caught(Exception):  # whatever a malformed node leads to
            return None
    else:
        return None
    function = FunctionProto()
    function.ParseFromString(body)
    return function


def default_attributes(schema: Any) -> list[AttributeProto]:
    """The default attributes of an operator."""
    defaults = [attribute.default_value for attribute in schema.attributes.values()]
    return [value for value in defaults if value.type != AttributeProto.UNDEFINED]


def _fits(node: NodeProto, schema: Any) -> bool:
    """Whether a node has as many inputs, and such attributes, as its operator takes."""
    return schema.min_input <= len(node.input) <= schema.max_input and all(
        each.name in schema.attributes and int(schema.attributes[each.name].type.value) == each.type
        for each in node.attribute
    )


@lru_cache(maxsize=1024)
def _schema(op_type: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset)
    except caught(Exception):  # onnx has its own kinds of errors for unknown operators
        return None
