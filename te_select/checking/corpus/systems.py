"""The rules of the systems whose cases the corpus holds: from an operator's name to a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from te_select.errors import ArgumentError, BroadcastError
from te_select.operator.broadcast import Dim, format_shape
from te_select.operator.workload import Workload

Dims = tuple[Dim, ...]

_NUMERIC = ("f16", "f32", "f64", "i8", "u8", "i32", "i64")
_FIRST_OPSET, _BFLOAT16_OPSET = 9, 16


@dataclass(frozen=True)
class System:
    """How one system's Select becomes a workload.

    Parameters
    ----------
    make
        Makes the workload from the three shapes, the element type and the attributes.
    numeric_cond
        Numeric types of cond that are legal, and true where they are not 0.
    rejected
        Whether te-select rejects what the file calls ok, for a rule that the system has given up.
    """

    make: Callable[[Dims, Dims, Dims, str, Mapping[str, Any]], Workload]
    numeric_cond: tuple[str, ...] = ()
    rejected: bool = False


def system(op: str) -> System:
    """Find the system of an operator.

    Parameters
    ----------
    op
        The field ``op`` of a case.

    Returns
    -------
    System
        Its rules.

    Raises
    ------
    ArgumentError
        If the operator is not known.
    """
    try:
        return _SYSTEMS[op]
    except KeyError:
        raise ArgumentError(
            f"op {op!r} is not known; expected one of {', '.join(_SYSTEMS)}"
        ) from None


def _onnx(opset: int) -> Callable[..., Workload]:
    def make(cond: Dims, then: Dims, else_: Dims, dtype: str, attrs: Mapping[str, Any]) -> Workload:
        return Workload.onnx_where(cond, then, else_, dtype, attrs.get("opset", opset))

    return make


def _openvino(
    cond: Dims, then: Dims, else_: Dims, dtype: str, attrs: Mapping[str, Any]
) -> Workload:
    rule, axis = attrs.get("auto_broadcast", "numpy"), attrs.get("axis", -1)
    return Workload.openvino_select(cond, then, else_, dtype, rule, axis)


def _onednn_graph(
    cond: Dims, then: Dims, else_: Dims, dtype: str, attrs: Mapping[str, Any]
) -> Workload:
    rule = attrs.get("auto_broadcast", "numpy")
    return Workload.onednn_select(cond, then, else_, dtype, rule)


def _onednn_binary(
    cond: Dims, then: Dims, else_: Dims, dtype: str, attrs: Mapping[str, Any]
) -> Workload:
    """One rank, and then and else alone make the output: two-step, but for extending ranks."""
    if not len(cond) == len(then) == len(else_):
        raise BroadcastError(
            f"oneDNN binary_select wants one rank: cond is {format_shape(cond)}, then is "
            f"{format_shape(then)}, else_ is {format_shape(else_)}"
        )
    workload = Workload(cond, then, else_, dtype, "numpy")
    declared = tuple(attrs.get("dst_shape", workload.out_shape))
    if declared != workload.out_shape:
        raise BroadcastError(
            f"dst is {format_shape(declared)}, expected {format_shape(workload.out_shape)}"
        )
    return workload


def _lax_select(
    cond: Dims, then: Dims, else_: Dims, dtype: str, _attrs: Mapping[str, Any]
) -> Workload:
    """Cond is a scalar or has the one shape of then and else."""
    if then != else_ or cond not in ((), then):
        raise BroadcastError(
            f"jax.lax.select wants then and else of one shape, and cond of that shape or a scalar: "
            f"cond is {format_shape(cond)}, then is {format_shape(then)}, else_ is "
            f"{format_shape(else_)}"
        )
    return Workload(cond, then, else_, dtype, "numpy")


def _multidirectional(
    cond: Dims, then: Dims, else_: Dims, dtype: str, _attrs: Mapping[str, Any]
) -> Workload:
    return Workload(cond, then, else_, dtype, "multidirectional")


_SYSTEMS = {
    "onnx.Where-9": System(_onnx(_FIRST_OPSET)),
    "onnx.Where-16": System(_onnx(_BFLOAT16_OPSET)),
    "openvino.Select-1": System(_openvino),
    "openvino.gpu_select_primitive": System(_openvino, _NUMERIC),
    # In 2020 the base of pdpd was else; today it is then, so what was legal must be refused.
    "ngraph.legacy_Select-1": System(_openvino, rejected=True),
    "onednn_graph.Select": System(_onednn_graph),
    "onednn.binary_select": System(_onednn_binary, ("s8",)),
    "numpy.where": System(_multidirectional, _NUMERIC),
    "torch.where": System(_multidirectional),
    "jax.numpy.where": System(_multidirectional),
    "jax.lax.select": System(_lax_select),
    "tvm.relax.where": System(_multidirectional),
    "tinygrad.where": System(_multidirectional),
}
