"""The same calls where the extension was not built: by Python, and one function through tvm-ffi."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from te_select.functional.where import library, numpy_rules
from te_select.functional.where.family import part_of_width, wished_part

_ARRAY = np.ndarray
_BOOL = np.dtype(bool)
_FEW = 1 << 22  # elements that a kernel of rows must be worth, as in the extension
_LARGE = 4096
_NUMBERS = "fdbBhHiIlLqQ"
_TYPES = f"{_NUMBERS}?eFD"  # those of DLPack, in native order as `is` has it

_function: Any = None
_calls = _elements = _large = 0
_wishes: dict[int, int] = {}


def where(cond: Any, x: Any = ..., y: Any = ..., /, *, out: Any = None, **options: Any) -> Any:
    """Select; see `te_select.where`."""
    if x is ... or y is ...:
        given = tuple(value for value in (cond, x, y) if value is not ...)
        return _leave("arguments", *given, out=out, **options)
    kind = type(x)
    if type(cond) is _ARRAY and cond.dtype is _BOOL and not options:
        like = x if kind is _ARRAY else y
        if type(like) is _ARRAY and _fits(x, like) and _fits(y, like):
            found = _select(cond, x, y, like, out)
            if found is not None:
                return found
    return _leave("kind of operand", cond, x, y, out=out, **options)


def counts() -> tuple[int, int, int, dict[str, int]]:
    """Calls and elements that kernels have served; those of many elements; no reasons of its own."""
    return _calls, _elements, _large, {}


def _fits(side: Any, like: np.ndarray[Any, Any]) -> bool:
    """Whether an operand goes as it is: an array of one type, or a number that yields to it."""
    kind = type(side)
    if kind is _ARRAY:
        same = side.dtype is like.dtype and like.dtype.char in _TYPES
        return same and side.flags.writeable  # DLPack refuses what is read-only
    if like.dtype.char not in _NUMBERS:
        return False
    if kind is int:
        return -(2**63) <= side < 2**63
    return kind is float and (like.dtype.char == "d" or (like.dtype.char == "f" and _is_narrow(side)))


def _is_narrow(number: float) -> bool:
    """Whether a number becomes a float32 without a flag that NumPy looks at."""
    return number == 0 or 1.2e-38 < abs(number) < 3.4e38 or number in (np.inf, -np.inf)


def _select(cond: Any, x: Any, y: Any, like: Any, out: Any) -> Any:
    """Select by the kernels; None where they do not take the operands."""
    global _calls, _elements, _large  # noqa: PLW0603 - counters
    arrays = [value for value in (cond, x, y) if type(value) is _ARRAY]
    shape = cond.shape
    if any(array.shape != shape for array in arrays):
        try:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            return None
    if out is None:
        if all(array.flags.c_contiguous for array in arrays):
            made = np.empty(shape, like.dtype)
        else:
            made = numpy_rules.fresh(cond, x, y, like.dtype)
    elif type(out) is _ARRAY and out.dtype is like.dtype and out.shape == shape:
        made = out
    else:
        return None
    size = made.size
    if not size:
        return None
    try:
        outcome = _entry(like.dtype.itemsize)(cond, x, y, made)
    except (TypeError, ValueError, RuntimeError, BufferError):  # what DLPack or the function refuses
        return None
    if outcome < 0:
        return None
    _calls += 1
    _elements += size
    _large += size > _LARGE
    if outcome:
        _note_wish(outcome - 1, size)
    return made


def _entry(width: int) -> Any:
    """The function, with kernels for elements of so many bytes."""
    global _function  # noqa: PLW0603 - found once
    if not library.fetch(part_of_width(width)):
        raise RuntimeError("there are no kernels")
    if _function is None:
        _function = library.function("te_select_where")
    return _function


def _note_wish(wish: int, size: int) -> None:
    before = _wishes.get(wish, 0)
    if 0 <= before and before + size >= _FEW:
        library.fetch(wished_part(wish))
        _wishes[wish] = -1
    elif before >= 0:
        _wishes[wish] = before + size


def _leave(reason: str, *args: Any, **options: Any) -> Any:
    if options.get("out", ...) is None:
        del options["out"]
    result = numpy_rules.leave(reason, *args, **options)
    return np.where(*args) if result is NotImplemented else result


__signature__ = inspect.signature(where)
