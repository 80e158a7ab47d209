"""Which configs to try: all of a small space; of a large one, what the knobs' own worth suggests.

The default comes first, then the configs that differ from it in one knob, or in two that the
machine decides. Their times say what the values of knobs are worth. MetaSchedule's evolutionary
search proposes the others, with a cost model that multiplies these. With the same seed and the same
times the same configs are proposed, so an interrupted session can be repeated up to where it
stopped.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tvm import IRModule, s_tir

from te_select import forks
from te_select.backends import limits, schedule_of
from te_select.backends.targets import ResolvedTarget
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.tuning.evolution import Batches, Evolution
from te_select.tuning.prediction import SecondsOf, Worth, changes, one_by_one, pairs_of_machine


def candidates(
    workload: Workload,
    target: ResolvedTarget,
    cpus: int | None = None,
    built: Workload | None = None,
) -> list[Any]:
    """List the configs of a workload's space that differ in effect, the default first.

    Parameters
    ----------
    workload
        A workload of int dims.
    target
        The target. If it is not a single model of machine, the knobs that the machine decides are
        left to the machine.
    cpus
        How many CPUs run them; None if that is not known.
    built
        The workload that is built, if its dims have names; ``workload`` has their largest sizes.

    Returns
    -------
    list of Config
        In a fixed order. Of those that have the same effect, the one is listed that differs from
        the default in the fewest knobs.
    """
    pattern, named = access_pattern(workload), access_pattern(built or workload)
    schedule = schedule_of(target.kind)
    default = schedule.default_config(named, target.tvm)
    space = {
        name: dict.fromkeys((*values, getattr(default, name)))
        for name, values in schedule.space(pattern, target.tvm).items()
    }
    listed = (
        schedule.Config(**dict(zip(space, values, strict=True)))
        for values in itertools.product(*space.values())
    )
    distinct: dict[tuple[object, ...], Any] = {}
    for config in (default, *sorted(listed, key=lambda each: len(changes(each, default)))):
        # Many machines run code for a level. One machine's choice does not hold for the others.
        if not target.model and schedule.without_machine_knobs(named, target.tvm, config) != config:
            continue
        try:
            distinct.setdefault(schedule.dedup_key(pattern, config.checked(named), cpus), config)
        except ValueError:  # knobs of the space that do not go together
            continue
    return list(distinct.values())


@forks.no_fork_during()
def open_search(
    workload: Workload,
    target: ResolvedTarget,
    trials: int,
    seed: int,
    seconds_of: SecondsOf,
    cpus: int | None = None,
    built: Workload | None = None,
) -> tuple[int, Batches]:
    """Choose how to search a workload's space.

    Parameters
    ----------
    workload
        A workload of int dims.
    target
        The target.
    trials
        How many configs may be measured.
    seed
        Decides which configs are measured if the space has more.
    seconds_of
        Asked for the configs of a batch before the next batch is proposed.
    cpus, built
        As for `candidates`.

    Returns
    -------
    tuple
        The most configs that are proposed, and the batches.

    Raises
    ------
    ArgumentError
        If the space must be searched, and TVM cannot fuse the loops of the default config.
    """
    every = candidates(workload, target, cpus, built)
    if len(every) <= trials:
        return len(every), filter(None, iter((every[:1], every[1:])))
    if built is not None:
        return trials, _predicted(every, trials, seconds_of)
    mod = IRModule({"main": definition(workload)})
    with limits.tvm_errors_as_ours(workload):  # or there is nothing to be found
        rules = schedule_of(target.kind)
        rules.apply(s_tir.Schedule(mod), access_pattern(workload), target.tvm, every[0])
    return trials, _batches(workload, target, every, trials, seed, cpus, seconds_of)


def _predicted(every: Sequence[Any], trials: int, seconds_of: SecondsOf) -> Batches:
    """The default, then those that differ in one knob, then the best predicted.

    MetaSchedule cannot search for a function with named dims.
    """
    yield [every[0]]
    first = [every[0], *one_by_one(every)][:trials]
    yield first[1:]
    worth = Worth(every, lambda config: seconds_of(config) if config in first else None)
    best = sorted((config for config in every if config not in first), key=worth.predict)
    yield best[: trials - len(first)]


def _batches(
    workload: Workload,
    target: ResolvedTarget,
    every: Sequence[Any],
    trials: int,
    seed: int,
    cpus: int | None,
    seconds_of: SecondsOf,
) -> Batches:
    """The default, then those that differ in one knob, then what evolution proposes."""
    yield [every[0]]
    if first := [*one_by_one(every), *pairs_of_machine(every)][: trials - 1]:
        yield first
    if len(first) < trials - 1:
        with forks.no_fork_during():
            known = {config: seconds_of(config) for config in (every[0], *first)}
            worth = Worth(every, known.get)
            evolution = Evolution(workload, target, every, worth, trials, seed, cpus)
        yield from evolution.batches(known, seconds_of)
