"""Operands of a call: converts those that the compiled code cannot take directly.

Everything here works on bits. An operand of any library is described by its memory. It is passed on
as a NumPy view of unsigned ints of its width (16-byte elements as complex128).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tvm_ffi

from te_select.errors import ArgumentError, DTypeError, caught
from te_select.operator import dtypes
from te_select.operator.broadcast import Shape, format_shape, shown
from te_select.operator.dtypes import ELEMENT_TYPES, ElementType, element_type, numpy_dtype
from te_select.runtime.call import dlpack

BOOL = ELEMENT_TYPES["bool"]
_ACCEPTED = "a NumPy array, a torch or JAX tensor, or anything else with __dlpack__"
# NumPy has no 128-bit int; its copies of complex numbers move bits just as well.
_CARRIERS = {
    width: np.dtype(name)
    for width, name in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))
}
_SCALAR_TYPES = (bool, int, float, complex)
_Fit = Callable[[tuple[int, ...]], None]  # compares a shape with the one expected


class Operand(NamedTuple):
    """The memory of an operand.

    Parameters
    ----------
    view
        The elements as carriers of their width. The view is always writable, even if the operand's
        library forbids writing. It keeps the memory alive.
    readonly
        Whether the operand's library forbids writing.
    """

    view: npt.NDArray[Any]
    readonly: bool


class _Memory:
    """The source of a NumPy view; the view keeps this object, and so the owner, alive."""

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], width: int, owner: Any
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": _CARRIERS[width].str,
        }


def is_scalar(value: Any) -> bool:
    """Whether a value is a Python or NumPy scalar."""
    return isinstance(value, (*_SCALAR_TYPES, np.generic))


def describe(
    value: Any, name: str, expected: ElementType, shape: Shape, sizes: dict[str, int]
) -> Operand:
    """Find an operand's memory, and check its element type and shape.

    Parameters
    ----------
    value
        What the caller passed.
    name
        The operand's name, for messages.
    expected
        The element type that the kernel takes.
    shape
        The shape that the kernel takes. A Python scalar is allowed for rank 0.
    sizes
        The sizes of named dims that are known; those of this operand are added.

    Returns
    -------
    Operand
        The memory; for a scalar it is new.

    Raises
    ------
    DTypeError
        If the element type is not ``expected``, or the byte order is foreign.
    ArgumentError
        If the value is not a tensor, has another shape, or is not in memory of the CPU.
    """
    if isinstance(value, _SCALAR_TYPES) and not isinstance(value, np.generic):
        return _from_scalar(value, name, expected, shape)
    fit = functools.partial(check_shape, name=name, expected=shape, sizes=sizes)
    torch = sys.modules.get("torch")
    # An import of numpy.ma here could lose an exception of a signal handler.
    if isinstance(value, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())):
        raise ArgumentError(
            f"{name} is a masked array, whose mask a kernel would ignore; use np.ma.where, or pass "
            f"{name}.filled() or {name}.data"
        )
    if isinstance(value, np.generic) and not shape:
        _check_number(value, name, expected)
    if isinstance(value, (np.ndarray, np.generic)):
        operand = _from_numpy(np.asarray(value), name, expected)
        fit(operand.view.shape)
        return operand
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(value, name, expected, fit)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value, name, expected, fit)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
        raise ArgumentError(
            f"{name} is traced by JAX, as in jax.jit, and a kernel cannot be traced; use jnp.where "
            "there, or call the kernel outside"
        )
    shown = "None" if value is None else f"a {type(value).__name__}"
    raise ArgumentError(f"{name} is {shown}; expected {_ACCEPTED}")


def check_shape(found: tuple[int, ...], name: str, expected: Shape, sizes: dict[str, int]) -> None:
    """Compare an operand's shape, and bind named dims that have no size yet.

    Raises
    ------
    ArgumentError
        If it is not the one expected.
    """
    if len(found) == len(expected):
        for extent, dim in zip(found, expected, strict=True):
            if extent != (sizes.setdefault(dim, extent) if isinstance(dim, str) else dim):
                break
        else:
            return
    known = ", ".join(f"{dim} = {sizes[dim]}" for dim in expected if dim in sizes)
    raise ArgumentError(
        f"{name} has shape {format_shape(found)}; expected {format_shape(expected)}"
        + (f" with {known}" if known else "")
    )


def is_immutable(value: Any) -> bool:
    """Whether a value's library forbids writing to its tensors, even if the memory allows it."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def check_element(found: ElementType | None, shown: Any, name: str, expected: ElementType) -> None:
    """Compare an operand's element type; ``shown`` stands for one that te_select does not have.

    Raises
    ------
    DTypeError
        If it is not the one expected.
    """
    if found is expected:
        return
    text = f"{name} has element type {found.name if found else shown}; expected {expected.name}"
    if found is None:
        text += f" (of {dtypes.names()})"
    if name == "cond":
        text += ": pass cond != 0"
    raise DTypeError(text)


