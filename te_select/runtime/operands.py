"""Operands of a call: what the compiled code cannot take as it is becomes something it can.

Everything here works on bits. An operand of any library is described by its memory, and passed on
as a NumPy view of unsigned ints of its width (16-byte elements as complex128).
"""

from __future__ import annotations

import cmath
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from te_select import dtypes
from te_select.broadcast import Shape, format_shape
from te_select.dtypes import ELEMENT_TYPES, ElementType, element_type
from te_select.errors import ArgumentError, DTypeError
from te_select.runtime import dlpack

BOOL = ELEMENT_TYPES["bool"]
_ACCEPTED = "a NumPy array, a torch or JAX tensor, or anything else with __dlpack__"
# NumPy has no 128-bit int; its copies of complex numbers move bits just as well.
_CARRIERS = {
    width: np.dtype(name)
    for width, name in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))
}
_SCALAR_TYPES = (bool, int, float, complex)


class Operand(NamedTuple):
    """The memory of an operand.

    Parameters
    ----------
    view
        The elements as carriers of their width, writable whatever the operand's library says; keeps
        the memory alive.
    readonly
        Whether the operand's library forbids writing.
    """

    view: npt.NDArray[Any]
    readonly: bool


class _Memory:
    """What NumPy asks for a view; the view keeps this, and so the owner, alive."""

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


def describe(value: Any, name: str, expected: ElementType, shape: Shape) -> Operand:
    """Find an operand's memory and check its element type.

    Parameters
    ----------
    value
        What the caller passed.
    name
        The operand's name, for messages.
    expected
        The element type that the kernel takes.
    shape
        The shape that the kernel takes; the rank decides whether a Python scalar will do.

    Returns
    -------
    Operand
        The memory; of a scalar, a new one.

    Raises
    ------
    DTypeError
        If the element type is another one, or the byte order is foreign.
    ArgumentError
        If the value is no tensor, or one that is not in memory of the CPU.
    """
    if isinstance(value, _SCALAR_TYPES) and not isinstance(value, np.generic):
        return _from_scalar(value, name, expected, shape)
    torch = sys.modules.get("torch")
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(value), name, expected)
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(torch, value, name, expected)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(value, name, expected)
    shown = "None" if value is None else f"a {type(value).__name__}"
    raise ArgumentError(f"{name} is {shown}; expected {_ACCEPTED}")


def check_shape(operand: Operand, name: str, expected: Shape, sizes: dict[str, int]) -> None:
    """Compare an operand's shape, and bind the named dims that it is the first to have.

    Raises
    ------
    ArgumentError
        If the rank or an extent differs, or equal names have unequal sizes.
    """
    if len(operand.view.shape) == len(expected):
        for extent, dim in zip(operand.view.shape, expected, strict=True):
            if extent != (sizes.setdefault(dim, extent) if isinstance(dim, str) else dim):
                break
        else:
            return
    known = ", ".join(f"{dim} = {sizes[dim]}" for dim in expected if dim in sizes)
    raise ArgumentError(
        f"{name} has shape {format_shape(operand.view.shape)}; expected {format_shape(expected)}"
        + (f" with {known}" if known else "")
    )


def builtin_dtype(element: ElementType) -> np.dtype[Any] | None:
    """The NumPy type of an element type, or None where it takes ml_dtypes."""
    return None if element.name.startswith(("bfloat", "float8")) else np.dtype(element.name)


def numpy_dtype(element: ElementType) -> np.dtype[Any]:
    """The NumPy type of an element type; bfloat16 and float8 come from ml_dtypes."""
    builtin = builtin_dtype(element)
    if builtin is not None:
        return builtin
    import ml_dtypes  # noqa: PLC0415 - only these types need it

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, element.name))
    return dtype


def allocate(
    like: Any, element: ElementType, shape: tuple[int, ...]
) -> tuple[Any, Callable[[], Any]]:
    """Make an output in the kind of ``like``.

    Parameters
    ----------
    like
        An input of the call; NumPy is the kind of whatever has no way of its own.
    element, shape
        Of the output.

    Returns
    -------
    tuple
        New memory, and a function to call once it is filled, for what the caller gets.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        tensor = torch.empty(shape, dtype=getattr(torch, element.name), device="cpu")
        return tensor, lambda: tensor
    dtype = numpy_dtype(element)
    array: npt.NDArray[Any] = np.empty(shape, dtype)
    jax = sys.modules.get("jax")
    tvm_ffi = sys.modules.get("tvm_ffi")
    if jax is not None and isinstance(like, jax.Array):
        return array, lambda: jax.device_put(array, next(iter(like.devices())))
    # NumPy's own __dlpack__ knows none of the types of ml_dtypes.
    if tvm_ffi is not None and isinstance(like, tvm_ffi.Tensor) and dtype.isbuiltin == 1:
        return array, lambda: tvm_ffi.from_dlpack(array)
    return array, lambda: array


def check_writable(out: Operand, value: Any) -> None:
    """Refuse an output that cannot be written, or whose elements share memory.

    Raises
    ------
    ArgumentError
        If so.
    """
    if is_immutable(value):
        raise ArgumentError("out is a JAX array, which is immutable; call without out")
    if out.readonly:
        raise ArgumentError(
            f"out is a {type(value).__name__} that cannot be written (read-only, or part of "
            "torch's autograd); expected writable memory"
        )
    for extent, stride in zip(out.view.shape, out.view.strides, strict=True):
        if extent > 1 and stride == 0 and out.view.size:
            raise ArgumentError(
                "out is a broadcast view, its elements share memory; expected one of its own"
            )


def is_same_memory(view: npt.NDArray[Any], out: npt.NDArray[Any]) -> bool:
    """Whether two compact arrays are the very same elements."""
    return _address(view) == _address(out) and view.nbytes == out.nbytes and view.size == out.size


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def is_immutable(value: Any) -> bool:
    """Whether a value's library never writes to its tensors, whatever its memory allows."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _check_element(found: ElementType | None, shown: Any, name: str, expected: ElementType) -> None:
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
    return ELEMENT_TYPES.get(dtype.name) if dtype.isnative else None


