"""What differs in calls of CUDA kernels: their operands lie on a device, and stay there.

Nothing here reads a tensor's memory. Operands of rank 0 may be in memory of the CPU; their values
go with the launch.
"""

import math
import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm_ffi

from te_select.errors import ArgumentError, is_a
from te_select.operator.dtypes import ElementType, numpy_dtype
from te_select.runtime.call import dlpack
from te_select.runtime.call.cuda import driver
from te_select.runtime.call.cuda.device_array import DeviceArray
from te_select.runtime.call.device import (
    ON_HOST,
    Device,
    New,
    Operand,
    check_jax_keeps,
    is_apart,
    viewed,
)

_DEFAULT_STREAM = 0
_NOTHING: npt.NDArray[Any] = np.empty(0)
_TORCH_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


class CudaDevice(Device):
    """A CUDA device, on the current stream of the library whose tensors are passed."""

    words, of_torch = "a CUDA device", "cuda"
    of_dlpack = dlpack.CUDA_DEVICES
    accepted = "a tensor on a CUDA device"
    advice = ": pass torch.as_tensor({}, device='cuda')"

    def __init__(self, values: Collection[Any]) -> None:
        self.launched_on = self._current_stream(values)
        self.stream = self.launched_on or None  # handle 0 is None to DLPack

    def library_of(self, value: Any) -> str:
        """The library of a tensor on a device, or ``"dlpack"`` if it is none that we know."""
        if is_a(value, "torch.Tensor"):
            return "torch"
        if is_a(value, "jax.Array"):
            return "jax"
        return "cupy" if type(value).__module__.partition(".")[0] == "cupy" else "dlpack"

    def taken(self, found: Operand, given: Any, name: str, width: int) -> Any:
        """See `Device.taken`; strided memory is copied by the operand's library."""
        if found.library == "torch":
            return torch_bits(found.value if name == "out" else found.value.contiguous(), width)
        if name == "out" or viewed(found, width).flags.c_contiguous:
            return tvm_ffi.from_dlpack(found.value)
        if found.library != "cupy":
            strides = tuple(stride // width for stride in found.strides)
            raise ArgumentError(
                f"{name} has strides {strides} for shape {found.shape}; expected C-contiguous "
                f"memory, for {type(given).__name__} cannot be copied here"
            )
        return self._handed_over(sys.modules["cupy"].ascontiguousarray(given))

    def new(self, like: Any, device: int, element: ElementType, shape: tuple[int, ...]) -> New:
        """See `Device.new`; a tensor of tvm-ffi if the input's library cannot allocate."""
        if like is None:
            raise ArgumentError(
                "no operand is on a CUDA device, so out cannot be allocated; pass out"
            )
        library = self.library_of(like)
        dtype = numpy_dtype(element.name)
        if library == "cupy":
            with like.device:
                array = sys.modules["cupy"].empty(shape, dtype)
            return array, lambda: array
        if library == "jax":
            # Nobody else has seen this array, so writing to it breaks no promise of JAX.
            check_jax_keeps(dtype, "a CUDA tensor of another library")
            where = next(iter(like.devices()))
            made = sys.modules["jax"].numpy.empty(shape, dtype, device=where)
            return made, lambda: made
        try:
            memory = DeviceArray.empty(element, shape, device)
        except driver.CudaError as error:
            raise ArgumentError(
                f"out, {math.prod(shape) * element.width} bytes on CUDA device {device}, "
                f"cannot be allocated: {error}"
            ) from error
        tensor = tvm_ffi.from_dlpack(memory)
        return tensor, lambda: tensor

    def may_write(self, out: Operand, inputs: Sequence[Operand], width: int) -> bool:
        """See `Device.may_write`."""
        views = []
        for k, each in enumerate(inputs):
            there = each.library != ON_HOST and each.device == out.device
            view = viewed(each, width if k else 1) if there else _NOTHING
            # A strided input was copied, so the kernel does not read from out.
            views.append(view if view.flags.c_contiguous else _NOTHING)
        return is_apart(viewed(out, width), views)

    def instead(self, out: Any, found: Operand, width: int) -> New:
        """See `Device.instead`."""
        if found.library == "torch":
            copied = sys.modules["torch"].empty(found.shape, dtype=out.dtype, device=out.device)
            return torch_bits(copied, width), lambda: out.copy_(copied)
        if found.library == "cupy":
            with out.device:
                made = sys.modules["cupy"].empty(found.shape, out.dtype)

            def assign() -> Any:
                out[...] = made
                return out

            return self._handed_over(made), assign
        raise ArgumentError(
            f"out has strides {found.strides} in bytes for shape {found.shape}, or overlaps an "
            "input in part; expected compact memory of its own, or exactly that of then or else_"
        )

    def _current_stream(self, values: Collection[Any]) -> int:
        """The current stream of the tensors' library, or else the stream that tvm-ffi was given."""
        for value in values:
            library = self.library_of(value)
            if library == "torch" and value.is_cuda:
                stream: int = sys.modules["torch"].cuda.current_stream(value.device).cuda_stream
                return stream
            if library == "cupy":
                with value.device:
                    pointer: int = sys.modules["cupy"].cuda.get_current_stream().ptr
                return pointer
        for value in values:
            if hasattr(value, "__dlpack_device__"):
                kind, index = (int(number) for number in value.__dlpack_device__())
                if kind in dlpack.CUDA_DEVICES:
                    return int(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", index)) or 0)
        return _DEFAULT_STREAM

    def _handed_over(self, array: Any) -> Any:
        """A compact CuPy array as a tensor of tvm-ffi."""
        return tvm_ffi.from_dlpack(dlpack.read(array, self.of_dlpack, self.stream).owner)


def torch_bits(tensor: Any, width: int) -> Any:
    """A torch tensor as integers of its width, or as pairs of floats for a width of 16 bytes.

    The kernel moves bits, and older versions of torch do not pass on all types by DLPack.
    """
    torch = sys.modules["torch"]
    if width not in _TORCH_BITS:
        return torch.view_as_real(tensor)
    return tensor.view(getattr(torch, _TORCH_BITS[width]))
