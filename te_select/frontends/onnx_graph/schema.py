"""ONNX's own shape inference, node by node, with our expressions carried through it as names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, TypeProto, defs, shape_inference

from te_select.frontends.onnx_graph.nodes import DTYPES, NUMBERS, Node, is_default, to_proto
from te_select.frontends.symbolic.expressions import UNKNOWN, Expression, Scalar
from te_select.frontends.symbolic.tensors import Tensor

_MOST_BYTES = 1 << 20  # of a node that is handed over: it is copied for that

TypeAndDims = tuple[str | None, tuple[Scalar, ...] | None]


class SchemaInference:
    """ONNX's inference of types and shapes, one node at a time."""

    def __init__(self) -> None:
        self._expressions: dict[str, Expression] = {}

    def infer(self, node: Node, inputs: Sequence[Tensor | None]) -> list[TypeAndDims]:
        """Ask ONNX for the outputs of a node.

        Parameters
        ----------
        node
            The node.
        inputs
            What is known of its inputs; None for one that is left out.

        Returns
        -------
        list
            Element type and dims of each output, None where not known; empty where ONNX does not
            know the operator, or finds a fault with the node.
        """
        schema = _schema(node.proto.op_type, node.proto.domain, node.opset)
        if schema is None or not schema.has_type_and_shape_inference_function:
            return []
        if node.proto.ByteSize() > _MOST_BYTES:
            return []
        named = onnx.NodeProto()
        named.CopyFrom(node.proto)
        types, data = {}, {}
        for i, tensor in enumerate(inputs):
            if tensor is None:
                continue
            named.input[i] = name = f"i{i}"
            types[name] = self.type(tensor)
            if (proto := to_proto(tensor)) is not None:
                data[name] = proto
        for i in range(len(named.output)):
            named.output[i] = f"o{i}"
        try:
            found = shape_inference.infer_node_outputs(schema, named, types, data)
        except Exception:  # whatever a malformed node leads to: then nothing is known
            return []
        return [self._read(found.get(f"o{i}")) for i in range(len(named.output))]

    def type(self, tensor: Tensor) -> TypeProto:
        """A tensor as ONNX describes it."""
        proto = TypeProto()
        proto.tensor_type.elem_type = NUMBERS.get(tensor.dtype or "", 0)
        if tensor.shape is not None:
            shape = proto.tensor_type.shape
            shape.SetInParent()
            for dim in tensor.shape:
                if isinstance(dim, Expression):
                    text = str(dim)
                    self._expressions[text] = dim
                    shape.dim.add().dim_param = text
                else:
                    shape.dim.add().dim_value = dim
        return proto

    def _read(self, proto: TypeProto | None) -> TypeAndDims:
        if proto is None or not proto.HasField("tensor_type"):
            return None, None
        tensor = proto.tensor_type
        dtype = DTYPES.get(tensor.elem_type)
        if not tensor.HasField("shape"):
            return dtype, None
        return dtype, tuple(self._dim(dim) for dim in tensor.shape.dim)

    def _dim(self, dim: onnx.TensorShapeProto.Dimension) -> Scalar:
        if dim.HasField("dim_value"):
            return dim.dim_value
        return self._expressions.get(dim.dim_param, UNKNOWN)


def function_body(node: Node, inputs: Sequence[Tensor | None]) -> FunctionProto | None:
    """The function by which ONNX defines an operator; None where it is a primitive one."""
    schema = _schema(node.proto.op_type, node.proto.domain, node.opset)
    if schema is None:
        return None
    if versions := [v for v in schema.function_opset_versions if v <= node.opset]:
        text = schema.get_function_with_opset_version(max(versions))
        return _function(text)
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= node.opset]
    if not versions:
        return None
    types = [TypeProto() if tensor is None else SchemaInference().type(tensor) for tensor in inputs]
    try:
        text = schema.get_context_dependent_function_with_opset_version(
            max(versions),
            node.proto.SerializeToString(),
            [proto.SerializeToString() for proto in types],
        )
    except Exception:  # whatever a malformed node leads to
        return None
    return _function(text)


def _function(text: bytes) -> FunctionProto:
    function = FunctionProto()
    function.ParseFromString(text)
    return function


def default_attributes(node: Node) -> list[AttributeProto]:
    """The attributes that an operator has where its node has none."""
    schema = _schema(node.proto.op_type, node.proto.domain, node.opset)
    attributes = [] if schema is None else schema.attributes.values()
    defaults = [attribute.default_value for attribute in attributes]
    return [value for value in defaults if value.type != AttributeProto.UNDEFINED]


@lru_cache(maxsize=1024)
def _schema(op_type: str, domain: str, opset: int) -> Any:
    try:
        return defs.get_schema(op_type, opset, "" if is_default(domain) else domain)
    except Exception:  # onnx has its own kinds of error for an operator that it does not know
        return None
