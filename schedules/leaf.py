"""What a schedule writes on its leaf: the span that takes its place, and what led to it.

A span's name does not tell every knob. Pattern and knobs are what a tuning record is read by: they
stand in its trace as annotations, so that reading a log makes no object of TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import tvm_ffi
from tvm import IRModule, s_tir, tirx

from te_select.operator.access import AccessPattern
from te_select.schedules.annotations import ANNOTATION, KNOB, PATTERN

_Config = TypeVar("_Config")


def annotate(
    sch: s_tir.Schedule, leaf: Any, symbol: str, pattern: AccessPattern, config: Any
) -> None:
    """Write on the leaf.

    Parameters
    ----------
    sch
        The schedule.
    leaf
        The loop whose place the span takes.
    symbol
        The span.
    pattern
        The workload's access pattern.
    config
        The knobs, numbers of which may be random variables of MetaSchedule.
    """
    sch.annotate(leaf, ANNOTATION, symbol)
    sch.annotate(leaf, PATTERN, pattern.key)
    for knob in fields(config):
        value = getattr(config, knob.name)
        sch.annotate(leaf, KNOB + knob.name, int(value) if isinstance(value, bool) else value)


def config_from(make: Callable[..., _Config], knobs: Mapping[str, int]) -> _Config:
    """Make a config of knobs that a log keeps as ints.

    Parameters
    ----------
    make
        The schedule's ``Config``, of whose knobs each is an int or a bool.
    knobs
        The knobs.

    Returns
    -------
    Config
        The config, not checked.

    Raises
    ------
    ValueError
        If they are not those of the config, as of a te_select that had others, or a bool is none.
    """
    kinds = {
        knob.name: bool if knob.type in ("bool", bool) else int
        for knob in fields(make)  # type: ignore[arg-type]  # a dataclass
    }
    if odd := sorted(set(kinds) ^ set(knobs)):
        raise ValueError(
            f"the knobs differ in {', '.join(odd)}; expected {', '.join(kinds)}, as this te_select "
            "writes them"
        )
    for name, kind in kinds.items():
        if kind is bool and knobs[name] not in (0, 1):
            raise ValueError(f"{name} is {knobs[name]}; expected 0 or 1")
    return make(**{name: kind(knobs[name]) for name, kind in kinds.items()})


def config_of(
    make: Callable[..., _Config], scheduled: s_tir.Schedule | IRModule | tirx.PrimFunc
) -> _Config:
    """Read back the config that a schedule was given.

    Parameters
    ----------
    make
        The schedule's ``Config``.
    scheduled
        A schedule, its module or the function that it made.

    Returns
    -------
    Config
        The config; the values of random variables in their place.

    Raises
    ------
    ValueError
        If there is no leaf: of no elements, or not scheduled.
    """
    mod = scheduled.mod if isinstance(scheduled, s_tir.Schedule) else scheduled
    func = mod["main"] if isinstance(mod, IRModule) else mod
    leaves: list[tirx.For] = []
    tvm_ffi.structural_walk(
        func.body,
        (tirx.For, lambda loop: leaves.append(loop) if ANNOTATION in loop.annotations else None),
        order="pre",
    )
    if not leaves:
        raise ValueError("there is no leaf; expected a function that a schedule of ours made")
    notes = leaves[0].annotations.items()
    knobs = {str(k)[len(KNOB) :]: int(v) for k, v in notes if str(k).startswith(KNOB)}
    return config_from(make, knobs)
