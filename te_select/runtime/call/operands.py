"""What an operand may be, on any device: its memory is found, checked, and made compact.

The compiled code checks every argument itself. What it refuses comes here, to be adapted if it can
be, or to be refused in words about the caller's tensors.
"""

import functools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import tvm_ffi

from te_select.errors import ArgumentError, DTypeError, asked, caught, is_a
from te_select.operator import dtypes
from te_select.operator.broadcast import Shape, bound, format_shape, shown
from te_select.operator.dtypes import ELEMENT_TYPES, ElementType, numpy_dtype
from te_select.runtime.call import dlpack, jax_memory
from te_select.runtime.call.device import (
    HOST,
    ON_HOST,
    Device,
    Operand,
    Output,
    check_distinct,
    mark_written,
)
from te_select.runtime.call.torch_state import torch_dtype

BOOL = ELEMENT_TYPES["bool"]
_SCALARS = (bool, int, float, complex, np.generic)
_OF_NUMPY = (np.ndarray, *_SCALARS)


def prepared(
    values: Mapping[str, Any], element: ElementType, shapes: Sequence[Shape], device: Device
) -> tuple[list[Operand], Output]:
    """Check the operands of a call, and bring them into the form that the compiled code takes.

    Parameters
    ----------
    values
        ``cond``, ``then``, ``else_`` and ``out``, as the caller passed them.
    element
        The element type of then, else_ and out.
    shapes
        The shapes of the four.
    device
        Where the kernel runs.

    Raises
    ------
    DTypeError, ArgumentError
        If an operand cannot be taken.
    """
    *given, (_, out) = values.items()
    sizes: dict[str, int] = {}
    inputs = [
        describe(value, name, element if k else BOOL, shapes[k], sizes, device)
        for k, (name, value) in enumerate(given)
    ]
    if out is not None:
        if is_scalar(out):
            raise ArgumentError(f"out is the scalar {shown(out)}; expected {device.accepted}")
        found = describe(out, "out", element, shapes[-1], sizes, device)
        return inputs, _given_output(out, found, inputs, element.width, device)
    like: Any = None
    number = 0
    for k in (0, 2, 1):
        if not is_scalar(given[k][1]) and (inputs[k].library != ON_HOST or device is HOST):
            like = given[k][1]
            number = inputs[k].device
    extents = bound(shapes[-1], sizes)
    if is_a(like, "torch.Tensor"):
        new = sys.modules["torch"].empty(extents, dtype=torch_dtype(element), device=like.device)
        finish = lambda: new  # noqa: E731 - as the others
    else:
        new, finish = device.new(like, number, element, extents)
    made = describe(new, "out", element, extents, sizes, device)
    return inputs, Output(made.value, made.library, made.device, finish)


def _given_output(
    out: Any, found: Operand, inputs: Sequence[Operand], width: int, device: Device
) -> Output:
    """Check an output; if the kernel cannot write to it, use other memory instead."""
    is_wrapped = device is HOST and isinstance(out, tvm_ffi.Tensor) and jax_memory.holds(out)
    if _is_immutable(out) or is_wrapped:
        raise ArgumentError("out is a JAX array, which is immutable; call without out")
    if found.readonly:
        raise ArgumentError(
            f"out is a {type(out).__name__} that cannot be written (read-only, or part of "
            "torch's autograd); expected writable memory"
        )
    check_distinct(found.shape, found.strides, width)
    itself = found.value, lambda: mark_written(out)
    may_write = device.may_write(found, inputs, width)
    value, finish = itself if may_write else device.instead(out, found, width)
    return Output(value, found.library, found.device, finish)


def is_scalar(value: Any) -> bool:
    """Whether a value is a Python or NumPy scalar."""
    return issubclass(type(value), _SCALARS)


