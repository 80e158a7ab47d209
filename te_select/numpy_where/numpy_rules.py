"""What ``runtime/c/extension/extension.c`` leaves to Python: unusual operands and numpy.where."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.errors import caught
from te_select.numpy_where import bits, blocks, tensor_libraries
from te_select.numpy_where.kernels import library
from te_select.numpy_where.tensor_libraries import check_out
from te_select.operator import family
from te_select.runtime.call.extension import extension

# How many calls were left to numpy.where, by the reason.
left: Counter[str] = Counter()
# How many ``calls`` and ``large_calls`` kernels have served as pieces of others.
pieces: Counter[str] = Counter()
NUMBERS = (int, float, complex)

Array = np.ndarray[Any, Any]


def numpy_fallback(reason: str, /, *args: Any, **options: Any) -> Any:
    """Do a call that the C half has left.

    Parameters
    ----------
    reason
        Why it was left, in a word or two.
    args, options
        The arguments of `te_select.where`.

    Returns
    -------
    Any
        The result, or NotImplemented if the caller must call numpy.where, or make arrays of the
        operands. The caller does, so that NumPy's warnings name the line of the user.

    Raises
    ------
    TypeError
        If there is another keyword than ``out``, or out is not an array of the result's type.
    ValueError
        If out has another shape, or cannot be written.
    Exception
        Whatever numpy.where raises.
    """
    out = options.pop("out", None)
    if options:
        name = next(iter(options))
        raise TypeError(f"where() got an unexpected keyword argument {name!r}; expected out")
    if (of := tensor_libraries.find((*args, out))) is not None:
        return of(*args, out=out)
    if reason == "conversion":  # the C half makes arrays, so that warnings name the user's line
        mask = bits.unpacked(args[0])
        return NotImplemented if mask is None else _where(mask, *args[1:], out=out)
    if len(args) != 3 or reason == "arguments":  # noqa: PLR2004 - cond, x, y
        if out is not None:
            raise TypeError("where() takes out only with cond, x and y")
        return _leave("arguments")
    if reason == "promotion":
        return _promoted(*args, out=out)
    return _leave(reason) if out is None else _into(out, *args)


def _leave(reason: str) -> Any:
    left[reason] += 1
    return NotImplemented


def _where(*args: Any, out: Any = None) -> Any:
    from te_select.numpy_where import where  # noqa: PLC0415 - it imports this module

    return where(*args, out=out)


def _into(out: Any, cond: Any, x: Any, y: Any) -> Any:
    """Write the result to an array that the C half does not write."""
    check_array(out)
    result = _where(cond, x, y)
    check_out(out, result)
    np.copyto(out, result)
    return out


def check_array(out: Any) -> None:
    """Refuse an out that is not an array of NumPy, or cannot be written."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array")
    if not out.flags.writeable:
        raise ValueError("out is read-only; expected an array that can be written")


def _promoted(cond: Any, *sides: Any, out: Any) -> Any:
    """Select what the C half knows to be numbers, or arrays of which some are to be converted.

    A number becomes an array of the result's type, and the call starts anew.
    """
    given = as_sides(*sides)
    x, y, dtype = converted(*given)
    if dtype is not None:
        if x is not given[0] or y is not given[1]:
            return _where(cond, x, y, out=out)
        if not library.fetch(family.part_of_width(dtype.itemsize)):
            return _leave("no kernel") if out is None else _into(out, cond, x, y)
        mask = np.asarray(bool(cond) if type(cond) in NUMBERS else cond)
        if out is None or takes(out, [mask, x, y]):
            return _in_blocks(mask, x, y, dtype, out)
    return _leave("promotion") if out is None else _into(out, cond, *sides)


def as_sides(*sides: Any) -> list[Any]:
    """Arrays, and numbers of Python as they are."""
    return [side if type(side) in NUMBERS else np.asarray(side) for side in sides]


def converted(*sides: Any) -> tuple[Any, Any, np.dtype[Any] | None]:
    """Both sides, those converted that are single values, and the type of the result.

    The type is None if the conversions are NumPy's.
    """
    dtype = np.result_type(*sides)
    convert = _of_date if dtype.kind in "mM" else _of_number
    try:
        x, y = (convert(side, dtype) for side in sides)
    except caught(FloatingPointError, OverflowError):  # which numpy.where is to tell of
        return None, None, None
    return x, y, dtype


def _of_number(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as an array of a type; an error of NumPy if that loses more than digits."""
    if type(value) not in NUMBERS:
        return value
    with np.errstate(all="raise"):
        own = np.asarray(value, np.int64 if type(value) is int else None)
        return np.asarray(own.astype(dtype))


def _of_date(value: Any, dtype: np.dtype[Any]) -> Any:
    """Dates or durations of a type, or a single one of another unit, if nothing is lost by it."""
    own = getattr(value, "dtype", None)
    if own == dtype:
        return value
    # NumPy 2.4 crashes in some conversions of many.
    if own is None or own.kind != dtype.kind or value.size != 1:
        raise OverflowError
    is_generic = np.datetime_data(own)[0] == "generic"
    if np.isnat(value).all() or (is_generic and own.kind == "m"):
        return value.view(dtype)
    made = value.astype(dtype)
    if is_generic or made.astype(own) != value:
        raise OverflowError
    return made


def takes(out: Any, inputs: Sequence[Array]) -> bool:
    """Whether operands that are converted may be selected in out, without a copy of the result."""
    if extension.plan(True, out, out, out)[0] != "none":  # of another kind, or it overlaps itself
        return False
    return not any(np.may_share_memory(out, each) for each in inputs)


def _in_blocks(cond: Array, x: Array, y: Array, dtype: np.dtype[Any], out: Any) -> Array:
    """Select arrays that are converted block by block, in the layout that numpy.where chooses."""
    made = _new(cond, x, y, dtype)
    if out is not None:
        check_out(out, made)
        made = np.asarray(out)
    with np.errstate(all="ignore"):  # numpy.where says nothing of a signalling NaN
        sizes = blocks.select([(cond, x)], y, made, blocks.BLOCK // dtype.itemsize)
    large = sum(size > extension.LARGE for size in sizes) - (made.size > extension.LARGE)
    pieces.update(calls=len(sizes) - 1, large_calls=large)
    return made if out is None else out


def _new(cond: Array, x: Array, y: Array, dtype: np.dtype[Any]) -> Array:
    """A result as numpy.where lays it out; if that is C order, in memory that was kept."""
    flags = [["writeonly", "allocate", "no_subtype"], *[["readonly"]] * 3]
    nditer: Any = np.nditer  # its type stubs know no types of single operands
    like = nditer([None, cond, x, y], ["zerosize_ok"], flags, [dtype, None, None, None]).operands[0]
    made: Array = extension.empty(like.shape, dtype)
    return made if made.strides == like.strides else like
