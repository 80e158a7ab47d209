"""The same calls where the extension was not built: by Python, and one function through tvm-ffi."""

from __future__ import annotations

import math
import sys
from types import FunctionType
from typing import Any

import numpy as np

from te_select.functional.where import numpy_rules
from te_select.functional.where.counts import count
from te_select.functional.where.kernels import library
from te_select.functional.where.kinds_of_tensors import by_type, find
from te_select.functional.where.shapes import joined
from te_select.functional.where.taken import NUMBERS, Left, has_own_rule, is_scalar, operands
from te_select.functional.where.through_ctypes import overlaps, select
from te_select.operator import family

_MISSING: Any = object()
_ARRAY, _BOOL, _empty = np.ndarray, np.dtype(bool), np.empty
_TYPES = "?bBhHiIlLqQefdFD"  # those of DLPack
_TAKE_INT, _TAKE_FLOAT = "bBhHiIlLqQfd", "fd"
_NUMPY_WHERE = (lambda where, given: where(*given)).__code__  # a single line

_entries: dict[Any, Any] = {}
"""By the element type: the two functions of the family, once the kernels for it are there."""


def where(
    cond: Any = _MISSING, x: Any = _MISSING, y: Any = _MISSING, /, *more: Any, **options: Any
) -> Any:
    """Select; see `te_select.where`."""
    if type(cond) is _ARRAY and cond.dtype is _BOOL and y is not _MISSING:
        like, other = (x, y) if type(x) is _ARRAY else (y, x)
        if type(like) is _ARRAY and not more and (not options or [*options] == ["out"]):
            dtype = like.dtype
            found = None
            compact, entry = _entries.get(dtype) or _fetch(dtype)
            if compact is not None and dtype.metadata is None and _goes(other, dtype):
                if not options and like.flags.c_contiguous:
                    found = _called(compact, cond, x, y, _empty(like.shape, dtype))
                if found is None:
                    found = _select(entry, cond, x, y, dtype, options.get("out"))
                if found is not None:
                    return found
    elif type(cond) in by_type and y is not _MISSING and not (more or options.keys() - {"out"}):
        found = by_type[type(cond)](cond, x, y, **options)
        if found is not None:
            return found
    given = tuple(value for value in (cond, x, y, *more) if value is not _MISSING)
    if len(given) == 3 and not options.keys() - {"out"}:  # noqa: PLR2004 - cond, x, y
        given = _as_arrays(given, options.get("out"))
    found = _others(given, options)
    return _at_the_caller(given) if found is NotImplemented else found


def _at_the_caller(given: tuple[Any, ...]) -> Any:
    """Call numpy.where from a frame that names the user's line, as its warnings are to do."""
    try:
        frame = sys._getframe(2)
    except ValueError:  # the user is no Python code
        return numpy_rules.numpys_where(*given)
    code = _NUMPY_WHERE.replace(
        co_filename=frame.f_code.co_filename, co_firstlineno=frame.f_lineno or 1
    )
    return FunctionType(code, frame.f_globals)(numpy_rules.numpys_where, given)


def _as_arrays(given: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """Operands as numpy.where converts them; as they are, if another library's rule holds."""
    arrays = (np.ndarray, bool)
    if all(isinstance(v, arrays) or type(v) in NUMBERS or is_scalar(v) for v in given):
        return given
    if any(map(has_own_rule, given)) or find((*given, out)) is not None:
        return given
    return tuple(value if type(value) in NUMBERS else np.asarray(value) for value in given)


def _others(given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What DLPack does not take, as the extension does it; NotImplemented for numpy.where."""
    out, reason = options.get("out"), "arguments"
    if len(given) == 3 and not options.keys() - {"out"}:  # noqa: PLR2004 - cond, x, y
        try:
            return _select_any(*given, out)
        except Left as why:
            reason = str(why)
    if out is None and reason in {"element type", "number", "shape"}:
        numpy_rules.left[reason] += 1
        return NotImplemented
    return numpy_rules.leave(reason, *given, **options)


def _select_any(cond: Any, x: Any, y: Any, out: Any) -> Any:
    """Select operands that kernels take, whether DLPack does or not.

    Raises
    ------
    Left
        If the kernels do not take them.
    """
    *inputs, dtype = operands(cond, x, y)
    shape = joined(*(array.shape for array in inputs))
    if shape is None or not 0 < math.prod(shape) < 1 << 63:
        raise Left("shape")
    if out is None:
        with_layout = cond if isinstance(cond, np.ndarray) else inputs[0]  # not a large int
        made = numpy_rules.fresh(with_layout, x, y, dtype)
    elif isinstance(out, _ARRAY) and out.dtype == dtype and out.shape == shape:
        if has_own_rule(out) or not out.flags.writeable or overlaps(inputs, out):
            raise Left("out")
        made = out
    else:
        raise Left("out")
    flags, then, else_ = inputs
    if not library.fetch(family.part_of_width(dtype.itemsize)):
        raise Left("no kernel")
    if (outcome := select(flags, then, else_, made)) < 0:
        raise Left("no kernel")
    count(made.size, outcome)
    return made


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
    """The functions for elements of a type; None where there are none."""
    if dtype.char not in _TYPES or not dtype.isnative or dtype.metadata is not None:
        return None, None
    if not library.fetch(family.part_of_width(dtype.itemsize)):
        return None, None
    names = (family.COMPACT_FUNCTION, family.FUNCTION)
    return _entries.setdefault(dtype, tuple(map(library.function, names)))


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
    return _called(entry, cond, x, y, made)


def _called(entry: Any, cond: Any, x: Any, y: Any, made: Any) -> Any:
    """Call a function of the family; None where it does not take the operands."""
    size = made.size
    if not size:
        return None
    try:
        outcome = entry(cond, x, y, made)
    except (TypeError, ValueError, RuntimeError, BufferError):  # DLPack or the function refuses
        return None
    if outcome < 0:
        return None
    count(size, outcome)
    return made
