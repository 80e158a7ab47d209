"""The leaf of a schedule: what is written on it, and what lowerings and dlight read of it.

A schedule writes the span that takes its place, and the knobs. These stand in the trace of a tuning
record, so that reading a log makes no object of TVM.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import tvm_ffi
from tvm import ir, s_tir, sym, tirx

from te_select.errors import SelectError
from te_select.operator.access import AccessPattern, Loop

ANNOTATION = "te_select.span"
KNOB = "te_select.knob."  # followed by the name of the knob
CONDITION = "uint8"
# Carried element types of then, else and out in the definition.
CARRIED = ("uint8", "uint16", "uint32", "uint64")
_Config = TypeVar("_Config")


def letters(loops: Sequence[Loop]) -> list[str]:
    """How cond, then and else move along the loops of a leaf, as spans of every kind write it.

    ``s``, one value: along none. ``f``, with every element: along all. ``i``, one row: along the
    innermost, but not along all. ``o``, row-constant: along others only.
    """
    return [_letter([operand in loop.movers for loop in loops]) for operand in "cte"]


def _letter(along: Sequence[bool]) -> str:
    if not any(along):
        return "s"
    if all(along):
        return "f"
    return "i" if along[-1] else "o"


def block_to_schedule(sch: s_tir.Schedule, pattern: AccessPattern) -> Any:
    """The block of the definition, which is all of it now; None if it has no elements.

    Nothing runs then, and TVM can neither inline nor split loops of extent 0.
    """
    if pattern.elements == 0:
        return None
    for branch in ("then_b", "else_b"):
        sch.compute_inline(sch.get_sblock(branch))
    return sch.get_sblock("out")


def annotate(sch: s_tir.Schedule, leaf: Any, symbol: str, config: Any) -> None:
    """Write the annotations on the leaf.

    Parameters
    ----------
    sch
        The schedule.
    leaf
        The loop that the span replaces.
    symbol
        The span's name.
    config
        The knobs; numbers may be random variables of MetaSchedule.
    """
    sch.annotate(leaf, ANNOTATION, symbol)
    for name, value in vars(config).items():
        sch.annotate(leaf, KNOB + name, int(value) if isinstance(value, bool) else value)


def config_from(make: Callable[..., _Config], knobs: Mapping[str, int]) -> _Config:
    """Make a config from knobs that a log keeps as ints.

    Parameters
    ----------
    make
        The schedule's ``Config``; each of its knobs is an int or a bool.
    knobs
        The knobs.

    Returns
    -------
    Config
        The config, not checked.

    Raises
    ------
    ValueError
        If the config does not have these knobs (a te_select of another version wrote them), or the
        value of a bool is neither 0 nor 1. Knobs with a default in the config may be missing.
    """
    known = {knob.name: knob for knob in fields(make)}  # type: ignore[arg-type]  # a dataclass
    needed = {name for name, knob in known.items() if knob.default is MISSING}
    if odd := sorted((needed - set(knobs)) | (set(knobs) - set(known))):
        raise ValueError(
            f"the knobs differ in {', '.join(odd)}; expected {', '.join(known)}, as this te_select "
            "writes them"
        )
    flags = [name for name in knobs if known[name].type in ("bool", bool)]
    for name in flags:
        if knobs[name] not in (0, 1):
            raise ValueError(f"{name} is {knobs[name]}; expected 0 or 1")
    return make(**{name: bool(v) if name in flags else int(v) for name, v in knobs.items()})


def leaves(body: tirx.Stmt) -> list[tirx.For]:
    """The loops that a schedule has marked as leaves."""
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(body, (tirx.For, loops.append), order="pre")
    return [loop for loop in loops if ANNOTATION in loop.annotations]


def with_leaf(body: tirx.Stmt, instead: tirx.Stmt) -> tirx.Stmt:
    """The statements with another one in the place of the leaf."""
    return tvm_ffi.structural_map(
        body,
        (tirx.For, lambda loop: instead if ANNOTATION in loop.annotations else loop),
        order="pre",
    )


def parts_of(store: Any) -> dict[str, Any]:
    """What a store selects: ``cond``, ``then``, ``else``, and as ``out`` the element it writes.

    They are empty if it is no store of a Select.
    """
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Select):
        return {}
    select = store.value
    return {
        "cond": select.condition,
        "then": select.true_value,
        "else": select.false_value,
        "out": tirx.BufferLoad(store.buffer, store.indices),
    }


def is_zero(value: ir.Expr) -> bool:
    """Whether an expression is the literal 0."""
    return isinstance(value, tirx.IntImm) and value.value == 0


def rows_left(condition: ir.Expr, row: ir.Var) -> ir.Expr:
    """How many rows from row 0 on the guard ``scale * row + first < end`` lets through."""
    if not isinstance(condition, tirx.LT):
        raise refused(condition)
    left = sym.detect_linear_equation(condition.a, [row])
    right = sym.detect_linear_equation(condition.b, [row])
    analyzer = sym.Analyzer()
    if not (left and right and analyzer.can_prove_equal(right[0], 0)):
        raise refused(condition)
    scale, first = left
    if not analyzer.can_prove(scale > 0):
        raise refused(condition)
    return tirx.floordiv(condition.b - first + scale - 1, scale)


def opened(leaf: tirx.For) -> tuple[ir.Expr, ir.Expr, Any, Callable[[Any], Any]]:
    """Its rows, the elements in each, what it repeats, and what gives an expression at its start.

    A leaf is one loop or two. A guard of the last piece may be in it.
    """
    variables = [leaf.loop_var]
    rows = leaf.extent
    elements = tirx.IntImm("int64", 1)
    body = leaf.body
    while True:
        if isinstance(body, tirx.IfThenElse) and body.else_case is None:
            rows = tirx.min(rows, rows_left(body.condition, leaf.loop_var))
            body = body.then_case
        elif isinstance(body, tirx.For) and len(variables) == 1:
            variables.append(body.loop_var)
            elements = body.extent
            body = body.body
        else:
            break
    starts = [tirx.IntImm("int64", 0)] * len(variables)
    return rows, elements, body, lambda expr: replaced(expr, variables, starts)


def replaced(expr: Any, variables: Sequence[ir.Var], values: Sequence[ir.Expr]) -> Any:
    """An expression with values in the place of variables."""
    pairs = list(zip(variables, values, strict=True))
    return tvm_ffi.structural_map(
        expr, (ir.Var, lambda var: next((to for each, to in pairs if var.same_as(each)), var))
    )


def refused(statement: Any) -> SelectError:
    """The error for a leaf that no span can replace."""
    text = " ".join(str(statement).split())
    return SelectError(
        f"the leaf {text!r} has no span; expected out[...] = T.Select(cond[...] != "
        f"T.{CONDITION}(0), then[...], else_[...]) with cond of {CONDITION}, then, else_ and out "
        f"of one of {', '.join(CARRIED)}, and every index a loop's or 0"
    )


def config_of(make: Callable[..., _Config], scheduled: s_tir.Schedule | tirx.PrimFunc) -> _Config:
    """Read back the config of a schedule.

    Parameters
    ----------
    make
        The schedule's ``Config``.
    scheduled
        A schedule, or the scheduled function.

    Returns
    -------
    Config
        The config, with values for random variables.

    Raises
    ------
    ValueError
        If there is no leaf: the function has no elements, or is not scheduled.
    """
    func = scheduled.mod["main"] if isinstance(scheduled, s_tir.Schedule) else scheduled
    found = leaves(func.body)
    if not found:
        raise ValueError("there is no leaf; expected a function that a schedule of ours made")
    notes = found[0].annotations.items()
    knobs = {str(k)[len(KNOB) :]: int(v) for k, v in notes if str(k).startswith(KNOB)}
    return config_from(make, knobs)
