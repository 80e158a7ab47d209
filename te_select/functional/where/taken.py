"""What the kernels take as it is, and what numpy.where is left: as the extension decides it."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

SMALL = 1 << 14  # elements: larger arrays are converted in pieces, which stay in the cache
LARGE = 4096  # elements of a call that the statistics count as a large one
LARGEST_ELEMENT = 16  # bytes
NUMBERS = (int, float, complex)
_FIRST_OF_USERS, _FIRST_OF_NEW_TYPES = 256, 2048  # of types that users have added, by number
_EXACT_IN_HALF = 2048
_NUMPYS_RULE = np.ndarray.__array_function__
_NORMAL = {"e": (2.0**-14, 65504.0), "f": (2.0**-126, float(np.finfo("f4").max))}

Array = np.ndarray[Any, Any]


class Left(Exception):
    """A call is not for the kernels; its text is the reason, in a word or two."""


def moves(dtype: np.dtype[Any]) -> bool:
    """Whether elements can be moved as bits, and nothing about the type is lost by it."""
    if not 0 < dtype.itemsize <= LARGEST_ELEMENT or not dtype.isnative:
        return False
    if dtype.metadata or dtype.hasobject:
        return False
    if dtype.num >= _FIRST_OF_USERS:
        return dtype.num < _FIRST_OF_NEW_TYPES
    if dtype.char == "V":
        return dtype.fields is None and dtype.subdtype is None
    return dtype.kind in "biufcmMSU" and dtype.char not in "gG"


def operands(cond: Any, x: Any, y: Any) -> tuple[Array, Array, Array, np.dtype[Any]]:
    """Make arrays of what kernels can select.

    Parameters
    ----------
    cond, x, y
        The arguments of the call.

    Returns
    -------
    tuple
        cond as boolean, x and y with elements of the result's type, and that type.

    Raises
    ------
    Left
        If the kernels do not take them; ``"promotion"`` where a large array is to be converted.
    """
    x, y = _side(x), _side(y)
    flags = _cond(cond)  # last: of its type, another library of x or y may think otherwise
    dtype = _common(x, y)
    if not moves(dtype):
        raise Left("element type")
    return flags, _converted(x, dtype), _converted(y, dtype), dtype


def number(value: Any, dtype: np.dtype[Any]) -> Array:
    """A Python number as an array of a type.

    Raises
    ------
    Left
        If NumPy would warn or fail, or round in a way of its own.
    """
    char = dtype.char
    if type(value) is int:
        exact = char != "e" or abs(value) <= _EXACT_IN_HALF
        if not exact or not -(2**63) <= value < 2**63:
            raise Left("number")
    elif char.lower() in _NORMAL:
        bounds = _NORMAL[char.lower()]
        parts = (value.real, value.imag) if type(value) is complex else (value,)
        if not all(_is_quiet(part, *bounds) for part in parts):
            raise Left("number")
    return np.asarray(np.asarray(value).astype(dtype))


def has_own_rule(value: Any) -> bool:
    """Whether a value's type has an ``__array_function__`` of its own, which NumPy then calls."""
    try:
        rule = type(value).__array_function__
    except Exception:  # whatever a metaclass raises, as NumPy does
        return False
    return rule is not _NUMPYS_RULE


def _cond(value: Any) -> Array:
    if type(value) in NUMBERS:
        return np.asarray(bool(value))
    found = _array(value)
    if not _is_number(found.dtype):
        raise Left("element type")
    return _small(found, np.dtype(bool))


def _side(value: Any) -> Any:
    return value if type(value) in NUMBERS else _array(value)


def _array(value: Any) -> Array:
    if isinstance(value, np.ndarray) and not has_own_rule(value):
        return np.asarray(value)
    if is_scalar(value):
        return np.asarray(value)
    raise Left("kind of operand")


def is_scalar(value: Any) -> bool:
    """Whether a value is a bool or a scalar of NumPy; a subclass may have a rule of its own."""
    return type(value) is bool or (
        isinstance(value, np.generic) and value.dtype.type is type(value)
    )


def _common(x: Any, y: Any) -> np.dtype[Any]:
    """The type of the result."""
    arrays = [side for side in (x, y) if type(side) not in NUMBERS]
    if len(arrays) == 1:
        dtype: np.dtype[Any] = arrays[0].dtype
        if not _yields(y if arrays[0] is x else x, dtype):
            raise Left("promotion")
        return dtype
    try:
        return np.result_type(*(side.dtype if arrays else type(side) for side in (x, y)))
    except (TypeError, ValueError):  # NumPy itself is to say why
        raise Left("element type") from None


def _yields(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a number leaves the type of an array as it is."""
    kinds = {int: "iufc", float: "fc", complex: "c"}[type(value)]
    return dtype.kind in kinds and _is_number(dtype)


def _converted(side: Any, dtype: np.dtype[Any]) -> Array:
    if type(side) in NUMBERS:
        return number(side, dtype)
    own = side.dtype
    if own == dtype:
        return side  # type: ignore[no-any-return]
    # Bytes to text may fail, and NumPy converts what is selected only.
    if not moves(own) or (dtype.char in "SUV" and own.char != dtype.char):
        raise Left("element type")
    if dtype.kind in "mM":  # NumPy 2.4 crashes in some conversions of their units
        raise Left("promotion")
    return _small(side, dtype)


def _small(array: Array, dtype: np.dtype[Any]) -> Array:
    if array.dtype == dtype:
        return array
    if array.size > SMALL:
        raise Left("promotion")
    return converted(array, dtype)


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array in a type that holds its values; of a signalling NaN, numpy.where says nothing."""
    with np.errstate(all="ignore"):
        return array.astype(dtype, copy=False)


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of NumPy's own numbers, or bool."""
    return dtype.kind in "biufc" and dtype.num < _FIRST_OF_USERS


def _is_quiet(value: float, lowest: float, highest: float) -> bool:
    """Whether converting a number raises none of the flags that NumPy looks at."""
    if value == 0 or math.isinf(value):
        return True
    if math.isnan(value):
        return bool(struct.unpack("<q", struct.pack("<d", value))[0] >> 51 & 1)
    return lowest <= abs(value) <= highest
