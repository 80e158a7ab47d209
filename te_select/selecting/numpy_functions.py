"""`te_select.select`, `copyto` and `putmask`: numpy's, by the kernels of `te_select.where`.

`select` is a chain of Selects over blocks that stay in the cache, the others one Select in place.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from typing import Any, TypeVar, cast

import numpy as np
from numpy import copyto as numpy_copyto  # which a program may replace by ours
from numpy import putmask as numpy_putmask
from numpy import select as numpy_select

from te_select.errors import caught
from te_select.operator.broadcast import joined
from te_select.runtime.call.extension import extension
from te_select.selecting.bits import without_bits
from te_select.selecting.call import where
from te_select.selecting.numpy_rules import (
    Array,
    Plan,
    as_sides,
    check_array,
    copied_to,
    may_select_into,
)
from te_select.selecting.tensor_libraries import has_own_rule

BLOCK = 1 << 18  # bytes of the result for each thread; half and twice as many are as fast
_KINDS = "biufc"
_BOOL = np.dtype(bool)
_Function = TypeVar("_Function", bound=Callable[..., None])


def select(condlist: Any, choicelist: Any, default: Any = 0, *, out: Any = None) -> Any:
    """Select from several arrays: the choice of the first cond that is true, as numpy.select does.

    The results are those of ``numpy.select``, bit for bit. Calls that kernels do not serve, and
    those with operands that have rules of their own, go to ``numpy.select``.

    Parameters
    ----------
    condlist
        Boolean arrays that broadcast with each other and with the choices.
    choicelist
        As many arrays or numbers.
    default
        What is selected if no cond is true.
    out
        The array to write, of the result's type and shape, with any strides; it may be an operand.
        None for a new one.

    Returns
    -------
    ndarray
        out, or a new array in C order.

    Raises
    ------
    TypeError
        If a cond is not boolean, or out has another element type.
    ValueError
        If there is not one choice for each cond, the shapes do not broadcast, or out has another
        shape or is read-only.

    Notes
    -----
    ``numpy.select``. ``te_select.where.stats()`` counts each step, of a block or of all, as a call.
    """
    if out is not None:
        check_array(out)
    found = _found(condlist, choicelist, default, out)
    return found if out is None or found is out else copied_to(out, found)


def _found(condlist: Any, choicelist: Any, default: Any, out: Any) -> Any:
    """The result, in out if it can be made there."""
    lists = condlist, choicelist
    is_odd = not all(map(_has_members, lists)) or len(condlist) != len(choicelist)
    if is_odd or any(map(has_own_rule, (*condlist, *choicelist))):
        return numpy_select(condlist, choicelist, default)
    choices = as_sides(*choicelist, default)
    try:
        dtype = np.result_type(*choices)
    except caught(TypeError):  # numpy.select says which list it is
        return numpy_select(condlist, choices[:-1], choices[-1])
    conds = [np.asarray(without_bits(cond)) for cond in condlist]
    found = _by_kernels(conds, choices, dtype, out)
    return numpy_select(conds, choices[:-1], choices[-1]) if found is None else found


def _has_members(given: Any) -> bool:
    is_list = issubclass(type(given), (list, tuple, np.ndarray))
    return is_list and getattr(given, "ndim", 1) > 0 and len(given) > 0


def _by_kernels(
    conds: Sequence[Array], given: Sequence[Any], dtype: np.dtype[Any], out: Any
) -> Any:
    """Select by kernels; the last choice is the default. None if numpy.select is to do it."""
    *choices, default = map(np.asarray, given)
    shape = joined(*[each.shape for each in (*conds, *choices, default)])
    if shape is None or any(cond.dtype != _BOOL for cond in conds):
        return None
    types = {each.dtype for each in choices}
    if not all(np.can_cast(own, dtype, "same_kind") for own in types):
        return None
    types |= {default.dtype, dtype}
    if len(types) > 1 and not all(own.kind in _KINDS for own in types):
        return None
    try:
        with np.errstate(all="raise"):  # numpy.select warns only of what is selected
            *choices, default = (_converted(each, dtype, 1) for each in (*choices, default))
            result = _result([*conds, *choices], default, dtype, shape, out)
            plan = Plan(*extension.plan(conds[-1], result, result, result))
            if plan.left != extension.TAKEN:
                return None
            pairs = [*zip(conds, choices, strict=True)][::-1]
            _in_blocks(pairs, default, result, BLOCK // dtype.itemsize * plan.threads)
    except caught(FloatingPointError):
        return None
    return result


def _converted(choice: Array, dtype: np.dtype[Any], most: int) -> Array:
    """A choice of a type, if it has no more elements than that."""
    return choice if choice.dtype == dtype or choice.size > most else choice.astype(dtype)


def _result(
    read: Sequence[Array], default: Array, dtype: np.dtype[Any], shape: tuple[int, ...], out: Any
) -> Any:
    """Out, or a new array if out does not fit, is read later or a conversion may yet fail."""
    inputs = read if default is out else [*read, default]
    fits = out is not None and (out.dtype, out.shape) == (dtype, shape)
    types = {each.dtype for each in inputs} - {_BOOL}
    is_quiet = all(extension.are_kept(own, dtype) for own in types)
    if fits and is_quiet and may_select_into(out, inputs):
        return out
    return extension.empty(shape, dtype)


def _in_blocks(
    pairs: list[tuple[Array, Array]], default: Array, result: Array, elements: int
) -> None:
    """Select block by block, each of at most so many elements; contiguous arrays are C's."""
    if extension.chain(pairs, default, result):
        return
    shape = result.shape
    if shape not in (default.shape, *(each.shape for each in pairs[0])):
        default = np.broadcast_to(default, shape)  # one operand of a Select has its shape
    if result.size <= elements:
        _in_place(pairs, default, result)
        return
    wide = [[_wide(each, shape) for each in pair] for pair in (*pairs, [default])]
    for part in _parts(shape, elements):
        *cut, (held,) = [[each[part] if each.ndim else each for each in pair] for pair in wide]
        _in_place(cut, held, result[part])


