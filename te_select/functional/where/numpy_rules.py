"""Calls that the C half leaves to Python: promotion, unusual outputs, and numpy.where itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from te_select.functional.where import kinds_of_tensors
from te_select.functional.where.kernels import library
from te_select.functional.where.taken import NUMBERS, SMALL, converted, is_scalar, moves
from te_select.operator import family

numpys_where = np.where  # it stays, if a program sets numpy.where to te_select.where
left: Counter[str] = Counter()
"""How many calls were left to numpy.where, by the reason."""
pieces: Counter[str] = Counter()
"""How many ``calls``, all of them large, kernels have served as pieces of others."""


def leave(reason: str, /, *args: Any, **options: Any) -> Any:
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
    if (of := kinds_of_tensors.find((*args, out))) is not None:
        return of(*args, out=out)
    if reason == "conversion":  # the C half makes arrays, so that warnings name the user's line
        return NotImplemented
    if len(args) != 3 or reason == "arguments":  # noqa: PLR2004 - cond, x, y
        if out is not None:
            raise TypeError("where() takes out only with cond, x and y")
        left["arguments"] += 1
        return NotImplemented
    cond, x, y = args
    if out is not None:
        return _into(out, reason, cond, x, y)
    if reason == "promotion":
        return _promoted(cond, x, y)
    left[reason] += 1
    return NotImplemented


def _into(out: Any, reason: str, cond: Any, x: Any, y: Any) -> Any:
    """Write the result to an array that the C half does not write."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array")
    if reason == "out":  # because of its layout, or because it shares memory with an input
        reason = "promotion"
    result = leave(reason, cond, x, y)
    if result is NotImplemented:
        result = numpys_where(cond, x, y)
    if out.dtype != result.dtype:
        raise TypeError(f"out has element type {out.dtype}; expected {result.dtype}")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; expected {result.shape}")
    np.copyto(out, result)
    return out


def _promoted(cond: Any, x: Any, y: Any) -> Any:
    """Select operands of several types; each is converted once, large ones in pieces."""
    if not (_has_a_type(x) and _has_a_type(y)):
        left["promotion"] += 1
        return NotImplemented
    dtype = np.result_type(x, y)
    if dtype.kind in "mM":  # NumPy 2.4 crashes in some conversions of their units
        left["promotion"] += 1
        return NotImplemented
    flags, then, else_ = _as_array(cond, np.dtype(bool)), _as_array(x, dtype), _as_array(y, dtype)
    if flags is None or then is None or else_ is None or not moves(dtype):
        left["promotion"] += 1
        return NotImplemented
    if not library.fetch(family.part_of_width(dtype.itemsize)):
        left["no kernel"] += 1
        return NotImplemented
    out = fresh(cond, x, y, dtype)
    _fill(flags, then, else_, out)
    return out


def _has_a_type(side: Any) -> bool:
    """Whether np.result_type takes the type of a value; it reads a text as the name of a type."""
    if isinstance(side, np.ndarray) or type(side) in NUMBERS:
        return True
    return is_scalar(side) and not isinstance(side, (str, bytes))


def _as_array(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """An operand as an array, of the wanted type unless it is large; None for odd ones."""
    if type(value) in NUMBERS:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return None
        try:
            with np.errstate(all="raise"):
                return np.asarray(np.asarray(value).astype(dtype))
        except FloatingPointError:  # which numpy.where is to tell of
            return None
    if not isinstance(value, np.ndarray) and not is_scalar(value):
        return None
    array = np.asarray(value)
    if not moves(array.dtype) or (dtype.char in "SUV" and array.dtype.char != dtype.char):
        return None  # bytes to text may fail, and NumPy converts what is selected only
    return array if array.size > SMALL else converted(array, dtype)


def fresh(cond: Any, x: Any, y: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A new array with the layout that numpy.where would choose for these operands."""
    iterator: Any = np.nditer  # its type stubs know no types of single operands
    made = iterator(
        [None, cond, x, y],
        flags=["external_loop", "buffered", "delay_bufalloc", "zerosize_ok"],
        op_flags=[["writeonly", "allocate", "no_subtype"], *[["readonly"]] * 3],
        op_dtypes=[dtype, None, None, None],
        casting="unsafe",
    )
    out: np.ndarray[Any, Any] = made.operands[0]
    return out


def _fill(cond: Any, x: Any, y: Any, out: Any) -> None:
    """Convert and select piece by piece; broadcast operands are converted as a whole."""
    from te_select.functional.where import where  # noqa: PLC0415 - it imports this module

    inputs = []
    for value, dtype in ((cond, np.dtype(bool)), (x, out.dtype), (y, out.dtype)):
        whole = value.size < out.size
        aligned = converted(value, dtype) if whole else value
        inputs.append(aligned.reshape((1,) * (out.ndim - value.ndim) + value.shape))
    if (inputs[0].dtype, inputs[1].dtype, inputs[2].dtype) == (bool, out.dtype, out.dtype):
        where(*inputs, out=out)
        return
    pieces["calls"] -= 1
    pending = [(*inputs, out)]
    while pending:
        *given, target = pending.pop()
        if target.size > SMALL:
            axis = max(
                (k for k in range(target.ndim) if target.shape[k] > 1),
                key=lambda k: abs(target.strides[k]),
            )
            half = target.shape[axis] // 2
            for part in (slice(half, None), slice(None, half)):
                index = (slice(None),) * axis + (part,)
                cut = [value if value.shape[axis] == 1 else value[index] for value in given]
                pending.append((*cut, target[index]))
            continue
        pieces["calls"] += 1
        flags, *sides = given
        where(
            converted(flags, np.dtype(bool)),
            *(converted(side, out.dtype) for side in sides),
            out=target,
        )
