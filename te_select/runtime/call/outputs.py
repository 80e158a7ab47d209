"""Outputs of a call: made in the kind of an input, or checked, written and marked as written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from te_select.errors import ArgumentError, DTypeError
from te_select.operator.dtypes import ElementType, numpy_dtype
from te_select.runtime.call import jax_memory
from te_select.runtime.call.extension import empty
from te_select.runtime.call.operands import Operand, is_immutable


def allocate(
    like: Any, element: ElementType, shape: tuple[int, ...]
) -> tuple[Any, Callable[[], Any]]:
    """Make an output in the kind of ``like``.

    Parameters
    ----------
    like
        An input of the call. If its library has no allocation here, the output is a NumPy array.
    element, shape
        Element type and shape of the output.

    Returns
    -------
    tuple
        New memory, and a function to call once it is filled. The function returns the caller's
        result.

    Raises
    ------
    DTypeError
        If JAX would narrow the elements.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        tensor = torch.empty(shape, dtype=getattr(torch, element.name), device="cpu")
        return tensor, lambda: tensor
    dtype = numpy_dtype(element.name)
    jax = sys.modules.get("jax")
    tvm_ffi = sys.modules.get("tvm_ffi")
    if jax is not None and isinstance(like, jax.Array):
        check_jax_keeps(dtype, "a NumPy out")
        filled: npt.NDArray[Any] = np.empty(shape, dtype)
        return filled, lambda: jax.device_put(filled, next(iter(like.devices())))
    array: npt.NDArray[Any] = empty(shape, dtype)
    # NumPy's own __dlpack__ does not know the types of ml_dtypes.
    if tvm_ffi is not None and isinstance(like, tvm_ffi.Tensor) and dtype.isbuiltin == 1:
        return array, lambda: tvm_ffi.from_dlpack(array)
    return array, lambda: array


def check_jax_keeps(dtype: np.dtype[Any], instead: str) -> None:
    """Refuse a new JAX array whose elements JAX would narrow; ``instead`` is another way to call.

    Raises
    ------
    DTypeError
        If JAX would narrow them.
    """
    if sys.modules["jax"].dtypes.canonicalize_dtype(dtype) != dtype:
        raise DTypeError(
            f"out would be a JAX array of {dtype.name}, which JAX narrows; expected "
            f"jax_enable_x64 to be on (enable jax_enable_x64), or pass {instead}"
        )


def check_writable(out: Operand, value: Any) -> None:
    """Refuse an output that cannot be written, or whose elements share memory.

    Raises
    ------
    ArgumentError
        If it is such an output.
    """
    tvm_ffi = sys.modules.get("tvm_ffi")
    wrapped = tvm_ffi is not None and isinstance(value, tvm_ffi.Tensor) and jax_memory.holds(value)
    if is_immutable(value) or wrapped:
        raise ArgumentError("out is a JAX array, which is immutable; call without out")
    if out.readonly:
        raise ArgumentError(
            f"out is a {type(value).__name__} that cannot be written (read-only, or part of "
            "torch's autograd); expected writable memory"
        )
    check_distinct(out.view.shape, out.view.strides, out.view.itemsize)


def check_distinct(shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> None:
    """Refuse an output whose elements share memory; strides and width are in bytes.

    Raises
    ------
    ArgumentError
        If elements share memory.
    """
    if 0 in shape:
        return
    span = width  # bytes from the first to past the last element of the inner axes
    axes = zip(map(abs, strides), shape, strict=True)
    for stride, extent in sorted(axis for axis in axes if axis[1] > 1):
        if stride < span:
            raise ArgumentError(
                f"out has strides {strides} in bytes for shape {shape}: its elements share "
                "memory; expected one of its own for each"
            )
        span += stride * (extent - 1)


def mark_written(out: Any) -> None:
    """Tell torch's autograd that a tensor has changed, as torch's own functions do."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(out, torch.Tensor):
        torch.autograd.graph.increment_version(out)


def is_same_memory(view: npt.NDArray[Any], out: npt.NDArray[Any]) -> bool:
    """Whether two compact arrays are exactly the same memory."""
    same: bool = view.ctypes.data == out.ctypes.data
    return same and view.nbytes == out.nbytes and view.size == out.size
