"""What ``runtime/c/extension/extension.c`` leaves to Python: unusual operands and numpy.where."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.errors import caught
from te_select.numpy_where import bits, tensor_libraries
from te_select.numpy_where.kernels import library
from te_select.numpy_where.tensor_libraries import check_out
from te_select.operator import family
from te_select.runtime.call.extension import extension

# How many calls were left to numpy.where, by the reason.
left: Counter[str] = Counter()
# How many ``calls`` and ``large_calls`` kernels have served as pieces of others.
pieces: Counter[str] = Counter()
PIECE = 1 << 17  # bytes of the result; from 10^5 to 10^6 elements half and twice as many are slower
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
    if reason == "promotion" and (out is None or isinstance(out, np.ndarray)):  # the others are
        return _promoted(*args, out=out)
    if (of := tensor_libraries.find((*args, out))) is not None:
        return of(*args, out=out)
    if reason == "conversion":  # the C half makes arrays, so that warnings name the user's line
        mask = bits.unpacked(args[0])
        return NotImplemented if mask is None else _where(mask, *args[1:], out=out)
    if len(args) != 3 or reason == "arguments":  # noqa: PLR2004 - cond, x, y
        if out is not None:
            raise TypeError("where() takes out only with cond, x and y")
        return _leave("arguments")
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
    if not issubclass(type(out), np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array")
    if not out.flags.writeable:
        raise ValueError("out is read-only; expected an array that can be written")


def _promoted(cond: Any, *sides: Any, out: Array | None) -> Any:
    """Select what the C half knows to be numbers, or arrays of which some are to be converted.

    A number becomes an array of the result's type, and the call starts anew.
    """
    given = as_sides(*sides)
    x, y, dtype = converted(*given)
    if dtype is not None and (x is not given[0] or y is not given[1]):
        return _where(cond, x, y, out=out)
    is_served = dtype is not None and library.fetch(family.part_of_width(dtype.itemsize))
    inputs = [np.asarray(bool(cond) if type(cond) in NUMBERS else cond), x, y]
    if is_served and (out is None or takes(out, inputs)):
        return _in_pieces(inputs, dtype, out)
    reason = "promotion" if dtype is None else "no kernel"
    return _leave(reason) if out is None else _into(out, cond, *sides)


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


def takes(out: Array, inputs: Sequence[Array]) -> bool:
    """Whether operands that are converted may be selected in out, without a copy of the result."""
    shares = any(np.may_share_memory(out, each) for each in inputs)
    return not shares and extension.plan(True, out, out, out)[0] == "none"  # or it overlaps itself


def _in_pieces(inputs: Sequence[Array], dtype: Any, out: Array | None) -> Array:
    """Select arrays that NumPy converts piece by piece, in the layout that numpy.where chooses."""
    large = extension.LARGE
    nditer: Any = np.nditer  # its type stubs know no types of single operands
    shape = nditer(inputs, ["multi_index", "zerosize_ok"]).shape
    if out is not None:
        check_out(out, np.broadcast_to(np.empty((), dtype), shape))
    elif all(each.flags.c_contiguous for each in inputs):
        out = extension.empty(shape, dtype)  # its memory may have been kept
    with np.errstate(all="ignore"):  # numpy.where says nothing of a signalling NaN
        iterator = nditer(
            [out, *inputs],
            flags=["external_loop", "buffered", "zerosize_ok"],
            op_flags=[["writeonly", "allocate", "no_subtype"], *[["readonly"]] * 3],
            op_dtypes=[dtype, np.dtype(bool), dtype, dtype],
            casting="unsafe",
            buffersize=PIECE // dtype.itemsize,
        )
        with iterator:
            made: Array = iterator.operands[0]
            pieces.subtract({"calls": 1, "large_calls": int(made.size > large)})
            for piece, *given in iterator:
                _where(*given, out=piece)
                pieces.update({"calls": 1, "large_calls": int(piece.size > large)})
    return made
