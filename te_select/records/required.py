"""The gate of builds: each workload has a record, or the error has the command that tunes it."""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

from te_select.errors import ArgumentError, TuningError, caught
from te_select.operator.broadcast import count_of, shown
from te_select.operator.workload import Workload
from te_select.records import origin

if TYPE_CHECKING:
    from te_select.backends.targets import ResolvedTarget

NEAR: Literal["near"] = "near"
Required = bool | Literal["near"]
_source: ContextVar[Sequence[str]] = ContextVar("flags that name all workloads", default=())


@contextlib.contextmanager
def named_by(flags: Sequence[str]) -> Iterator[None]:
    """Name workloads by these flags of the command line in errors, not one by one."""
    token = _source.set(flags)
    try:
        yield
    finally:
        _source.reset(token)


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
    required: Required, workloads: list[Workload], levels: Sequence[ResolvedTarget], logs: Any
) -> None:
    """Look for the record of each workload, for each level of a target.

    Parameters
    ----------
    required
        ``"near"`` if a nearest record is enough; False for no look at all.
    workloads, levels, logs
        What is compiled, for what, and from which logs, as `lookup.find` takes them.

    Raises
    ------
    TuningError
        If there are workloads without one. The message names each, and the command that tunes them.
    """
    if not required:
        return
    asked = list(itertools.product(levels, workloads))
    lacking: dict[str, list[Workload]] = {}
    places = []
    for level, workload in asked:
        found, why = _origin(workload, level, logs)
        if not meets(found, required):
            lacking.setdefault(level.name, []).append(workload)
            places.append(f"{workload} on {level.name} ({why})")
    if not places:
        return
    if _source.get():
        lacking = dict.fromkeys(lacking, workloads)
    commands = [_command(*each, required, logs) for each in lacking.items()]
    own = "record" if required == NEAR else "record of its own"
    raise TuningError(
        f"no {own} for {len(places)} of {count_of(len(asked), 'workload')}: {'; '.join(places)}; "
        f"expected those of: {' && '.join(commands)}"
    )


def _origin(workload: Workload, level: ResolvedTarget, logs: Any) -> tuple[str, str]:
    """Where the config would come from, and why it is not the workload's own record."""
    from te_select.records import lookup  # noqa: PLC0415 - imports tvm

    try:
        found = lookup.find(workload, level, logs)
    except caught(TuningError) as error:
        return str(error), str(error)
    why = found.origin
    if own := found.unsure:
        why = f"its record is unsure: {own.unsure}"
        if own.trials > 1:  # a default that met no other config is never kept
            why += "; --accept-unsure keeps it"
    return found.origin, why


def _command(target: str, workloads: Sequence[Workload], required: Required, logs: Any) -> str:
    """The command that tunes workloads for a target, after which each has a record."""
    words = ["te-select", "tune", "--all", "--target", target]
    if logs is not None:
        words += ["--tuning-logs", str(logs)]
    source = _source.get()
    words += source
    for workload in () if source else workloads:
        words += ["--workload", json.dumps(workload.to_json())]
    # A record of named dims is their own if it says for which sizes it is.
    if required != NEAR and "--size" not in source:
        names = itertools.chain.from_iterable(each.dim_names for each in workloads)
        for name in dict.fromkeys(names):
            words += ["--size", f"{name}=1:64"]
    return shlex.join(words)
