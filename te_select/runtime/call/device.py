"""What differs in calls by the device whose memory a kernel takes.

Everything here works on bits. An operand of any library is described by its memory. It is passed on
as a NumPy view of unsigned ints of its width (16-byte elements as complex128); on a device it stays
a tensor of its own library, because only that can copy it there.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tvm_ffi

from te_select.errors import ArgumentError, DTypeError, is_a
from te_select.operator.dtypes import ElementType, numpy_dtype
from te_select.runtime.call import dlpack
from te_select.runtime.call.extension import empty

# NumPy has no 128-bit int; its copies of complex numbers move bits just as well.
_CARRIERS = {
    width: np.dtype(name)
    for width, name in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))
}
# The library of an operand in memory of the CPU, whichever library made it.
ON_HOST = "host"
# A tensor, and what makes the caller's result of it once it is filled.
New = tuple[Any, Callable[[], Any]]


@dataclass(slots=True)
class Operand:
    """An operand, and the form in which the compiled code takes it.

    Parameters
    ----------
    value
        A compact tensor that tvm-ffi takes, a copy if the caller's is strided; out is never copied.
        On the CPU it is a NumPy view that keeps the memory alive, and is writable whatever the
        operand's library says.
    library
        ``"torch"``, ``"cupy"``, ``"jax"``, ``"dlpack"`` or `ON_HOST`.
    address, shape, strides, device
        Of the caller's tensor: the address of the first element, None if NumPy keeps it; strides in
        bytes; the number of the device.
    readonly
        Whether the operand's library forbids writing.
    """

    value: Any
    library: str
    address: int | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    readonly: bool


class Output(NamedTuple):
    """Where a kernel writes, as in `Operand`; ``finish`` makes the caller's result of it."""

    value: Any
    library: str
    device: int
    finish: Callable[[], Any]


class Device:
    """What differs by the device whose memory a kernel takes. This one is the CPU.

    Attributes
    ----------
    words, of_torch, of_dlpack
        The device in words, by torch's name, and by DLPack's numbers.
    accepted
        What an operand may be, in words.
    advice
        How to bring an operand there, of which it has the name.
    stream
        Where the kernel runs, as ``__dlpack__`` takes it.
    """

    words, of_torch = "the CPU", "cpu"
    of_dlpack: tuple[int, ...] = dlpack.HOST_DEVICES
    accepted = "a NumPy array, a torch or JAX tensor, or anything else with __dlpack__"
    advice = ""
    stream: int | None = None

    def library_of(self, _value: Any) -> str:
        """The library of a tensor there."""
        return ON_HOST

    def taken(self, found: Operand, _given: Any, name: str, width: int) -> Any:
        """The value of an operand whose memory has been found."""
        owned = found.address is None
        view = found.value.view(_CARRIERS[width]) if owned else viewed(found, width)
        return view if name == "out" or view.flags.c_contiguous else view.copy(order="C")

    def new(self, like: Any, _device: int, element: ElementType, shape: tuple[int, ...]) -> New:
        """A new tensor in the kind of an input whose library is not torch."""
        dtype = numpy_dtype(element.name)
        if is_a(like, "jax.Array"):
            check_jax_keeps(dtype, "a NumPy out")
            filled: npt.NDArray[Any] = np.empty(shape, dtype)
            put = sys.modules["jax"].device_put
            return filled, lambda: put(filled, next(iter(like.devices())))
        array: npt.NDArray[Any] = empty(shape, dtype)
        # NumPy's own __dlpack__ does not know the types of ml_dtypes.
        if isinstance(like, tvm_ffi.Tensor) and dtype.isbuiltin == 1:
            return array, lambda: tvm_ffi.from_dlpack(array)
        return array, lambda: array

    def may_write(self, out: Operand, inputs: Sequence[Operand], _width: int) -> bool:
        """Whether the kernel can write to out itself: only then and else_ may be out itself."""
        return is_apart(out.value, [each.value for each in inputs])

    def instead(self, out: Any, found: Operand, _width: int) -> New:
        """Memory in the place of an output that the kernel cannot write to."""
        made = np.empty(found.shape, found.value.dtype)

        def copied() -> Any:
            found.value[...] = made
            return mark_written(out)

        return made, copied


HOST = Device()


class _Memory:
    """The source of a NumPy view; the view keeps this object, and so the owner, alive."""

    def __init__(self, found: Operand, carrier: np.dtype[Any]) -> None:
        self.owner = found.value
        self.__array_interface__ = {
            "version": 3,
            "data": (found.address, False),
            "shape": found.shape,
            "strides": found.strides,
            "typestr": carrier.str,
        }


def viewed(found: Operand, width: int) -> npt.NDArray[Any]:
    """An operand's memory as an array, which may be of a device if nobody reads its elements."""
    if 0 in found.shape:
        return np.empty(found.shape, _CARRIERS[width])
    return np.asarray(_Memory(found, _CARRIERS[width]))


def is_apart(out: npt.NDArray[Any], inputs: Sequence[npt.NDArray[Any]]) -> bool:
    """Whether an output is compact, and no input shares its memory but then or else as a whole."""
    return out.flags.c_contiguous and not any(
        np.may_share_memory(each, out)
        and (k == 0 or each.ctypes.data != out.ctypes.data or each.size != out.size)
        for k, each in enumerate(inputs)
    )


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


def check_distinct(shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> None:
    """Refuse an output whose elements share memory; strides and width are in bytes."""
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


def mark_written(out: Any) -> Any:
    """Tell torch's autograd that a tensor has changed, as torch's own functions do; return it."""
    if is_a(out, "torch.Tensor"):
        sys.modules["torch"].autograd.graph.increment_version(out)
    return out
