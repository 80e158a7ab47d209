"""Operands of a call to a CUDA kernel: checked, made compact, and ordered on one stream.

Nothing here reads a tensor's memory. Tensors stay tensors of the caller's library, because only
that can copy them on the device. Operands of rank 0 may be in memory of the CPU; their values go
with the launch.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, NamedTuple

import tvm_ffi

from te_select.errors import ArgumentError, caught
from te_select.operator.broadcast import Shape
from te_select.operator.dtypes import ElementType
from te_select.runtime.call import dlpack, operands

_DEFAULT_STREAM = 0
_TORCH_BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
_ON_HOST = -1


class DeviceOperand(NamedTuple):
    """An operand in the form that the host half takes.

    Parameters
    ----------
    value
        A compact tensor that tvm-ffi takes; for rank 0 it may be a NumPy array.
    library
        ``"torch"``, ``"cupy"``, ``"jax"``, ``"dlpack"``; ``"host"`` for memory of the CPU.
    address
        The address of the first element on the device.
    shape, strides
        Those of the caller's tensor; strides are in bytes.
    device
        The number of the device.
    readonly
        Whether the operand's library forbids writing.
    """

    value: Any
    library: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    readonly: bool

    def is_compact(self, width: int) -> bool:
        """Whether the caller's tensor is row-major without gaps; width is in bytes."""
        step = width
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return 0 in self.shape
            step *= extent
        return True


def library_of(value: Any) -> str:
    """The library of a tensor on a device, or ``"dlpack"`` if it is none that we know."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(value, torch.Tensor):
        return "torch"
    if jax is not None and isinstance(value, jax.Array):
        return "jax"
    return "cupy" if type(value).__module__.partition(".")[0] == "cupy" else "dlpack"


def current_stream(values: tuple[Any, ...]) -> int:
    """The current stream of the tensors' library, or else the stream that tvm-ffi was given."""
    for value in values:
        library = library_of(value)
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


def describe(
    value: Any, name: str, expected: ElementType, shape: Shape, sizes: dict[str, int], stream: int
) -> DeviceOperand:
    """Check an operand and make it compact.

    Parameters
    ----------
    value
        What the caller passed.
    name
        The operand's name, for messages.
    expected
        The element type that the kernel takes.
    shape
        The shape that the kernel takes. For rank 0, scalars and memory of the CPU are allowed.
    sizes
        The sizes of named dims that are known; those of this operand are added.
    stream
        The stream on which the kernel will run.

    Returns
    -------
    DeviceOperand
        The operand; ``value`` is a compact copy if the caller's tensor is strided.

    Raises
    ------
    DTypeError
        If the element type is not ``expected``.
    ArgumentError
        If the value is not a tensor, has another shape, is not in memory of a CUDA device, or is
        strided and its library cannot copy it.
    """
    if name != "out" and not shape and _on_host(value):
        view = operands.describe(value, name, expected, shape, sizes).view
        return DeviceOperand(view, "host", 0, (), (), _ON_HOST, True)
    fit = functools.partial(operands.check_shape, name=name, expected=shape, sizes=sizes)
    library = library_of(value)
    if library == "torch":
        operand = _from_torch(value, name, expected)
    elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        operand = _from_dlpack(value, library, name, expected, stream)
    else:
        shown = "None" if value is None else f"a {type(value).__name__}"
        raise ArgumentError(f"{name} is {shown}; expected a tensor on a CUDA device{_how(name)}")
    fit(operand.shape)
    if math.prod(operand.shape) and not operand.address:
        raise ArgumentError(f"{name} has no memory (a null data pointer); expected a real tensor")
    return operand


def torch_bits(tensor: Any, width: int) -> Any:
    """A torch tensor as integers of its width, or as pairs of floats for a width of 16 bytes.

    The kernel moves bits, and older versions of torch do not pass on all types by DLPack.
    """
    torch = sys.modules["torch"]
    if width not in _TORCH_BITS:
        return torch.view_as_real(tensor)
    return tensor.view(getattr(torch, _TORCH_BITS[width]))


def handed_over(array: Any, stream: int) -> Any:
    """A compact CuPy array as a tensor of tvm-ffi, for use on a stream."""
    tensor = dlpack.read(array, dlpack.CUDA_DEVICES, _dlpack_stream(stream))
    return tvm_ffi.from_dlpack(tensor.owner)


def _dlpack_stream(stream: int) -> int | None:
    """A stream in the form that ``__dlpack__`` takes: None for the default stream, handle 0."""
    return stream or None


def _on_host(value: Any) -> bool:
    if operands.is_scalar(value):
        return True
    try:
        return int(value.__dlpack_device__()[0]) in dlpack.HOST_DEVICES
    except caught(Exception):  # not a tensor, or a broken one; the checks below find out which
        return False


def _how(name: str) -> str:
    return f": pass torch.as_tensor({name}, device='cuda')"


def _from_torch(tensor: Any, name: str, expected: ElementType) -> DeviceOperand:
    plain, readonly = operands.plain_torch(tensor, name, expected, "cuda", "a CUDA device")
    strides = tuple(stride * expected.width for stride in plain.stride())
    # An output that is not compact is written through a copy; that copy is made elsewhere.
    compact = plain if name == "out" else plain.contiguous()
    return DeviceOperand(
        torch_bits(compact, expected.width),
        "torch",
        plain.data_ptr(),
        tuple(plain.shape),
        strides,
        tensor.device.index,
        readonly,
    )


def _from_dlpack(
    value: Any, library: str, name: str, expected: ElementType, stream: int
) -> DeviceOperand:
    tensor = _read(value, library, name, expected, stream)
    strides = tuple(stride * expected.width for stride in tensor.strides)
    immutable = tensor.readonly or library == "jax"
    where = (tensor.address, tensor.shape, strides, tensor.device, immutable)
    operand = DeviceOperand(value, library, *where)
    if not operand.is_compact(expected.width) and name != "out":
        if library != "cupy":
            raise ArgumentError(
                f"{name} has strides {tensor.strides} for shape {tensor.shape}; expected compact "
                f"row-major memory, for {type(value).__name__} cannot be copied here"
            )
        compact = sys.modules["cupy"].ascontiguousarray(value)
        tensor = _read(compact, library, name, expected, stream)
    return DeviceOperand(tvm_ffi.from_dlpack(tensor.owner), library, *where)


def _read(value: Any, library: str, name: str, expected: ElementType, stream: int) -> dlpack.Tensor:
    memory = f"memory of a CUDA device{_how(name)}"
    wanted = None if library == "jax" else _dlpack_stream(stream)  # JAX has streams of its own
    return operands.read_dlpack(value, name, expected, memory, dlpack.CUDA_DEVICES, wanted)
