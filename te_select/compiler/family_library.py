"""Schedules and builds the family of kernels that serve operands of any shapes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from te_select.backends import schedule_of
from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import ResolvedTarget, resolve
from te_select.base import forks, kinds, scratch
from te_select.compiler.build import build_scheduled
from te_select.compiler.scheduling import schedule
from te_select.errors import TargetError
from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.node import ModelNode
from te_select.operator.stages import stages
from te_select.operator.workload import Workload
from te_select.records import lookup
from te_select.records.folders import FAMILY
from te_select.records.origin import DEFAULT
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.stored import Stored

_ONE_PIECE = 1 << 30  # elements; the C half cuts a call into pieces and uses threads


@forks.no_fork_during()
def build_family(
    names: Iterable[str], target: str, progress: Callable[[int, int], None] | None = None
) -> Stored:
    """Build a library of some parts of the family.

    Parameters
    ----------
    names
        Names of the parts; see `te_select.operator.family.part_names`.
    target
        A target that is a CPU, or several levels of one.
    progress
        Called with the number of steps done and of all steps.

    Returns
    -------
    Stored
        The library.

    Raises
    ------
    TargetError
        If the target is no CPU.
    """
    parts = list(names)
    places = family.places(parts)
    wanted = stages() if family.STAGES in parts else ()
    resolved = resolve(target)
    room = scratch.ROOM + len(places) * len(resolved.levels) * scratch.KERNEL_ROOM
    with scratch.folder(room) as folder:
        path = folder / "where.so"
        chosen = [schedule_member(each, level) for each in places for level in resolved.levels]
        build_scheduled(
            chosen, path, resolved, c_functions=(), stages=wanted, places=places, progress=progress
        )
        return stored.read(path)


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


def schedule_member(
    workload: Workload, level: ResolvedTarget, knobs: Mapping[str, Any] | None = None
) -> Scheduled:
    """Schedule a workload of the family for a CPU target of one level.

    Parameters
    ----------
    workload, level
        The workload and the target.
    knobs
        As for `config_of`; None for those of a record of the family, if there is one.
    """
    origin = DEFAULT
    why = ""
    if knobs is None:
        found = lookup.find(family.typical(workload), level, within=FAMILY)
        knobs = {} if found.config is None else vars(found.config)
        origin, why = found.origin, found.why
    scheduled = schedule(workload, level, False, asdict(config_of(workload, level, knobs)))
    return _for_short_rows(replace(scheduled, origin=origin, why=why))


def config_of(workload: Workload, level: ResolvedTarget, knobs: Mapping[str, Any]) -> Any:
    """The config of a workload of the family.

    Parameters
    ----------
    workload, level
        The workload and the target.
    knobs
        Of these it has ``vector_bytes`` and, if its leaf is a plain span, ``unroll``; the C half
        decides the others at each call. What is not there is the default's.

    Raises
    ------
    TargetError
        If the target is no CPU.
    """
    if not kinds.kind(level.kind).family:
        raise TargetError(f"target {level.name!r} is no CPU; the family of where() is for CPUs")
    default = schedule_of(level.kind).default_config(access_pattern(workload), level.tvm)
    names = ("vector_bytes",) if default.rows else ("vector_bytes", "unroll")
    tuned = {name: knobs[name] for name in names if name in knobs}
    return replace(default, bytes_per_thread=0, piece=_ONE_PIECE, **tuned)


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