def _wide(operand: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(operand, shape) if operand.ndim else operand


def _parts(shape: tuple[int, ...], most: int) -> Iterator[tuple[Any, ...]]:
    """Cut a shape in C order: indices of parts with at most so many elements."""
    row = math.prod(shape[1:])
    if row > most:
        for i in range(shape[0]):
            yield from ((i, *rest) for rest in _parts(shape[1:], most))
        return
    step = most // row
    yield from ((slice(i, i + step),) for i in range(0, shape[0], step))


def _in_place(pairs: Any, held: Array, out: Array) -> None:
    """Select from the first pair, and replace what is there by the others."""
    dtype = out.dtype
    if not extension.are_kept(held.dtype, dtype) or np.result_type(pairs[0][1], held) != dtype:
        held = _converted(held, dtype, out.size)
    for cond, given in pairs:
        is_kept = extension.are_kept(given.dtype, dtype)
        choice = given if is_kept else _converted(given, dtype, out.size)
        where(cond, choice, held, out=out)
        held = out


def _by_kernels_first(function: _Function) -> _Function:
    """Make the function in C, which calls this one for masks that are not arrays."""
    name = function.__name__
    made = extension.in_place(function, getattr(np, name), name == "putmask")
    return cast("_Function", update_wrapper(made, function))


@_by_kernels_first
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy values to an array where a mask is true, as numpy.copyto does.

    Kernels do it if dst and src have one type, src is a real number that keeps it (an int up to
    2**53), or NumPy promotes src to the type of dst, but for float32 and complex64. All other calls
    go to ``numpy.copyto`` as they stand.

    Parameters
    ----------
    dst
        The array to write.
    src
        An array or a number that broadcasts to dst.
    casting
        Which conversions are allowed.
    where
        Boolean, and broadcasts to dst. What is not selected stays.

    Raises
    ------
    Exception
        Whatever numpy.copyto raises.

    Notes
    -----
    ``numpy.copyto``.
    """
    mask = without_bits(where)
    function = numpy_copyto if mask is where else copyto
    return function(dst, src, casting=casting, where=mask)


@_by_kernels_first
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Replace elements of an array where a mask is true, as numpy.putmask does.

    Kernels do it if a and values have one type, values is a real number that keeps it (an int up to
    2**53), or NumPy promotes values to the type of a, but for float32 and complex64. All other
    calls go to ``numpy.putmask`` as they stand.

    Parameters
    ----------
    a
        The array to write.
    mask
        Of the size of a; nonzero is true.
    values
        An array or a number. A shorter array is repeated along a in C order.

    Raises
    ------
    Exception
        Whatever numpy.putmask raises.

    Notes
    -----
    ``numpy.putmask``.
    """
    array = without_bits(mask)
    function = numpy_putmask if array is mask else putmask
    return function(a, array, values)


for _each in (copyto, putmask, select):
    _each.__module__ = "te_select"
