"""Schedules and builds the family of kernels that serve operands of any shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from te_select.backends import schedule_of
from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import ResolvedTarget
from te_select.compiler.building import build_scheduled
from te_select.compiler.scheduling import schedule
from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload

_ONE_PIECE = 1 << 30  # elements; the C half cuts a call into pieces and uses threads


def build_family(
    names: Iterable[str],
    path: Path,
    target: ResolvedTarget,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
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
    options
        ``half``, what is linked to the kernels; by default what calls of `te_select.where` need.
    """
    places = family.places(names)
    chosen = [schedule_member(workload, level) for workload in places for level in target.levels]
    options |= {"places": places, "progress": progress}
    build_scheduled(chosen, path, target, c_functions=(), **options)


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


def schedule_member(workload: Workload, level: ResolvedTarget) -> Scheduled:
    """Schedule a workload of the family for a CPU target of one level."""
    default = schedule_of(level.kind).default_config(access_pattern(workload), level.tvm)
    serial = replace(default, bytes_per_thread=0, piece=_ONE_PIECE)
    return _for_short_rows(schedule(workload, level, False, asdict(serial)))


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
