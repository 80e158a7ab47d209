"""How `te_select.where` would do a call."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from te_select.errors import caught
from te_select.numpy_where import numpy_rules, tensor_libraries
from te_select.numpy_where.kernels import library
from te_select.operator import family
from te_select.operator.broadcast import count_of
from te_select.runtime.call.extension import extension


@dataclass(frozen=True)
class Explanation:
    """How a call would be done; it prints as one line.

    Parameters
    ----------
    kernel
        The kernel, by its name in `Stats`; ``"tiles"`` if the operands are copied in tiles,
        ``"fill"`` if one element is repeated. Empty if the call is left.
    threads
        The most threads that it would run on now.
    past_cache
        Whether it would store past the caches.
    left
        Why it would be left to numpy.where, as `Stats` names it; or whose tensors the operands are.
        Empty if it would not.
    steps
        What is done besides, such as conversions.
    """

    kernel: str = ""
    threads: int = 0
    past_cache: bool = False
    left: str = ""
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.left:
            return "; ".join((f"left: {self.left}", *self.steps))
        threads = count_of(self.threads, "thread")
        stores = f"stores {'past' if self.past_cache else 'into'} the caches"
        return "; ".join((f"kernel {self.kernel}", threads, stores, *self.steps))


def explain(cond: Any, x: Any, y: Any, out: Any = None) -> Explanation:
    """Find out how `te_select.where` would do a call, without doing it.

    Parameters
    ----------
    cond, x, y, out
        The arguments of the call. Kernels that it needs are loaded, or built.

    Returns
    -------
    Explanation
        Which kernel, how many threads, and whether past the caches; or why the call is left.

    Raises
    ------
    TypeError, ValueError
        If the call would refuse out.
    """
    reason, number, threads, past_cache, by_tiles = extension.plan(cond, x, y, out)
    decided_later = reason in ("none", "kind of operand", "promotion")
    if reason == "out" or not (decided_later or out is None):
        return _with(_checked(out, cond, x, y), "then copied to out")
    if reason == "kind of operand":
        return _of_objects(cond, x, y, out)
    if reason == "promotion":
        return _of_two_types(out, cond, x, y)
    if reason != "none":
        return Explanation(left=library.reason(reason))
    missing, number = divmod(number, family.MISSING_KERNEL)
    kernel = "tiles" if by_tiles else family.names()[number] or "fill"
    found = Explanation(kernel, threads, bool(past_cache))
    return _with(found, "row by row until that kernel is built") if missing else found


def _with(found: Explanation, step: str) -> Explanation:
    return replace(found, steps=(*found.steps, step))


def _checked(out: Any, cond: Any, x: Any, y: Any) -> Explanation:
    """A call whose result is copied to out, if that can take it."""
    numpy_rules.check_array(out)
    found = explain(cond, x, y)
    try:
        dtype = np.result_type(*numpy_rules.as_sides(x, y)).newbyteorder("=")
        shape = np.broadcast(cond, x, y).shape
    except caught(TypeError, ValueError, OverflowError):  # which numpy.where is to tell of
        return found
    tensor_libraries.check_out(out, np.broadcast_to(np.empty((), dtype), shape))
    return found


def _of_objects(*given: Any) -> Explanation:
    """A call with objects of which arrays are made, or with tensors."""
    *inputs, out = given
    if (of := tensor_libraries.find(given)) is not None:
        return Explanation(left=f"tensors of {of.__name__.removeprefix('of_')}")
    if out is not None:
        numpy_rules.check_array(out)
    if any(map(tensor_libraries.has_own_rule, inputs)):
        return Explanation(left="kind of operand")
    cond, x, y = numpy_rules.as_sides(*inputs)
    return _with(explain(cond, x, y, out), "arrays are made of the operands")


def _of_two_types(out: Any, cond: Any, *sides: Any) -> Explanation:
    """A call whose operands are converted."""
    given = numpy_rules.as_sides(*sides)
    x, y, dtype = numpy_rules.converted(*given)
    if dtype is not None and (x is not given[0] or y is not given[1]):
        return _with(explain(cond, x, y, out), "a single value is converted")
    if out is not None:
        how = _checked(out, cond, *sides)
        is_written = dtype is not None and numpy_rules.takes(out, [np.asarray(cond), x, y])
        return how if is_written else _with(how, "then copied to out")
    if dtype is None:
        return Explanation(left="promotion")
    most = numpy_rules.PIECE // dtype.itemsize
    size = min(np.broadcast(cond, x, y).size, most)
    kinds = zip((cond, x, y), (bool, dtype, dtype), strict=True)
    cond, x, y = (np.empty(size if np.size(each) > 1 else 1, kind) for each, kind in kinds)
    how = explain(cond, x, y, np.empty(size, dtype))
    return _with(how, f"converted in pieces of {most} elements")
