"""Element types of outputs, from ONNX's schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from te_select.frontends.onnx_graph.nodes import DTYPES, Node
from te_select.frontends.symbolic.tensors import Tensor

_TENSOR_OF = "tensor("
_SPELLED = {"float": "float32", "double": "float64"}
_BY_ATTRIBUTE = ("to", "dtype", "output_dtype", "out_dtype")


def dtypes_of(node: Node, schema: Any, inputs: Sequence[Tensor | None]) -> list[str | None]:
    """Element types of the outputs of a node, None for each that is not known.

    Parameters
    ----------
    node
        The node.
    schema
        Its ``onnx.defs.OpSchema``.
    inputs
        What is known about its inputs.
    """
    count = len(node.proto.output)
    if node.op in ("Constant", "ConstantOfShape"):
        return [_of_value(node)] * count
    for name in _BY_ATTRIBUTE:
        if name in node.attributes and node.get(name):
            return [DTYPES.get(node.get(name))] + [None] * (count - 1)
    known: dict[str, str | None] = {}
    for formal, tensor in zip(_formals(schema.inputs, len(inputs)), inputs, strict=False):
        if tensor is not None and tensor.dtype is not None and formal.is_homogeneous:
            known.setdefault(formal.type_str, tensor.dtype)
    only = {
        constraint.type_param_str: constraint.allowed_type_strs[0]
        for constraint in schema.type_constraints
        if len(constraint.allowed_type_strs) == 1
    }
    found = []
    for formal in _formals(schema.outputs, count):
        spelled = only.get(formal.type_str, formal.type_str)
        known_here = known.get(formal.type_str) if formal.is_homogeneous else None
        found.append(known_here or _spelled(spelled))
    return found + [None] * (count - len(found))


def _formals(formals: Sequence[Any], count: int) -> list[Any]:
    """The formal parameter for each of ``count`` arguments: the last may stand for many."""
    if not formals:
        return []
    last = formals[-1]
    variadic = str(last.option).endswith("Variadic")
    extra = [last] * max(count - len(formals), 0) if variadic else []
    return [*formals, *extra][:count]


def _spelled(type_str: str) -> str | None:
    """The element type in ``tensor(int64)``; None if the type is not a tensor."""
    if not type_str.startswith(_TENSOR_OF):
        return None
    name = type_str.removeprefix(_TENSOR_OF).removesuffix(")")
    return _SPELLED.get(name, name)


def _of_value(node: Node) -> str | None:
    if "value" in node.attributes:
        return node.held.dtype
    if node.op == "ConstantOfShape":
        return "float32"
    kinds = {"value_float": "float32", "value_int": "int64", "value_string": "string"}
    for name, dtype in kinds.items():
        if name in node.attributes or f"{name}s" in node.attributes:
            return dtype
    return None