@functools.cache
def _numpy_element(dtype: np.dtype[Any]) -> ElementType | None:
    """The element type of a dtype, or None.

    It is kept, because NumPy makes a dtype's name in Python, and there takes a TypeError that a
    signal handler raises for one of its own.
    """
    return ELEMENT_TYPES.get(dtype.name) if dtype.isnative else None


def _from_numpy(array: npt.NDArray[Any], name: str, expected: ElementType) -> Operand:
    found = _numpy_element(array.dtype)
    if found is None and not array.dtype.isnative:
        raise DTypeError(
            f"{name} has element type {array.dtype.str} in foreign byte order; expected native "
            f"{expected.name}: pass {name}.astype({name}.dtype.newbyteorder('='))"
        )
    check_element(found, array.dtype, name, expected)
    if array.flags.writeable:
        return Operand(array.view(_CARRIERS[expected.width]), False)
    view = _view(name, array.ctypes.data, array.shape, array.strides, expected.width, array)
    return Operand(view, True)


def _view(
    name: str,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    width: int,
    owner: Any,
) -> npt.NDArray[Any]:
    """Memory as an array of carriers; strides are in bytes."""
    if 0 in shape:
        return np.empty(shape, _CARRIERS[width])
    if address == 0:
        raise ArgumentError(f"{name} has no memory (a null data pointer); expected a real tensor")
    return np.asarray(_Memory(address, shape, strides, width, owner))


def _from_torch(tensor: Any, name: str, expected: ElementType, fit: _Fit) -> Operand:
    plain, readonly = plain_torch(tensor, name, expected, "cpu", "the CPU")
    fit(tuple(tensor.shape))
    try:
        address = plain.data_ptr()
    except caught(RuntimeError) as error:  # fake tensors, and those inside a torch transformation
        raise ArgumentError(f"{name} is a torch tensor without memory: {error}") from error
    strides = tuple(stride * expected.width for stride in plain.stride())
    view = _view(name, address, tuple(plain.shape), strides, expected.width, plain)
    return Operand(view, readonly)


def plain_torch(
    tensor: Any, name: str, expected: ElementType, device: str, there: str
) -> tuple[Any, bool]:
    """A torch tensor without what torch has still to do to it, and whether writing is forbidden.

    ``device`` is torch's word for where it must be, and ``there`` is ours.

    Raises
    ------
    DTypeError
        If its element type is not the one expected.
    ArgumentError
        If it is on another kind of device, or not strided.
    """
    try:
        found = element_type(tensor.dtype)
    except DTypeError:
        found = None
    check_element(found, tensor.dtype, name, expected)
    if tensor.device.type != device or tensor.layout != sys.modules["torch"].strided:
        raise ArgumentError(
            f"{name} is a {tensor.layout} tensor on {tensor.device}; expected a strided tensor on "
            f"{there}: pass {name}.{device}()"
        )
    lazy = tensor.is_conj() or tensor.is_neg()
    plain = tensor.detach()
    return plain.resolve_conj().resolve_neg() if lazy else plain, lazy or tensor.requires_grad


