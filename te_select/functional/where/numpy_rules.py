"""Calls that the C half leaves to Python: promotion, unusual outputs, and numpy.where itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from te_select.functional.where import tensor_libraries
from te_select.functional.where.kernels import library
from te_select.operator import family

numpys_where = np.where  # it stays, if a program sets numpy.where to te_select.where
left: Counter[str] = Counter()
"""How many calls were left to numpy.where, by the reason."""
pieces: Counter[str] = Counter()
"""How many ``calls``, all of them large, kernels have served as pieces of others."""
_NUMBERS = (int, float, complex)

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
        return NotImplemented
    if len(args) != 3 or reason == "arguments":  # noqa: PLR2004 - cond, x, y
        if out is not None:
            raise TypeError("where() takes out only with cond, x and y")
        return _leave("arguments")
    if out is not None:
        return _into(out, *args)
    return _promoted(*args) if reason == "promotion" else _leave(reason)


def _leave(reason: str) -> Any:
    left[reason] += 1
    return NotImplemented


def _where(*args: Any, out: Any = None) -> Any:
    from te_select.functional.where import where  # noqa: PLC0415 - it imports this module

    return where(*args, out=out)


def _into(out: Any, cond: Any, x: Any, y: Any) -> Any:
    """Write the result to an array that the C half does not write."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array")
    result = _where(cond, x, y)
    if out.dtype != result.dtype:
        raise TypeError(f"out has element type {out.dtype}; expected {result.dtype}")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; expected {result.shape}")
    np.copyto(out, result)
    return out


def _promoted(cond: Any, *sides: Any) -> Any:
    """Select operands of which the C half knows that they are numbers, or arrays to be converted.

    A number becomes an array of the result's type. Large arrays are converted in pieces.
    """
    given = [side if type(side) in _NUMBERS else np.asarray(side) for side in sides]
    dtype = np.result_type(*given)
    if dtype.kind in "mM":  # NumPy 2.4 crashes in some conversions of their units
        return _leave("promotion")
    try:
        x, y = (_of_number(side, dtype) if type(side) in _NUMBERS else side for side in given)
    except (FloatingPointError, OverflowError):  # which numpy.where is to tell of
        return _leave("promotion")
    if x is not given[0] or y is not given[1]:
        return _where(cond, x, y)
    if not library.fetch(family.part_of_width(dtype.itemsize)):
        return _leave("no kernel")
    flags = np.asarray(bool(cond) if type(cond) in _NUMBERS else cond)
    out = _fresh(flags, x, y, dtype)
    _fill(flags, x, y, out)
    return out


def _of_number(value: Any, dtype: np.dtype[Any]) -> Array:
    """A number as an array of a type; an error of NumPy if that loses more than digits."""
    with np.errstate(all="raise"):
        own = np.asarray(value, np.int64 if type(value) is int else None)
        return np.asarray(own.astype(dtype))


def _fresh(cond: Array, x: Array, y: Array, dtype: np.dtype[Any]) -> Array:
    """A new array with the layout that numpy.where would choose for these operands."""
    iterator: Any = np.nditer  # its type stubs know no types of single operands
    made = iterator(
        [None, cond, x, y],
        flags=["external_loop", "buffered", "delay_bufalloc", "zerosize_ok"],
        op_flags=[["writeonly", "allocate", "no_subtype"], *[["readonly"]] * 3],
        op_dtypes=[dtype, None, None, None],
        casting="unsafe",
    )
    out: Array = made.operands[0]
    return out


def _fill(cond: Array, x: Array, y: Array, out: Array) -> None:
    """Select in pieces, which the C half converts; broadcast operands are converted as a whole."""
    pieces["calls"] -= 1
    with np.errstate(all="ignore"):  # numpy.where says nothing of a signalling NaN
        inputs = []
        for value, dtype in ((cond, np.dtype(bool)), (x, out.dtype), (y, out.dtype)):
            whole = _converted(value, dtype) if value.size < out.size else value
            inputs.append(whole.reshape((1,) * (out.ndim - value.ndim) + value.shape))
        is_converted = [value.dtype for value in inputs] == [bool, out.dtype, out.dtype]
        most = out.size if is_converted else library.extension.LARGEST_CONVERTED
        pending = [(*inputs, out)]
        while pending:
            *given, target = pending.pop()
            if target.size > most:
                pending += _halves(*given, target)
            else:
                pieces["calls"] += 1
                _where(*given, out=target)


def _converted(array: Array, dtype: np.dtype[Any]) -> Array:
    return array.astype(dtype, copy=False)


def _halves(*operands: Array) -> Iterator[tuple[Array, ...]]:
    """Both halves of a call along the axis whose steps are the largest; out is the last operand."""
    out = operands[-1]
    moving = (axis for axis in range(out.ndim) if out.shape[axis] > 1)
    axis = max(moving, key=lambda axis: abs(out.strides[axis]))
    half = out.shape[axis] // 2
    for part in (slice(half, None), slice(None, half)):
        index = (slice(None),) * axis + (part,)
        yield tuple(each if each.shape[axis] == 1 else each[index] for each in operands)
