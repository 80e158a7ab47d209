"""The plain span: one run of elements, along which each operand moves or is broadcast.

The scalar loop that it stands for, here with a broadcast ``else_``::

    for k in range(n):
        out[k] = then[k] if cond[k] else else_[0]

Its main loop (`walk`) takes ``lanes`` elements at a time::

    out[k : k + lanes] = Select(cond[k : k + lanes] != 0, then[k : k + lanes], else_[0])

A broadcast operand is loaded once, before the loop. A broadcast cond reads one side only. If the
flags ask for it, the cond of several vectors is tested before a side is read.

If out is a side itself, blocks that keep that side are neither read nor written.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.arguments import Arguments
from te_select.schedules.cpu.vectors import (
    ZERO,
    Expr,
    any_and_all,
    branch,
    choose,
    is_true,
    let,
    repeated,
    unknown,
)
from te_select.schedules.cpu.walk import Group, Walk

# A vector of one operand: from arguments, a first element and a number of lanes.
Read: TypeAlias = Callable[[Arguments, Expr, int], Expr]


def plain_span(given: Arguments) -> None:
    """Write the span's statements."""
    span = given.span
    if span.cond == "s":
        _copy_chosen(given)
        return
    cond, then, else_ = (reader(given, name) for name in ("cond", "then", "else_"))
    select = copy(choice(cond, then, else_))
    if not span.skipping:
        Walk(given, select).cover()
        return
    then_differs, else_differs = (_is_not_out(given, name) for name in ("then", "else_"))

    def skipping(here: Arguments, past_cache: bool) -> None:
        """One iteration: test its cond, then copy a single side, or select."""
        count = span.groups_per_iteration * span.lanes
        lanes = min(count, span.vector_bytes)
        block = [cond(here, k, lanes) for k in range(0, count, lanes)]
        any_true, all_true = any_and_all(block, lanes, span.reduces)
        if span.reloads and lanes > span.lanes:
            here = replace(here, cond=here.cond.from_element(unknown(ZERO)))

        def storing(group: Group) -> Callable[[], None]:
            return lambda: walk.store_iteration(group, here, past_cache)

        def uniform() -> None:
            branch(
                all_true,
                lambda: branch(then_differs, storing(copy(then))),
                lambda: branch(else_differs, storing(copy(else_))),
            )

        def mixed() -> None:
            branch(T.And(then_differs, else_differs), storing(select), vector_by_vector)

        def vector_by_vector() -> None:
            branch(then_differs, partial(store_changed, False), partial(store_changed, True))

        def store_changed(keeps_then: bool) -> None:
            """Store the vectors that differ from the side that out is."""
            for first in range(0, count, span.lanes):
                vector = [cond(here, first, span.lanes)]
                any_here, all_here = any_and_all(vector, span.lanes, span.reduces)
                store = partial(walk.store, select, [(here, first)], span.lanes, past_cache)
                branch(T.Not(all_here) if keeps_then else any_here, store)

        branch(T.Or(all_true, T.Not(any_true)), uniform, mixed)

    walk = Walk(given, select, skipping=skipping)
    walk.cover()


def _is_not_out(given: Arguments, name: str) -> Expr:
    """Whether a side is other elements than out."""
    if given.moves[name] != "f":
        return tirx.IntImm("bool", True)
    return let(f"{name}_differs", T.Not(getattr(given, name).is_at(given.out)))


def reader(given: Arguments, name: str) -> Read:
    """What gives the vectors of an operand.

    An element that stays is loaded here, before the loop. LLVM cannot move the load itself, because
    out may be one of the inputs.
    """
    if given.moves[name] in "fi":
        return lambda here, k, lanes: getattr(here, name).load(k, lanes)
    element = let("element", getattr(given, name).load(0, 1))
    return lambda _here, _k, lanes: repeated(element, lanes)


def choice(*reads: Callable[..., Expr]) -> Callable[..., Expr]:
    """What gives the vectors that are selected, of what gives those of cond, then and else."""

    def chosen(here: Arguments, k: Expr, lanes: int, *vector: int) -> Expr:
        cond, then, else_ = (read(here, k, lanes, *vector) for read in reads)
        return choose(cond, then, else_, lanes)

    return chosen


def copy(side: Read) -> Group:
    """What gives the vectors of one side alone."""
    return lambda here, k, lanes: [side(here, k, lanes)]


def _copy_chosen(given: Arguments) -> None:
    """Cond is one value: read only the side that it selects."""
    chosen = is_true(given.cond.load(0, 1), 1)
    if given.span.then == given.span.else_ == "f":
        given = replace(given, then=given.then.or_else(chosen, given.else_))
        _copy_side(given, "then")
    else:
        branch(chosen, lambda: _copy_side(given, "then"), lambda: _copy_side(given, "else_"))


def _copy_side(given: Arguments, name: str) -> None:
    walk = Walk(given, copy(reader(given, name)))
    branch(_is_not_out(given, name), walk.cover)
