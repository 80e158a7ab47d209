"""What a schedule writes on its leaf: the span that takes its place, the pattern and the knobs.

A span's name does not tell every knob. So pattern and knobs are annotations, too. They stand in the
trace of a tuning record, so that reading a log makes no object of TVM.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import tvm_ffi
from tvm import IRModule, s_tir, tirx

from te_select.operator.access import AccessPattern

ANNOTATION = "te_select.span"
PATTERN = "te_select.pattern"
KNOB = "te_select.knob."  # followed by the name of the knob
_Config = TypeVar("_Config")


def letter(along: Sequence[bool]) -> str:
    """How an operand moves along the loops of a leaf, as spans of every kind write it.

    ``s``, one value: along none. ``f``, with every element: along all. ``i``, one row: along the
    innermost, but not along all. ``o``, row-constant: along others only. The flags are those of the
    loops, outermost first.
    """
    if not any(along):
        return "s"
    if all(along):
        return "f"
    return "i" if along[-1] else "o"


def annotate(
    sch: s_tir.Schedule, leaf: Any, symbol: str, pattern: AccessPattern, config: Any
) -> None:
    """Write the annotations on the leaf.

    Parameters
    ----------
    sch
        The schedule.
    leaf
        The loop that the span replaces.
    symbol
        The span's name.
    pattern
        The workload's access pattern.
    config
        The knobs; numbers may be random variables of MetaSchedule.
    """
    sch.annotate(leaf, ANNOTATION, symbol)
    sch.annotate(leaf, PATTERN, pattern.key)
    for knob in fields(config):
        value = getattr(config, knob.name)
        sch.annotate(leaf, KNOB + knob.name, int(value) if isinstance(value, bool) else value)


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


def config_of(
    make: Callable[..., _Config], scheduled: s_tir.Schedule | IRModule | tirx.PrimFunc
) -> _Config:
    """Read back the config of a schedule.

    Parameters
    ----------
    make
        The schedule's ``Config``.
    scheduled
        A schedule, its module, or the scheduled function.

    Returns
    -------
    Config
        The config, with values for random variables.

    Raises
    ------
    ValueError
        If there is no leaf: the function has no elements, or is not scheduled.
    """
    mod = scheduled.mod if isinstance(scheduled, s_tir.Schedule) else scheduled
    func = mod["main"] if isinstance(mod, IRModule) else mod
    found = leaves(func.body)
    if not found:
        raise ValueError("there is no leaf; expected a function that a schedule of ours made")
    notes = found[0].annotations.items()
    knobs = {str(k)[len(KNOB) :]: int(v) for k, v in notes if str(k).startswith(KNOB)}
    return config_from(make, knobs)
