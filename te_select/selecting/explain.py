"""How `te_select.where` would do a call."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from te_select.errors import caught
from te_select.operator import family
from te_select.operator.broadcast import count_of
from te_select.operator.stages import AS_IS, SOURCES
from te_select.runtime.call.extension import extension
from te_select.selecting import bits, numpy_rules, tensor_libraries
from te_select.selecting.kernels import library
from te_select.selecting.numpy_rules import Plan


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
    by_team
        Whether the threads are those of the program's OpenMP team; else they are te_select's own.
    """

    kernel: str = ""
    threads: int = 0
    past_cache: bool = False
    left: str = ""
    steps: tuple[str, ...] = ()
    by_team: bool = False

    def __str__(self) -> str:
        if self.left:
            return "; ".join((f"left: {self.left}", *self.steps))
        threads = count_of(self.threads, "thread") + (" of OpenMP" if self.by_team else "")
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
    plan = Plan(*extension.plan(cond, x, y, out))
    is_decided_later = plan.left in (extension.TAKEN, extension.OPERAND_KIND)
    if plan.left == extension.OUT or not (is_decided_later or out is None):
        return _with(_checked(out, cond, x, y), "then copied to out")
    if plan.left == extension.OPERAND_KIND:
        return _of_objects(cond, x, y, out)
    if plan.left == extension.TAKEN:
        return _served(plan)
    return Explanation(left=library.reason(plan.left))


def _served(plan: Plan) -> Explanation:
    """A call that kernels do."""
    is_missing, number = divmod(plan.kernel, family.MISSING_KERNEL)
    kernel = "tiles" if plan.by_tiles else family.names()[number] or "fill"
    found = Explanation(kernel, plan.threads, bool(plan.past_cache), by_team=bool(plan.by_team))
    for name, kind in zip(("cond", "x", "y"), plan.kinds, strict=True):
        if kind != AS_IS:
            where = f"in blocks of {plan.block} elements"
            found = _with(found, f"{name} is converted from {SOURCES[kind]} {where}")
    return _with(found, "row by row until that kernel is loaded") if is_missing else found


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
        found = Explanation(left=f"tensors of {of.__name__.removeprefix('of_')}")
        return _with(found, "stats() counts those that kernels serve")
    if out is not None:
        numpy_rules.check_array(out)
    if any(map(tensor_libraries.has_own_rule, inputs)):
        return Explanation(left=extension.OPERAND_KIND)
    mask = bits.find(inputs[0])
    if mask is not None:
        plan = Plan(*extension.plan(*mask, *inputs[1:], out))
        if plan.left == extension.TAKEN:
            return _served(plan)
        inputs[0] = bits.unpacked(*mask)
    cond, x, y = numpy_rules.as_sides(*inputs)
    return _with(explain(cond, x, y, out), "arrays are made of the operands")
