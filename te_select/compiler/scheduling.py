"""From a workload to a scheduled function: its definition, a config, and the schedule."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tvm import s_tir

from te_select.backends import limits, schedule_of
from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import ResolvedTarget
from te_select.base import forks
from te_select.errors import ArgumentError, ArtifactError, caught
from te_select.operator.access import AccessPattern, access_pattern
from te_select.operator.broadcast import shown
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.records import lookup
from te_select.records.origin import BY_HAND, DEFAULT
from te_select.schedules import knobs as knobs_of

TuningLogs = str | Path | Literal[False] | None


@forks.no_fork_during()
def schedule(
    workload: Workload,
    target: ResolvedTarget,
    tuning_logs: TuningLogs = None,
    config: Mapping[str, Any] | None = None,
    *,
    knobs: Mapping[str, Any] | None = None,
) -> Scheduled:
    """Choose a config, or take the given one, and apply the schedule.

    Parameters
    ----------
    workload
        The workload.
    target
        The target.
    tuning_logs
        As for `compile`.
    config
        A config as a manifest holds it.
    knobs
        Values for some knobs, set by hand; the others have the default's values.

    Returns
    -------
    Scheduled
        The scheduled functions, their config, and its origin.

    Raises
    ------
    ArgumentError
        If TVM cannot fuse loops of that many iterations, the schedule has no such knobs, or there
        are both knobs and a folder of records.
    """
    pattern = access_pattern(workload)
    rules = schedule_of(target.kind)
    origin = DEFAULT
    why = ""
    if config is not None:
        chosen = _config_from_manifest(config, pattern, rules, target)
    elif knobs:
        if tuning_logs not in (None, False):
            raise ArgumentError(
                f"config is {shown(knobs)} and tuning_logs is {shown(tuning_logs)}; expected one "
                "of them: a config by hand uses no records"
            )
        chosen = config_by_hand("config", knobs, pattern, rules, target)
        origin = BY_HAND
        why = f"{_listed(knobs)}; the other knobs are those of the default config"
    else:
        found = lookup.find(workload, target, tuning_logs)
        chosen = found.config or rules.default_config(pattern, target.tvm)
        origin, why = found.origin, found.why
    functions = {}
    for variant in rules.variants(pattern, chosen):
        sch = s_tir.Schedule(definition(workload))
        with limits.tvm_errors_as_ours(workload):
            rules.apply(sch, pattern, target.tvm, variant.config)
        functions[variant] = sch.mod["main"]
    return Scheduled(workload, target.name, chosen, origin, why, functions)


def checked(workload: Any) -> Workload:
    """Return what is given if it is a workload.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if not isinstance(workload, Workload):
        raise ArgumentError(
            f"{shown(workload)} is not a te_select.Workload; expected "
            "te_select.Workload(cond_shape, then_shape, else_shape)"
        )
    return workload


def config_by_hand(
    what: str, given: Mapping[str, Any], pattern: AccessPattern, rules: Any, target: ResolvedTarget
) -> Any:
    """The default config with these values of knobs.

    Raises
    ------
    ArgumentError
        If the schedule has no such knobs, or cannot follow them. The message begins with ``what``.
    """
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{what} is {shown(given)}; expected a mapping of knobs to values")
    default = rules.default_config(pattern, target.tvm)
    try:
        return knobs_of.with_values(default, given, pattern, target.tvm)
    except caught(ValueError) as error:
        raise ArgumentError(
            f"for {target.name}, {what} {_listed(given)} cannot be followed: {error}"
        ) from error


def _listed(knobs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in knobs.items())


def _config_from_manifest(
    config: Mapping[str, Any], pattern: AccessPattern, rules: Any, target: ResolvedTarget
) -> Any:
    try:
        return rules.Config(**config).checked(pattern, target.tvm)
    except caught(TypeError, ValueError) as error:
        raise ArtifactError(f"config {shown(dict(config))} is damaged: {error}") from error
