"""Outputs of a CUDA kernel: made in the kind of an input on its device, or checked and written."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import tvm_ffi

from te_select.errors import ArgumentError
from te_select.operator.dtypes import ElementType, numpy_dtype
from te_select.runtime.call import outputs
from te_select.runtime.call.cuda import driver
from te_select.runtime.call.cuda.device_array import DeviceArray
from te_select.runtime.call.cuda.operands import DeviceOperand, handed_over, torch_bits


class Output(NamedTuple):
    """Where a kernel writes.

    Parameters
    ----------
    value
        A compact tensor that tvm-ffi takes.
    library
        The library of the memory, as in `DeviceOperand`.
    finish
        Called after the launch; it returns the caller's result.
    """

    value: Any
    library: str
    finish: Callable[[], Any]


def allocate(
    like: Any, operand: DeviceOperand, element: ElementType, shape: tuple[int, ...], stream: int
) -> Output:
    """Make an output in the kind of an input.

    Parameters
    ----------
    like, operand
        The input that the caller passed, and its description.
    element, shape
        Element type and shape of the output.
    stream
        The stream on which the kernel will run.

    Returns
    -------
    Output
        New memory on the input's device. If the input's library cannot allocate, it is a tensor of
        tvm-ffi.

    Raises
    ------
    DTypeError
        If JAX would narrow the elements.
    """
    if operand.library == "torch":
        torch = sys.modules["torch"]
        tensor = torch.empty(shape, dtype=getattr(torch, element.name), device=like.device)
        return Output(torch_bits(tensor, element.width), "torch", lambda: tensor)
    if operand.library == "cupy":
        with like.device:
            array = sys.modules["cupy"].empty(shape, numpy_dtype(element.name))
        return Output(handed_over(array, stream), "cupy", lambda: array)
    if operand.library == "jax":
        # Nobody else has seen this array, so writing to it breaks no promise of JAX.
        dtype = numpy_dtype(element.name)
        outputs.check_jax_keeps(dtype, "a CUDA tensor of another library")
        where = next(iter(like.devices()))
        new = sys.modules["jax"].numpy.empty(shape, dtype, device=where).block_until_ready()
        return Output(tvm_ffi.from_dlpack(new), "jax", lambda: new)
    try:
        memory = DeviceArray.empty(element, shape, operand.device)
    except driver.CudaError as error:
        raise ArgumentError(
            f"out, {math.prod(shape) * element.width} bytes on CUDA device {operand.device}, "
            f"cannot be allocated: {error}"
        ) from error
    made = tvm_ffi.from_dlpack(memory)
    return Output(made, "dlpack", lambda: made)


def given(
    out: Any, operand: DeviceOperand, inputs: list[DeviceOperand], width: int, stream: int
) -> Output:
    """Check an output; if the kernel cannot write to it, use a copy instead.

    Parameters
    ----------
    out, operand
        The output that the caller passed, and its description.
    inputs
        Cond, then and else_.
    width
        Bytes of an element.
    stream
        The stream on which the kernel will run.

    Returns
    -------
    Output
        The tensor itself, or another one whose elements are copied to it at the end.

    Raises
    ------
    ArgumentError
        If it cannot be written, its elements share memory, or it needs a copy and its library
        cannot make one.
    """
    if operand.library == "jax":
        raise ArgumentError("out is a JAX array, which is immutable; call without out")
    if operand.readonly:
        raise ArgumentError(
            f"out is a {type(out).__name__} that cannot be written (read-only, or part of "
            "torch's autograd); expected writable memory"
        )
    outputs.check_distinct(operand.shape, operand.strides, width)

    def finish() -> Any:
        outputs.mark_written(out)
        return out

    if operand.is_compact(width) and not any(
        _overlaps(operand, other, width, is_cond=i == 0) for i, other in enumerate(inputs)
    ):
        return Output(operand.value, operand.library, finish)
    if operand.library == "torch":
        torch = sys.modules["torch"]
        copied = torch.empty(operand.shape, dtype=out.dtype, device=out.device)
        return Output(torch_bits(copied, width), "torch", lambda: out.copy_(copied))
    if operand.library == "cupy":
        with out.device:
            made = sys.modules["cupy"].empty(operand.shape, out.dtype)

        def assign() -> Any:
            out[...] = made
            return out

        return Output(handed_over(made, stream), "cupy", assign)
    raise ArgumentError(
        f"out has strides {operand.strides} in bytes for shape {operand.shape}, or overlaps an "
        "input in part; expected compact memory of its own, or exactly that of then or else_"
    )


def _overlaps(out: DeviceOperand, other: DeviceOperand, width: int, *, is_cond: bool) -> bool:
    """Whether an input shares memory with a compact out without being exactly the same elements."""
    if other.device != out.device or 0 in out.shape or 0 in other.shape:
        return False
    size = 1 if is_cond else width
    reach = [
        stride * (extent - 1) for stride, extent in zip(other.strides, other.shape, strict=True)
    ]
    begin = other.address + sum(min(step, 0) for step in reach)
    end = other.address + sum(max(step, 0) for step in reach) + size
    out_end = out.address + width * math.prod(out.shape)
    if end <= out.address or out_end <= begin:
        return False
    # A strided input was copied, so the kernel does not read from out.
    if not other.is_compact(size):
        return False
    return is_cond or other.address != out.address or math.prod(other.shape) != math.prod(out.shape)
