"""Operands of random bits, what NumPy selects of them, and the comparison with it, bit for bit."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from te_select.operator.broadcast import Shape
from te_select.operator.dtypes import numpy_dtype
from te_select.operator.workload import Workload

Array = npt.NDArray[Any]

_CHUNK = 1 << 22  # elements compared at once, so that a comparison needs little extra memory

FLOAT_FIELDS = {  # bits of exponent and fraction
    "float8_e4m3fn": (4, 3),
    "float8_e5m2": (5, 2),
    "float16": (5, 10),
    "bfloat16": (8, 7),
    "float32": (8, 23),
    "float64": (11, 52),
    "complex64": (8, 23),
    "complex128": (11, 52),
}


def bits(array: Array) -> Array:
    """View an array as unsigned integers; elements of 16 bytes get a trailing axis of two."""
    if array.dtype.itemsize > np.dtype(np.uint64).itemsize:
        return array[..., None].view(np.uint64)
    return array.view(f"u{array.dtype.itemsize}")


def placed(workload: Workload, cond: Array, then: Array, else_: Array) -> tuple[Array, ...]:
    """Broadcast the three operands to the output's shape under the workload's own rule.

    Parameters
    ----------
    workload
        The workload, of int dims only.
    cond, then, else_
        The operands, in the workload's shapes.

    Returns
    -------
    tuple of arrays
        Views in the output's shape.
    """
    out_shape = ints(workload.out_shape)
    operands = aligned(workload, cond, then, else_)
    return tuple(np.broadcast_to(operand, out_shape) for operand in operands)


def aligned(workload: Workload, cond: Array, then: Array, else_: Array) -> tuple[Array, ...]:
    """The three operands with an axis for each of the output's, of extent 1 if they lack it."""
    views = []
    for operand, axes in zip((cond, then, else_), workload.broadcast.axes, strict=True):
        shape = [1] * len(workload.out_shape)
        for size, axis in zip(operand.shape, axes, strict=True):
            if axis is not None:
                shape[axis] = size
        views.append(operand.reshape(shape))
    return tuple(views)


def ints(shape: Shape) -> tuple[int, ...]:
    """The shape of a workload that has no named dims, as ints."""
    return tuple(dim for dim in shape if isinstance(dim, int))


def first_difference(out: Array, cond: Array, then: Array, else_: Array) -> str:
    """Find the first element of ``out`` whose bits are not those that NumPy selects.

    Parameters
    ----------
    out, cond, then, else_
        Arrays of one shape; ``cond`` is true where its byte is not 0.

    Returns
    -------
    str
        Index and both bit patterns; empty if there is no difference.
    """
    words = bits(out)
    parts = 2 if words.ndim > out.ndim else 1
    mask = cond[..., None] if parts > 1 else cond
    begun = 0
    operands = (words, mask.view(np.uint8), bits(then), bits(else_))
    flags: Final = ("external_loop", "buffered", "zerosize_ok")
    for got, chosen, taken, left in np.nditer(operands, flags, order="C", buffersize=_CHUNK):
        wrong = np.flatnonzero(got != np.where(chosen, taken, left))
        if wrong.size:
            place = np.unravel_index((begun + int(wrong[0])) // parts, out.shape)
            expected = then if cond.view(np.uint8)[place] else else_
            found, wanted = (np.asarray(each[place]).tobytes()[::-1] for each in (out, expected))
            index = ",".join(str(int(i)) for i in place)
            return f"out[{index}] is 0x{found.hex()}, NumPy selects 0x{wanted.hex()}"
        begun += got.size
    return ""


def special_bits(dtype: str) -> Array:
    """Bit patterns of an element type that a copy keeps and arithmetic may change.

    Parameters
    ----------
    dtype
        The element type.

    Returns
    -------
    array of unsigned integers
        For floats: zeros, infinities, quiet and signalling NaNs with payloads, the ends of the
        subnormals and the largest number. For other types: the ends of the range. Complex types get
        the patterns of their parts.
    """
    if dtype not in FLOAT_FIELDS:
        width = numpy_dtype(dtype).itemsize
        top = 1 << (8 * width - 1)
        return np.array([0, 1, 2, top - 1, top, 2 * top - 1], f"u{width}")
    exponent, fraction = FLOAT_FIELDS[dtype]
    infinity = ((1 << exponent) - 1) << fraction
    sign = 1 << (exponent + fraction)
    payload = (1 << fraction) - 1
    quiet = 1 << (fraction - 1)
    positive = (0, infinity, infinity | 1, infinity | quiet, infinity | payload, 1, payload)
    patterns = [p | s for p in (*positive, infinity - 1) for s in (0, sign)]
    return np.array(patterns, f"u{(1 + exponent + fraction) // 8}")
