"""The gate of builds: each workload has a record, or the error has the command that tunes it."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from te_select.errors import ArgumentError, TuningError, caught
from te_select.operator import family
from te_select.operator.broadcast import count_of, shown
from te_select.operator.workload import Workload
from te_select.records import folders, origin

if TYPE_CHECKING:
    from te_select.backends.targets import ResolvedTarget

NEAR: Literal["near"] = "near"
Required: TypeAlias = bool | Literal["near"]


class _Wanted(NamedTuple):
    """A record that is wanted: its name for people, the flags of `tune`, and where it lies."""

    name: str
    flags: Sequence[str]
    workload: Workload
    within: str = ""


def check(required: Required, logs: Any, config: Any) -> None:
    """Raise ArgumentError if a requirement is none, or records are not used at all."""
    if not isinstance(required, bool) and required != NEAR:
        raise ArgumentError(f'require_record is {shown(required)}; expected False, True or "near"')
    if required and (logs is False or config):
        given = f"config is {shown(config)}" if config else "tuning_logs is False"
        raise ArgumentError(
            f"require_record is {shown(required)} and {given}, by which no record is used; "
            "expected one of them"
        )


def meets(found: str, required: Required) -> bool:
    """Whether a config of this origin is what is required."""
    accepted = (origin.TUNED, origin.NEAREST) if required == NEAR else (origin.TUNED,)
    return not required or found.startswith(accepted)


def require(
    required: Required,
    workloads: Iterable[Workload],
    levels: Sequence[ResolvedTarget],
    logs: Any = None,
    kernels: Iterable[str] = (),
) -> None:
    """Look for the record of each workload, for each level of a target.

    Parameters
    ----------
    required
        ``"near"`` if a nearest record is enough; False for no look at all.
    workloads, levels, logs
        What is compiled, for what, and from which logs, as `lookup.find` takes them.
    kernels
        Kernels of `te_select.where`, by their names.

    Raises
    ------
    TuningError
        If any has none. The message names each, and the commands that tune them.
    """
    if not required:
        return
    wanted = [_Wanted(str(w), ["--workload", json.dumps(w.to_json())], w) for w in workloads]
    known = family.kernels()
    for name in kernels:
        typical = family.typical(known[name])
        wanted.append(_Wanted(f"where() {name}", ["--where", name], typical, folders.FAMILY))
    pairs = list(itertools.product(levels, wanted))
    found = [(level.name, each, _origin(each, level, logs)) for level, each in pairs]
    lacking = [each for each in found if not meets(each[2], required)]
    if not lacking:
        return
    commands = []
    for level, group in itertools.groupby(lacking, lambda each: each[0]):
        commands += _commands(level, [each for _, each, _ in group], required, logs)
    places = "; ".join(f"{each.name} on {level} ({text})" for level, each, text in lacking)
    own = "record" if required == NEAR else "record of its own"
    raise TuningError(
        f"no {own} for {len(lacking)} of {count_of(len(pairs), 'workload')}: {places}; expected "
        f"those of: {' && '.join(commands)}"
    )


def _origin(wanted: _Wanted, level: ResolvedTarget, logs: Any) -> str:
    """Where the config would come from; of a folder that cannot be used, the reason."""
    from te_select.records import lookup  # noqa: PLC0415 - imports tvm

    try:
        return lookup.find(wanted.workload, level, logs, wanted.within).origin
    except caught(TuningError) as error:
        return str(error)


def _commands(target: str, wanted: Sequence[_Wanted], required: Required, logs: Any) -> list[str]:
    """The commands that tune for a target, one for all workloads and one for each kernel."""
    start = ["te-select", "tune", "--all", "--target", target]
    start += [] if logs is None else ["--tuning-logs", str(logs)]
    together = [each for each in wanted if not each.within]
    groups = [[each.flags] for each in wanted if each.within]
    if together:
        # A record of named dims is their own if it says for which sizes it is.
        names = dict.fromkeys(n for each in together for n in each.workload.dim_names)
        sizes = [] if required == NEAR else [["--size", f"{name}=1:64"] for name in names]
        groups.insert(0, [*(each.flags for each in together), *sizes])
    return [shlex.join([*start, *itertools.chain(*group)]) for group in groups]
