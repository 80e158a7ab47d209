"""What ``runtime/c/extension/extension.c`` leaves to Python: unusual operands and numpy.where."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from te_select.runtime.call.extension import extension
from te_select.selecting import bits, tensor_libraries
from te_select.selecting.tensor_libraries import check_out

NUMBERS = (int, float, complex)

Array = np.ndarray[Any, Any]


class Plan(NamedTuple):
    """What the C half would do, and its verdict; the fields are those of `te_select_plan` in C."""

    left: str
    kernel: int
    threads: int
    past_cache: int
    by_tiles: int
    kinds: tuple[int, int, int]
    block: int
    by_team: int


def numpy_fallback(reason: str, /, *args: Any, out: Any = None, **options: Any) -> Any:
    """Do a call that the C half has left.

    Parameters
    ----------
    reason
        The verdict of the C half, a constant of the extension.
    args, out, options
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
    if options:
        name = next(iter(options))
        raise TypeError(f"where() got an unexpected keyword argument {name!r}; expected out")
    if (of := tensor_libraries.find((*args, out))) is not None:
        return of(*args, out=out)
    if reason == extension.CONVERSION:
        mask = bits.find(args[0])
        if mask is None:  # the C half makes arrays, so that warnings name the user's line
            return NotImplemented
        tensor_libraries.by_type[type(args[0])] = by_bits
        found = by_bits(*args, out=out)
        return _where(bits.unpacked(*mask), *args[1:], out=out) if found is None else found
    if len(args) != 3 or reason == extension.ARGUMENTS:  # noqa: PLR2004 - cond, x, y
        if out is not None:
            raise TypeError("where() takes out only with cond, x and y")
        return NotImplemented
    if out is None:
        return NotImplemented
    check_array(out)  # the C half does not write it
    return copied_to(out, _where(*args))


def _where(*args: Any, out: Any = None) -> Any:
    from te_select.selecting import where  # noqa: PLC0415 - it imports this module

    return where(*args, out=out)


def by_bits(cond: Any, *sides: Any, out: Any = None) -> Any:
    """Select by booleans that are stored as bits; None if kernels do not."""
    mask = bits.find(cond)
    if mask is None or len(sides) != 2:  # noqa: PLR2004 - x, y
        return None
    found = extension.select(*mask, *sides, out)
    return None if found is NotImplemented else found


def copied_to(out: Array, result: Array) -> Array:
    """Out, with the result in it if it fits."""
    check_out(out, result)
    np.copyto(out, result)
    return out


def check_array(out: Any) -> None:
    """Refuse an out that is not an array of NumPy, or cannot be written."""
    if not issubclass(type(out), np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array")
    if not out.flags.writeable:
        raise ValueError("out is read-only; expected an array that can be written")


def as_sides(*sides: Any) -> list[Any]:
    """Arrays, and numbers of Python as they are."""
    return [side if type(side) in NUMBERS else np.asarray(side) for side in sides]


def may_select_into(out: Array, inputs: Sequence[Array]) -> bool:
    """Whether operands may be selected in out, block by block, without a copy of the result."""
    shares = any(np.may_share_memory(out, each) for each in inputs)
    # Or it overlaps itself.
    return not shares and Plan(*extension.plan(True, out, out, out)).left == extension.TAKEN
