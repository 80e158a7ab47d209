"""The same calls where the extension was not built: by Python, and one function through tvm-ffi."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from te_select.functional.where import numpy_rules
from te_select.functional.where.kernels import library
from te_select.functional.where.kinds_of_tensors import by_type
from te_select.functional.where.shapes import joined
from te_select.operator import family

_ARRAY, _BOOL, _empty = np.ndarray, np.dtype(bool), np.empty
_WORTH = 1 << 22  # elements that a kernel of rows must serve, as in the extension
_LARGE = 4096
_TYPES = "?bBhHiIlLqQefdFD"  # those of DLPack
_TAKE_INT, _TAKE_FLOAT = "bBhHiIlLqQfd", "fd"

_entries: dict[Any, Any] = {}
"""By the element type: the function, once the kernels for it are there."""
_counted = [0, 0, 0]
_wishes: dict[int, int] = {}


def where(cond: Any, x: Any = ..., y: Any = ..., /, *, out: Any = None) -> Any:
    """Select; see `te_select.where`."""
    if type(cond) is _ARRAY and cond.dtype is _BOOL:
        like = x if type(x) is _ARRAY else y
        if type(like) is _ARRAY:
            dtype = like.dtype
            entry = _entries.get(dtype) or _fetch(dtype)
            if entry is not None and _goes(x, dtype) and _goes(y, dtype):
                found = _select(entry, cond, x, y, dtype, out)
                if found is not None:
                    return found
    elif type(cond) in by_type and y is not ...:
        return by_type[type(cond)](cond, x, y, out=out)
    reason = "kind of operand" if y is not ... else "arguments"
    given = tuple(itertools.takewhile(lambda value: value is not ..., (cond, x, y)))
    options = {} if out is None else {"out": out}
    result = numpy_rules.leave(reason, *given, **options)
    return np.where(*given) if result is NotImplemented else result


def counts() -> tuple[int, int, int, dict[str, int]]:
    """Calls and elements that kernels have served, and calls of many elements."""
    calls, elements, large = _counted
    return calls, elements, large, {}


def _goes(side: Any, dtype: np.dtype[Any]) -> bool:
    """Whether an operand goes as it is: an array of this type, or a number that yields to it."""
    kind = type(side)
    if kind is _ARRAY:
        return side.dtype is dtype
    if kind is int:
        return dtype.char in _TAKE_INT and -(2**63) <= side < 2**63
    if kind is not float or dtype.char not in _TAKE_FLOAT:
        return False
    # As a float32 without a flag that NumPy looks at.
    return dtype.char == "d" or side == 0 or 1.2e-38 < abs(side) < 3.4e38  # noqa: PLR2004


def _fetch(dtype: np.dtype[Any]) -> Any:
    """The function for elements of a type; None where there is none."""
    if dtype.char not in _TYPES or not dtype.isnative or dtype.metadata is not None:
        return None
    if not library.fetch(family.part_of_width(dtype.itemsize)):
        return None
    return _entries.setdefault(dtype, library.function(family.FUNCTION))


def _select(entry: Any, cond: Any, x: Any, y: Any, dtype: Any, out: Any) -> Any:
    """Select by the kernels; None where they do not take the operands."""
    shape = cond.shape
    contiguous = cond.flags.c_contiguous
    for side in (x, y):
        if type(side) is _ARRAY:
            if side.shape != shape:
                shape = joined(shape, side.shape)
                if shape is None:
                    return None
            contiguous = contiguous and side.flags.c_contiguous
    if out is None:
        made = _empty(shape, dtype) if contiguous else numpy_rules.fresh(cond, x, y, dtype)
    elif type(out) is _ARRAY and out.dtype is dtype and out.shape == shape:
        made = out
    else:
        return None
    size = made.size
    if not size:
        return None
    try:
        outcome = entry(cond, x, y, made)
    except (TypeError, ValueError, RuntimeError, BufferError):  # DLPack or the function refuses
        return None
    if outcome < 0:
        return None
    _counted[0] += 1
    _counted[1] += size
    if size > _LARGE:
        _counted[2] += 1
    if outcome:
        _note_wish(outcome - 1, size)
    return made


def _note_wish(wish: int, size: int) -> None:
    """Count what a kernel of rows would have served, and fetch it when it is worth its building."""
    before = _wishes.get(wish, 0)
    if before < 0:
        return
    _wishes[wish] = before + size
    if before + size >= _WORTH:
        _wishes[wish] = -1
        library.fetch(family.wished_part(wish))