def _from_numpy(array: npt.NDArray[Any], name: str, expected: ElementType) -> Operand:
    found = _numpy_element(array.dtype)
    if found is None and not array.dtype.isnative:
        raise DTypeError(
            f"{name} has element type {array.dtype.str} in foreign byte order; expected native "
            f"{expected.name}: pass {name}.astype({name}.dtype.newbyteorder('='))"
        )
    _check_element(found, array.dtype, name, expected)
    if array.flags.writeable:
        return Operand(array.view(_CARRIERS[expected.width]), False)
    view = _view(name, _address(array), array.shape, array.strides, expected.width, array)
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


def _from_torch(torch: Any, tensor: Any, name: str, expected: ElementType) -> Operand:
    try:
        found = element_type(tensor.dtype)
    except DTypeError:
        found = None
    _check_element(found, tensor.dtype, name, expected)
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise ArgumentError(
            f"{name} is a {tensor.layout} tensor on {tensor.device}; expected a strided tensor on "
            f"the CPU: pass {name}.cpu()"
        )
    lazy = tensor.is_conj() or tensor.is_neg()
    readonly = lazy or tensor.requires_grad
    plain = tensor.detach()
    if lazy:
        plain = plain.resolve_conj().resolve_neg()
    try:
        address = plain.data_ptr()
    except RuntimeError as error:  # fake tensors, and those inside a torch transformation
        raise ArgumentError(f"{name} is a torch tensor without memory: {error}") from error
    strides = tuple(stride * expected.width for stride in plain.stride())
    view = _view(name, address, tuple(plain.shape), strides, expected.width, plain)
    return Operand(view, readonly)


def _from_dlpack(value: Any, name: str, expected: ElementType) -> Operand:
    try:
        if is_immutable(value):
            value.block_until_ready()  # JAX computes ahead
        tensor = dlpack.read(value)
    except dlpack.NotOnCPUError as error:
        raise ArgumentError(f"{name} is {error}; expected memory of the CPU") from error
    except Exception as error:  # whatever the other library raises
        raise ArgumentError(
            f"{name} is a {type(value).__name__} that __dlpack__ does not hand over: {error}"
        ) from error
    found = dtypes.from_dlpack_code(*tensor.dtype)
    _check_element(found, f"(code, bits, lanes) = {tensor.dtype} of DLPack", name, expected)
    strides = tuple(stride * expected.width for stride in tensor.strides)
    view = _view(name, tensor.address, tensor.shape, strides, expected.width, tensor.owner)
    return Operand(view, tensor.readonly or is_immutable(value))


def _from_scalar(value: Any, name: str, expected: ElementType, shape: Shape) -> Operand:
    if shape:
        raise ArgumentError(
            f"{name} is the scalar {value!r}; expected {_ACCEPTED}, of shape {format_shape(shape)}"
        )
    exact = expected is BOOL or expected.name.startswith(("int", "uint"))
    if expected is BOOL:
        takes: tuple[type, ...] = (bool,)
    elif exact:
        takes = (int,)
    elif expected.name.startswith("complex"):
        takes = (int, float, complex)
    else:
        takes = (int, float)
    if not isinstance(value, takes) or (isinstance(value, bool) and expected is not BOOL):
        hint = ": pass cond != 0" if name == "cond" else ""
        raise DTypeError(
            f"{name} is the {type(value).__name__} {value!r}; expected {expected.name}{hint}"
        )
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            array = np.array(value, numpy_dtype(expected))
        fits = exact or _same_class(value, complex(array))
    except OverflowError:
        fits = False
    if not fits:
        raise ArgumentError(f"{name} is {value!r}, which is out of range for {expected.name}")
    return _from_numpy(array, name, expected)


def _same_class(value: Any, stored: complex) -> bool:
    """Whether a stored number is finite, infinite or NaN as the given one is."""
    given = complex(value)
    return cmath.isinf(given) == cmath.isinf(stored) and cmath.isnan(given) == cmath.isnan(stored)
