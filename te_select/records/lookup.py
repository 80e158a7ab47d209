"""Finds a workload's record: exact, else nearest, else none; unsure records are skipped.

A record is near if all of these hold:

- the same operands move along the same loops, and elements are as wide;
- the sizes lie within a factor of `NEAR` of each other;
- it is of the same target: a config that gained on Zen 5 took 1.6 times the default's time on
  Emerald Rapids;
- the schedule treats both alike. A time measured at one size says little about a size that is
  treated differently, such as one that fits a cache.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from te_select.backends import schedule_of
from te_select.backends.targets import ResolvedTarget
from te_select.errors import TuningError, caught, warn
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.records import doubt, folders, log, origin
from te_select.records.log import Record
from te_select.records.sizes import representative

NEAR = 4.0  # a factor; levels of cache differ by 16 and more, so 4 mostly stays within one level


@dataclass(frozen=True)
class Found:
    """What to compile a workload with.

    Parameters
    ----------
    config
        A record's config of the machine's schedule; None for the schedule's default.
    origin
        ``"tuned:<target>/<record>"``, ``"nearest:<target>/<record>"`` or ``"default"``.
    why
        Why this one, in one line; also which nearer record is unsure, and for what reason.
    unsure
        The workload's own record, if it is unsure.
    """

    config: Any
    origin: str
    why: str
    unsure: Record | None = None


def find(
    workload: Workload,
    target: ResolvedTarget,
    logs: str | Path | Literal[False] | None = None,
    within: str = "",
) -> Found:
    """Find the record for a workload.

    Parameters
    ----------
    workload
        The workload. Named dims are near to every size. Of records that are equally near, one that
        was tuned for a range of sizes comes first, then the one whose size is closest to the
        representative size.
    target
        The target. If its code is for many models of machine, the knobs that the machine decides
        are left to the machine.
    logs
        A folder of logs; None for the user's own and those shipped with the package. Of equally
        near records of both, the user's is taken. False for no logs.
    within
        As for `default_folders`.

    Returns
    -------
    Found
        The default if no record is near.

    Raises
    ------
    TuningError
        If a given folder is missing, or holds no usable record.

    Warns
    -----
    RuntimeWarning
        For every damaged line, for records of another TVM or te_select, and for records whose
        config does not fit their own workload. All of these are left out.
    """
    if logs is False:
        return Found(None, origin.DEFAULT, origin.NOT_ASKED)
    if logs is None:
        roots = folders.default_folders(within)
    else:
        given = folders.given(logs, "a folder, None or False")
        folders.check(given)
        roots = [given.joinpath(within)]
    passed = ""
    unsure = None
    place = folders.of_target(target.records)
    must = logs is not None and not within
    entries = [entry for root in roots for entry in _usable(root / place, must=must)]
    if must and not entries:
        held = {each.name for each in folders.of_targets(roots[0])}
        if not held or place in held:
            raise TuningError(
                f"{roots[0]} holds no record that this te_select can use; expected "
                f"TARGET/{folders.SESSIONS}, as te-select tune writes it"
            )
    for entry, found in _ranked(workload, target, entries, place):
        if not entry.unsure:
            return replace(found, why=found.why + passed, unsure=unsure)
        if found.origin.startswith(origin.TUNED):
            unsure = unsure or entry
        why = f"it is unsure: {entry.unsure}"
        passed = passed or f"; the record {place}/{entry.key} is not used: {why}"
    why = origin.OF_SCHEDULE + passed if passed else origin.NONE_NEAR
    return Found(None, origin.DEFAULT, why, unsure)


def _usable(place: Path, must: bool) -> list[Record]:
    """The usable records of a folder, the fastest first; with ``must``, it must be readable."""
    try:
        found = log.read(place)
    except TuningError as error:
        if must:
            raise
        warn(str(error))
        return []
    found.warn()
    judged = [(entry, doubt.misfit(entry)) for entry in found.entries]
    odd = [f"{entry.key}: {problem}" for entry, problem in judged if problem]
    if odd:
        warn(f"{place}: {len(odd)} of {len(judged)} records are left out ({odd[0]}): tune again")
    usable = [entry for entry, problem in judged if not problem]
    return sorted(usable, key=lambda entry: entry.seconds)


def _ranked(
    workload: Workload, target: ResolvedTarget, entries: list[Record], place: str
) -> Iterator[tuple[Record, Found]]:
    """The records that are near, the nearest first; of equally near ones in their order."""
    pattern = access_pattern(workload)
    schedule = schedule_of(target.kind)
    elements = access_pattern(representative(workload)).elements or 1
    names = set(workload.dim_names)
    ranked = []
    for entry in entries:
        factor = origin.ratio(pattern, entry.pattern)
        ranged = bool(entry.sized_names)
        its = doubt.resolved(entry.target)
        if factor is None or factor > NEAR or (ranged and entry.sized_names != names):
            continue
        # The folder's name is not enough: for a target in JSON it is ten digits of a digest.
        if its and str(its.tvm) == str(target.tvm):
            apart = abs(math.log((entry.pattern.elements or 1) / elements))
            ranked.append(((factor, not ranged, apart), entry))
    for (factor, unranged, _), entry in sorted(ranked, key=lambda each: each[0]):
        own = factor == 1 and not (unranged and names)
        alike = not unranged or schedule.may_share_record(pattern, entry.pattern, target.tvm)
        if not own and not alike:
            continue
        try:
            config = schedule.config_from(entry.config).checked(pattern, target.tvm)
        except caught(ValueError):  # the config's kind of rows does not exist for this workload
            continue
        if not target.model:
            config = schedule.without_machine_knobs(pattern, target.tvm, config)
        found = "edited by hand since it was tuned" if entry.edited else origin.outcome(entry)
        name = f"{origin.TUNED if own else origin.NEAREST}{place}/{entry.key}"
        why = origin.explain(place, workload, None if own else factor, found)
        yield entry, Found(config, name, why)