def _from_dlpack(value: Any, name: str, expected: ElementType, fit: _Fit) -> Operand:
    tensor = read_dlpack(value, name, expected, "memory of the CPU")
    fit(tensor.shape)
    strides = tuple(stride * expected.width for stride in tensor.strides)
    view = _view(name, tensor.address, tensor.shape, strides, expected.width, tensor.owner)
    return Operand(view, tensor.readonly or is_immutable(value))


def read_dlpack(
    value: Any,
    name: str,
    expected: ElementType,
    memory: str,
    device_types: tuple[int, ...] = dlpack.HOST_DEVICES,
    stream: int | None = None,
) -> dlpack.Tensor:
    """Read a tensor as `dlpack.read` does, and check its element type; ``memory`` is for messages.

    Raises
    ------
    DTypeError
        If its element type is not the one expected.
    ArgumentError
        If it is in other memory, or its library does not hand it over.
    """
    if isinstance(value, tvm_ffi.Tensor) and not value.__chandle__():  # reading it would crash
        raise ArgumentError(f"{name} is a tensor of tvm-ffi without memory; expected a real tensor")
    try:
        if is_immutable(value):
            value.block_until_ready()  # JAX computes ahead
        tensor = dlpack.read(value, device_types, stream)
    except dlpack.WrongDeviceError as error:
        raise ArgumentError(f"{name} is {error}; expected {memory}") from error
    except caught(Exception) as error:  # any error of the other library
        raise ArgumentError(
            f"{name} is a {type(value).__name__} that __dlpack__ does not hand over: {error}"
        ) from error
    found = dtypes.from_dlpack_code(*tensor.dtype)
    check_element(found, f"(code, bits, lanes) = {tensor.dtype} of DLPack", name, expected)
    return tensor


def _from_scalar(value: Any, name: str, expected: ElementType, shape: Shape) -> Operand:
    if shape:
        raise ArgumentError(
            f"{name} is the scalar {shown(value)}; expected {_ACCEPTED}, of shape "
            f"{format_shape(shape)}"
        )
    exact = expected is BOOL or expected.name.startswith(("int", "uint"))
    if expected is BOOL:
        takes: tuple[Any, ...] = (bool,)
    elif exact:
        takes = (int,)
    elif expected.name.startswith("complex"):
        takes = (int, float, complex)
    else:
        takes = (int, float)
    if not isinstance(value, takes) or (isinstance(value, bool) and expected is not BOOL):
        hint = ": pass cond != 0" if name == "cond" else ""
        raise DTypeError(
            f"{name} is the {type(value).__name__} {shown(value)}; expected {expected.name}{hint}"
        )
    try:
        # The types of ml_dtypes take every float, but no int beyond 64 bits.
        number = value if exact or isinstance(value, complex) else float(value)
        with np.errstate(over="ignore", invalid="ignore"):
            array = np.array(number, numpy_dtype(expected.name))
        fits = exact or _same_class(number, complex(array))
    except caught(OverflowError):
        fits = False
    if not fits:
        raise ArgumentError(f"{name} is {shown(value)}, which is out of range for {expected.name}")
    return _from_numpy(array, name, expected)


def _check_number(value: np.generic, name: str, expected: ElementType) -> None:
    """Refuse a NumPy scalar of another number type, and say which cast makes it the right one."""
    found = _numpy_element(value.dtype)
    if found is expected or expected is BOOL or value.dtype.kind not in "iufc":
        return
    module = "np" if expected.in_numpy else "ml_dtypes"
    raise DTypeError(
        f"{name} has element type {value.dtype.name}; expected {expected.name}: pass "
        f"{module}.{expected.name}({name}), or a Python number"
    )


def _same_class(value: Any, stored: complex) -> bool:
    """Whether both parts of a stored number are finite, infinite or NaN like the given number's."""
    given = complex(value)
    parts = ((given.real, stored.real), (given.imag, stored.imag))
    return all(math.isinf(a) == math.isinf(b) and math.isnan(a) == math.isnan(b) for a, b in parts)
