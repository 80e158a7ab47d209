"""What NumPy selects, and the comparison with it, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

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
    places = workload.broadcast
    views = []
    for operand, axes in (
        (cond, places.cond_axes),
        (then, places.then_axes),
        (else_, places.else_axes),
    ):
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
    for part in _chunks(out.shape):
        chosen = (*part, ...)
        found = _difference(out[chosen], cond[chosen], then[chosen], else_[chosen])
        if found is None:
            continue
        local, got, expected = found
        start = [place.start if isinstance(place, slice) else place for place in part]
        if part and isinstance(part[-1], slice):
            local = (local[0] + start.pop(), *local[1:])
        index = ",".join(str(i) for i in (*start, *local))
        return f"out[{index}] is 0x{got.hex()}, NumPy selects 0x{expected.hex()}"
    return ""


def _chunks(shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Cut a shape into parts of at most `_CHUNK` elements along its outer axes."""
    size = math.prod(shape)
    if size <= _CHUNK:
        yield ()
        return
    inner = size // shape[0]
    if inner > _CHUNK:
        for i in range(shape[0]):
            for rest in _chunks(shape[1:]):
                yield (i, *rest)
        return
    step = _CHUNK // inner
    for start in range(0, shape[0], step):
        yield (slice(start, start + step),)


def _difference(
    out: Array, cond: Array, then: Array, else_: Array
) -> tuple[tuple[int, ...], bytes, bytes] | None:
    got = bits(out)
    mask = cond.view(np.uint8) != 0
    if got.ndim > out.ndim:
        mask = mask[..., None]
    expected = np.where(mask, bits(then), bits(else_))
    wrong = np.asarray(got != expected)
    if not wrong.any():
        return None
    flat = int(np.argmax(wrong))
    index = tuple(int(i) for i in np.unravel_index(flat, wrong.shape))[: out.ndim]
    big_endian = [np.asarray(words[index]).tobytes()[::-1] for words in (got, expected)]
    return index, big_endian[0], big_endian[1]


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
    infinity, sign = ((1 << exponent) - 1) << fraction, 1 << (exponent + fraction)
    payload, quiet = (1 << fraction) - 1, 1 << (fraction - 1)
    positive = (0, infinity, infinity | 1, infinity | quiet, infinity | payload, 1, payload)
    patterns = [p | s for p in (*positive, infinity - 1) for s in (0, sign)]
    return np.array(patterns, f"u{(1 + exponent + fraction) // 8}")
