"""Schedules and builds the family of kernels that serve operands of any shapes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from te_select import kinds
from te_select.backends import schedule_of
from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import ResolvedTarget
from te_select.compiler.building import build_scheduled
from te_select.compiler.scheduling import schedule
from te_select.errors import TargetError
from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.records import lookup
from te_select.records.folders import FAMILY

_ONE_PIECE = 1 << 30  # elements; the C half cuts a call into pieces and uses threads
_TUNED = ("vector_bytes", "unroll")  # the C half decides the other knobs at each call


def build_family(
    names: Iterable[str],
    path: Path,
    target: ResolvedTarget,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Build a library of some parts of the family.

    Parameters
    ----------
    names
        Names of the parts; see `te_select.operator.family.parts`.
    path
        The ``.so`` to write.
    target
        A target that is a CPU.
    progress
        Called with the number of steps done and of all steps.
    """
    places = family.places(names)
    chosen = [schedule_member(workload, level) for workload in places for level in target.levels]
    build_scheduled(chosen, path, target, c_functions=(), places=places, progress=progress)


def served_by_family(nodes: Iterable[ModelNode]) -> dict[str, list[str]]:
    """The parts that serve the dispatched nodes of a model, by the places of the nodes.

    A node whose element type is known only at the call needs the parts of all types.
    """
    found = {}
    for node in nodes:
        if node.status == "dispatched":
            widths = family.WIDTHS if node.dtype is None else (ELEMENT_TYPES[node.dtype].width,)
            found[node.place] = [part for width in widths for part in family.parts_of_width(width)]
    return found


def check_target(target: ResolvedTarget) -> None:
    """Raise TargetError if the family cannot be built for a target."""
    if not kinds.kind(target.kind).family:
        raise TargetError(f"target {target.name!r} is no CPU; the family of where() is for CPUs")


def schedule_member(
    workload: Workload,
    level: ResolvedTarget,
    *,
    by_records: bool = True,
    config: Mapping[str, Any] | None = None,
) -> Scheduled:
    """Schedule a workload of the family for a CPU target of one level.

    Parameters
    ----------
    workload, level
        The workload and the target.
    by_records
        Whether to look for a record of the family, among the user's own and those shipped.
    config
        One of `configs`, as a manifest holds it; no record is looked for.
    """
    if config is not None:
        return _for_short_rows(schedule(workload, level, False, config))
    found = lookup.find(family.typical(workload), level, None if by_records else False, FAMILY)
    chosen = _default(workload, level)
    if found.config is not None:
        chosen = replace(chosen, **{name: getattr(found.config, name) for name in _TUNED})
    scheduled = schedule(workload, level, False, asdict(chosen))
    return _for_short_rows(replace(scheduled, origin=found.origin, why=found.why))


def configs(workload: Workload, level: ResolvedTarget) -> list[Any]:
    """The configs of a workload of the family that differ in effect, the default first."""
    rules, pattern = schedule_of(level.kind), access_pattern(workload)
    default = _default(workload, level)
    space = rules.space(access_pattern(family.typical(workload)), level.tvm)
    every = itertools.product(*(space[name] for name in _TUNED))
    distinct = {rules.dedup_key(pattern, default): default}
    for values in every:
        config = replace(default, **dict(zip(_TUNED, values, strict=True)))
        distinct.setdefault(rules.dedup_key(pattern, config), config)
    return list(distinct.values())


def _default(workload: Workload, level: ResolvedTarget) -> Any:
    default = schedule_of(level.kind).default_config(access_pattern(workload), level.tvm)
    return replace(default, bytes_per_thread=0, piece=_ONE_PIECE)


def _for_short_rows(one: Scheduled) -> Scheduled:
    """Keep only the function for rows that are not long, if there is one.

    Kernels of runs serve long rows.
    """
    functions = {
        replace(variant, name="", applies=None): function
        for variant, function in one.functions.items()
        if variant.name == "short_rows"
    }
    return replace(one, functions=functions) if functions else one