def describe(
    value: Any,
    name: str,
    expected: ElementType,
    shape: Shape,
    sizes: dict[str, int],
    device: Device = HOST,
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
        The shape that the kernel takes. For rank 0, inputs may be scalars or in memory of the CPU.
    sizes
        The sizes of named dims that are known; those of this operand are added.
    device
        Where it must be.

    Raises
    ------
    DTypeError
        If the element type is not ``expected``, or the byte order is foreign.
    ArgumentError
        If the value is not a tensor, has another shape, is in other memory, or is strided and its
        library cannot copy it.
    """
    if device is not HOST and name != "out" and not shape and _is_on_host(value):
        device = HOST  # its value goes with the launch
    if device is HOST and issubclass(type(value), _OF_NUMPY):
        found = _of_numpy(value, name, expected, shape)
    elif is_a(value, "torch.Tensor"):
        found = _of_torch(value, name, expected, device)
    elif asked(value, "__dlpack__") and asked(value, "__dlpack_device__"):
        found = _of_dlpack(value, name, expected, device)
    else:
        _refuse(value, name, device)
    _check_shape(found.shape, name, shape, sizes)
    if found.address == 0 and 0 not in found.shape:
        raise ArgumentError(f"{name} has no memory (a null data pointer); expected a real tensor")
    found.value = device.taken(found, value, name, expected.width)
    return found


def _refuse(value: Any, name: str, device: Device) -> NoReturn:
    if is_a(value, "jax.core.Tracer"):
        raise ArgumentError(
            f"{name} is traced by JAX, as in jax.jit, and a kernel cannot be traced; use jnp.where "
            "there, or call the kernel outside"
        )
    what = "None" if value is None else f"a {type(value).__name__}"
    raise ArgumentError(f"{name} is {what}; expected {device.accepted}{device.advice.format(name)}")


def _is_on_host(value: Any) -> bool:
    if is_scalar(value):
        return True
    try:
        return int(value.__dlpack_device__()[0]) in dlpack.HOST_DEVICES
    except caught(Exception):  # not a tensor, or a broken one; the checks find out which
        return False


def _check_shape(found: tuple[int, ...], name: str, expected: Shape, sizes: dict[str, int]) -> None:
    """Compare an operand's shape, and bind named dims that have no size yet."""
    if len(found) == len(expected) and all(
        extent == (sizes.setdefault(dim, extent) if isinstance(dim, str) else dim)
        for extent, dim in zip(found, expected, strict=True)
    ):
        return
    known = ", ".join(f"{dim} = {sizes[dim]}" for dim in expected if dim in sizes)
    raise ArgumentError(
        f"{name} has shape {format_shape(found)}; expected {format_shape(expected)}"
        + (f" with {known}" if known else "")
    )


def _is_immutable(value: Any) -> bool:
    """Whether a value's library forbids writing to its tensors, even if the memory allows it."""
    return is_a(value, "jax.Array")


def _check_element(found: ElementType | None, shown: Any, name: str, expected: ElementType) -> None:
    """Compare an operand's element type; ``shown`` stands for one that te_select does not have."""
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

    Cached, because NumPy makes a dtype's name in Python, where it mistakes a signal handler's
    TypeError for its own.
    """
    return ELEMENT_TYPES.get(dtype.name) if dtype.isnative else None


def _of_numpy(value: Any, name: str, expected: ElementType, shape: Shape) -> Operand:
    """A NumPy array, or a scalar of NumPy or Python."""
    if not isinstance(value, (np.ndarray, np.generic)):
        value = _of_number(value, name, expected, shape)
    elif type(value) is not np.ndarray:
        # An import of numpy.ma here could lose an exception of a signal handler.
        if is_a(value, "numpy.ma.MaskedArray"):
            raise ArgumentError(
                f"{name} is a masked array, whose mask a kernel would ignore; use np.ma.where, or "
                f"pass {name}.filled() or {name}.data"
            )
        if isinstance(value, np.generic) and not shape:
            _check_number(value, name, expected)
    array = np.asarray(value)
    found = _numpy_element(array.dtype)
    if found is None and not array.dtype.isnative:
        raise DTypeError(
            f"{name} has element type {array.dtype.str} in foreign byte order; expected native "
            f"{expected.name}: pass {name}.astype({name}.dtype.newbyteorder('='))"
        )
    _check_element(found, array.dtype, name, expected)
    readonly = not array.flags.writeable
    address = array.ctypes.data if readonly else None
    return Operand(array, ON_HOST, address, array.shape, array.strides, 0, readonly)


def _of_torch(tensor: Any, name: str, expected: ElementType, device: Device) -> Operand:
    """A torch tensor, without what torch has still to do to it."""
    element = ELEMENT_TYPES.get(str(tensor.dtype).removeprefix("torch."))
    _check_element(element, tensor.dtype, name, expected)
    is_strided = tensor.layout == sys.modules["torch"].strided
    if tensor.device.type != device.of_torch or not is_strided:
        made = device.of_torch if is_strided else "to_dense"
        raise ArgumentError(
            f"{name} is a {tensor.layout} tensor on {tensor.device}; expected a strided tensor on "
            f"{device.words}: pass {name}.{made}()"
        )
    lazy = tensor.is_conj() or tensor.is_neg()
    plain = tensor.detach()
    plain = plain.resolve_conj().resolve_neg() if lazy else plain
    try:
        address = plain.data_ptr()
    except caught(RuntimeError) as error:  # fake tensors, and those inside a torch transformation
        raise ArgumentError(f"{name} is a torch tensor without memory: {error}") from error
    strides = tuple(stride * expected.width for stride in plain.stride())
    readonly = lazy or tensor.requires_grad
    where = (address, tuple(plain.shape), strides, tensor.device.index or 0)
    return Operand(plain, device.library_of(tensor), *where, readonly)


def _of_dlpack(value: Any, name: str, expected: ElementType, device: Device) -> Operand:
    """A tensor of any other library, as it hands it over."""
    if is_a(value, tvm_ffi.Tensor) and not value.__chandle__():  # reading it would crash
        raise ArgumentError(f"{name} is a tensor of tvm-ffi without memory; expected a real tensor")
    of_jax = _is_immutable(value)
    try:
        if of_jax:
            value.block_until_ready()  # JAX computes ahead, on streams of its own
        tensor = dlpack.read(value, device.of_dlpack, None if of_jax else device.stream)
    except dlpack.WrongDeviceError as error:
        expects = f"memory of {device.words}{device.advice.format(name)}"
        raise ArgumentError(f"{name} is {error}; expected {expects}") from error
    except caught(Exception) as error:  # any error of the other library
        raise ArgumentError(
            f"{name} is a {type(value).__name__} that __dlpack__ does not hand over: {error}"
        ) from error
    element = dtypes.from_dlpack_code(*tensor.dtype)
    _check_element(element, f"(code, bits, lanes) = {tensor.dtype} of DLPack", name, expected)
    strides = tuple(stride * expected.width for stride in tensor.strides)
    where = (tensor.address, tensor.shape, strides, tensor.device)
    return Operand(tensor.owner, device.library_of(value), *where, tensor.readonly or of_jax)


def _of_number(value: Any, name: str, expected: ElementType, shape: Shape) -> npt.NDArray[Any]:
    """A Python scalar as an array of the element type."""
    if shape:
        raise ArgumentError(
            f"{name} is the scalar {shown(value)}; expected {HOST.accepted}, of shape "
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
    return array


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
