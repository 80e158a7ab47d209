"""What an operand may be, on any device: its memory is found, checked, and made compact.

The compiled code checks every argument itself. What it refuses comes here, to be adapted if it can
be, or to be refused in words about the caller's tensors.

Everything here works on bits. An operand of any library is described by its memory. It is passed on
as a NumPy view of unsigned ints of its width (16-byte elements as complex128); on a device it stays
a tensor of its own library, because only that can copy it there.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import tvm_ffi

from te_select.errors import ArgumentError, DTypeError, caught
from te_select.operator import dtypes
from te_select.operator.broadcast import Shape, format_shape, shown
from te_select.operator.dtypes import ELEMENT_TYPES, ElementType, element_type, numpy_dtype
from te_select.runtime.call import dlpack, jax_memory
from te_select.runtime.call.extension import empty

BOOL = ELEMENT_TYPES["bool"]
# NumPy has no 128-bit int; its copies of complex numbers move bits just as well.
_CARRIERS = {
    width: np.dtype(name)
    for width, name in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))
}
_SCALAR_TYPES = (bool, int, float, complex)
ON_HOST = "host"
"""The library of an operand in memory of the CPU, whichever library made it."""
New = tuple[Any, Callable[[], Any]]
"""A tensor, and what makes the caller's result of it once it is filled."""


class Operand(NamedTuple):
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
        if found.address is None:
            view = found.value.view(_CARRIERS[width])
        elif 0 in found.shape:
            return np.empty(found.shape, _CARRIERS[width])
        else:
            view = np.asarray(_Memory(found, _CARRIERS[width]))
        return view if name == "out" or view.flags.c_contiguous else view.copy(order="C")

    def new(self, like: Any, _device: int, element: ElementType, shape: tuple[int, ...]) -> New:
        """A new tensor in the kind of an input whose library is not torch."""
        dtype = numpy_dtype(element.name)
        jax = sys.modules.get("jax")
        if jax is not None and isinstance(like, jax.Array):
            check_jax_keeps(dtype, "a NumPy out")
            filled: npt.NDArray[Any] = np.empty(shape, dtype)
            return filled, lambda: jax.device_put(filled, next(iter(like.devices())))
        array: npt.NDArray[Any] = empty(shape, dtype)
        # NumPy's own __dlpack__ does not know the types of ml_dtypes.
        if isinstance(like, tvm_ffi.Tensor) and dtype.isbuiltin == 1:
            return array, lambda: tvm_ffi.from_dlpack(array)
        return array, lambda: array

    def may_write(self, out: Operand, inputs: Sequence[Operand], _width: int) -> bool:
        """Whether the kernel can write to out itself: only then and else_ may be out itself."""
        memory = out.value
        return memory.flags.c_contiguous and not any(
            np.may_share_memory(each.value, memory)
            and (k == 0 or not _is_same_memory(each.value, memory))
            for k, each in enumerate(inputs)
        )

    def instead(self, out: Any, found: Operand, _width: int) -> New:
        """Memory in the place of an output that the kernel cannot write to."""
        made = np.empty(found.shape, found.value.dtype)

        def copied() -> Any:
            found.value[...] = made
            return marked_written(out)

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

    Returns
    -------
    tuple
        The inputs, and where the kernel writes.

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
    like, number = None, 0
    for k in (0, 2, 1):
        if not is_scalar(given[k][1]) and (inputs[k].library != ON_HOST or device is HOST):
            like, number = given[k][1], inputs[k].device
    extents = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in shapes[-1])
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        new = torch.empty(extents, dtype=getattr(torch, element.name), device=like.device)
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
    _check_distinct(found.shape, found.strides, width)
    itself = found.value, lambda: marked_written(out)
    may_write = device.may_write(found, inputs, width)
    value, finish = itself if may_write else device.instead(out, found, width)
    return Output(value, found.library, found.device, finish)


def is_scalar(value: Any) -> bool:
    """Whether a value is a Python or NumPy scalar."""
    return isinstance(value, (*_SCALAR_TYPES, np.generic))


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

    Returns
    -------
    Operand
        The operand; for a scalar the memory is new.

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
    torch = sys.modules.get("torch")
    if device is HOST and isinstance(value, (np.ndarray, np.generic, *_SCALAR_TYPES)):
        found = _of_numpy(value, name, expected, shape)
    elif torch is not None and isinstance(value, torch.Tensor):
        found = _of_torch(value, name, expected, device)
    elif hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        found = _of_dlpack(value, name, expected, device)
    else:
        _refuse(value, name, device)
    _check_shape(found.shape, name, shape, sizes)
    if found.address == 0 and 0 not in found.shape:
        raise ArgumentError(f"{name} has no memory (a null data pointer); expected a real tensor")
    return Operand(device.taken(found, value, name, expected.width), *found[1:])


def _refuse(value: Any, name: str, device: Device) -> NoReturn:
    """Refuse what is no tensor."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
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


def _is_immutable(value: Any) -> bool:
    """Whether a value's library forbids writing to its tensors, even if the memory allows it."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


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

    It is kept, because NumPy makes a dtype's name in Python, and there takes a TypeError that a
    signal handler raises for one of its own.
    """
    return ELEMENT_TYPES.get(dtype.name) if dtype.isnative else None


def _of_numpy(value: Any, name: str, expected: ElementType, shape: Shape) -> Operand:
    """A NumPy array, or a scalar of NumPy or Python."""
    if not isinstance(value, (np.ndarray, np.generic)):
        value = _of_number(value, name, expected, shape)
    # An import of numpy.ma here could lose an exception of a signal handler.
    elif isinstance(value, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())):
        raise ArgumentError(
            f"{name} is a masked array, whose mask a kernel would ignore; use np.ma.where, or pass "
            f"{name}.filled() or {name}.data"
        )
    elif isinstance(value, np.generic) and not shape:
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
    try:
        element = element_type(tensor.dtype)
    except DTypeError:
        element = None
    _check_element(element, tensor.dtype, name, expected)
    if tensor.device.type != device.of_torch or tensor.layout != sys.modules["torch"].strided:
        raise ArgumentError(
            f"{name} is a {tensor.layout} tensor on {tensor.device}; expected a strided tensor on "
            f"{device.words}: pass {name}.{device.of_torch}()"
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
    if isinstance(value, tvm_ffi.Tensor) and not value.__chandle__():  # reading it would crash
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


def _check_distinct(shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> None:
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


def marked_written(out: Any) -> Any:
    """Tell torch's autograd that a tensor has changed, as torch's own functions do; return it."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(out, torch.Tensor):
        torch.autograd.graph.increment_version(out)
    return out


def _is_same_memory(view: npt.NDArray[Any], out: npt.NDArray[Any]) -> bool:
    """Whether two compact arrays are exactly the same memory."""
    same: bool = view.ctypes.data == out.ctypes.data
    return same and view.nbytes == out.nbytes and view.size == out.size
