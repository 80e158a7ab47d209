"""What ONNX knows of its operators: types and shapes of outputs, functions, default attributes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, FunctionProto, TensorProto, TypeProto, defs, numpy_helper
from onnx.shape_inference import infer_node_outputs

from te_select.frontends.onnx_graph.nodes import (
    DTYPES,
    FLOATS,
    INTS,
    NUMBERS,
    Node,
    is_default,
    text,
)
from te_select.frontends.symbolic.expressions import UNKNOWN, Dim, Expression, Scalar
from te_select.frontends.symbolic.tensors import Tensor

Inputs = Sequence[Tensor | None]
Output = tuple[str | None, Sequence[Scalar] | None]
"""Element type and dims of an output, as far as they are known."""

_MOST_BYTES = 1 << 20  # of a node that ONNX is asked about, because it copies the node
_LARGEST_INT = 1 << 16  # of an attribute: no axis, kernel or count is larger
_WRONG = ("STFT",)  # operators whose shapes ONNX infers wrongly; the node tests found no other
_UNBOUNDED = ("ends", "starts", "value_int", "value_ints")  # attributes of Slice and Constant
_MOST_DIMS = 16  # dims of an input
_LARGEST_DIM = 1 << 40


def schema_of(node: Node) -> Any:
    """The ``onnx.defs.OpSchema`` of a node; None for an operator that ONNX does not know."""
    return _schema(text(node.proto.op_type), text(node.proto.domain), node.opset)


def outputs_of(node: Node, schema: Any, inputs: Inputs) -> list[Output]:
    """What ONNX's inference says of the outputs; of a node that it refuses, the types at most.

    The inference hands on the names of dims. A dim that is arithmetic is not known to it.
    Attributes out of range have crashed it, so it is asked only about modest nodes.
    """
    if node.op in _WRONG or not _is_modest(node, schema, inputs):
        return _by_schema(node, schema, inputs)
    try:
        found = _inferred(node, schema, inputs)
    except Exception:  # onnx has its own kinds of errors
        return _by_schema(node, schema, inputs)
    with contextlib.suppress(Exception):
        if not all(tensor is None or tensor.is_literal for tensor in inputs):
            ones = _inferred(node, schema, [_of_ones(tensor) for tensor in inputs], "int64")
            return [_both(*pair) for pair in zip(found, ones, strict=True)]
    return found


def function_body(node: Node, schema: Any, inputs: Inputs) -> FunctionProto | None:
    """The function by which ONNX defines an operator; None if the operator is primitive."""
    if not _is_modest(node, schema, inputs):
        return None
    if versions := [v for v in schema.function_opset_versions if v <= node.opset]:
        return _function(schema.get_function_with_opset_version(max(versions)))
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= node.opset]
    if not versions:
        return None
    types = [TypeProto() if tensor is None else _type(tensor, {}) for tensor in inputs]
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


def _by_schema(node: Node, schema: Any, inputs: Inputs) -> list[Output]:
    """Element types by the schema alone: one that is fixed, or that of an input."""
    known: dict[str, str | None] = {}
    for constraint in schema.type_constraints:
        if len(constraint.allowed_type_strs) == 1:
            known[constraint.type_param_str] = _spelled(constraint.allowed_type_strs[0])
    for formal, tensor in zip(schema.inputs, inputs, strict=False):
        if tensor is not None and tensor.dtype is not None:
            known.setdefault(formal.type_str, tensor.dtype)
    count = len(node.proto.output)
    dtypes = [known.get(f.type_str) or _spelled(f.type_str) for f in schema.outputs[:count]]
    for name in ("to", "dtype"):
        if name in node.attributes:
            dtypes[:1] = [DTYPES.get(node.attributes[name].i)]
    return [(dtype, None) for dtype in dtypes + [None] * (count - len(dtypes))]


def _spelled(type_str: str) -> str | None:
    """The element type in ``tensor(int64)``; None if the type is not a tensor."""
    name = type_str.removeprefix("tensor(").removesuffix(")").upper()
    return DTYPES.get(dict(TensorProto.DataType.items()).get(name, 0))


def _of_ones(tensor: Tensor | None) -> Tensor | None:
    """A tensor whose named dims are 1, which broadcasts with everything."""
    if tensor is None or tensor.shape is None:
        return tensor
    ones = tuple(1 if isinstance(dim, Expression) else dim for dim in tensor.shape)
    return replace(tensor, shape=ones)


def _both(found: Output, ones: Output) -> Output:
    """What holds whatever the unknown types and dims are: ONNX may take a named dim for 0."""
    (dtype, dims), (other, sizes) = found, ones
    if dims is not None and sizes is not None:
        pairs = zip(dims, sizes, strict=True)
        dims = [UNKNOWN if isinstance(p, int) and (p != q or not p) else p for p, q in pairs]
    return (dtype if dtype == other else None), dims


def _inferred(node: Node, schema: Any, inputs: Inputs, unknown: str = "float32") -> list[Output]:
    """One inference; ``unknown`` stands for each element type that is not known."""
    names: dict[Dim, str] = {}
    types, data = {}, {}
    for name, tensor in zip(node.proto.input, inputs, strict=True):
        if tensor is not None:
            types[name] = _type(tensor, names, unknown)
            if (held := _data(tensor)) is not None:
                data[name] = held
    found = infer_node_outputs(schema, node.proto, types, data)
    dims = {name: dim for dim, name in names.items()}
    return [_output(found.get(name, TypeProto()), dims) for name in node.proto.output]


def _type(tensor: Tensor, names: dict[Dim, str], unknown: str = "") -> TypeProto:
    """The type of a tensor in ONNX's form; adds a name for each expression in it."""
    proto = TypeProto()
    proto.tensor_type.elem_type = NUMBERS.get(tensor.dtype or unknown, 0)
    if tensor.shape is not None:
        shape = proto.tensor_type.shape
        shape.SetInParent()
        for dim in tensor.shape:
            if isinstance(dim, Expression):
                shape.dim.add().dim_param = names.setdefault(dim, str(len(names)))
            else:
                shape.dim.add().dim_value = dim
    return proto


def _data(tensor: Tensor) -> TensorProto | None:
    """The elements of a tensor in ONNX's form, if they may be axes or counts."""
    if tensor.values is None or tensor.dtype not in (*INTS, *FLOATS):
        return None
    if not all(isinstance(v, int | float) and abs(v) <= _LARGEST_INT for v in tensor.values.flat):
        return None
    return numpy_helper.from_array(tensor.values.astype(tensor.dtype))


def _output(proto: TypeProto, dims: dict[str, Dim]) -> Output:
    tensor = proto.tensor_type
    dtype = DTYPES.get(tensor.elem_type)
    if not tensor.HasField("shape"):
        return dtype, None
    return dtype, [
        dim.dim_value if dim.HasField("dim_value") else dims.get(dim.dim_param, UNKNOWN)
        for dim in tensor.shape.dim
    ]


def _function(body: bytes) -> FunctionProto:
    function = FunctionProto()
    function.ParseFromString(body)
    return function


def _is_modest(node: Node, schema: Any, inputs: Inputs) -> bool:
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
        numbers = () if attribute.name in _UNBOUNDED else (attribute.i, *attribute.ints)
        if any(abs(value) > _LARGEST_INT for value in numbers):
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
