"""Whether this te_select can use a record: which version wrote it, and whether its config fits."""

from __future__ import annotations

import functools
import json

import tvm

from te_select.backends import schedule_of
from te_select.backends.targets import ResolvedTarget, resolve
from te_select.errors import TargetError, caught
from te_select.records.entry import Entry


def misfit(entry: Entry) -> str | None:
    """Why this te_select cannot use a record, or None if it can."""
    if entry.tvm != tvm.__version__:
        return f"it is of TVM {entry.tvm}, this is {tvm.__version__}"
    if entry.kind is None:
        return f"its target {entry.target} is of no kind of machine that te_select knows"
    if _resolved(entry.target) is None:
        return f"its target {entry.target} is none that te_select takes"
    try:
        schedule_of(entry.kind).config_from(entry.knobs).checked(entry.pattern)
    except caught(ValueError) as error:
        return f"its config does not fit the schedule: {error}"
    return None


def is_of(entry: Entry, target: ResolvedTarget) -> bool:
    """Whether a record is of a target.

    The folder's name is not enough: for a target in JSON it is ten digits of a digest.
    """
    own = _resolved(entry.target)
    return own is not None and str(own.tvm) == str(target.tvm)


def is_of_model(entry: Entry, target: ResolvedTarget) -> bool:
    """Whether record and target are for one and the same model of machine."""
    own = _resolved(entry.target)
    return own is not None and own.model != "" and own.model == target.model


def record_group(entry: Entry) -> tuple[str, object] | None:
    """The kind of machine of a record and its group within the kind; None if it has none."""
    return _group(entry.target)


@functools.cache
def _group(text: str) -> tuple[str, object] | None:
    own = _resolved(text)
    return None if own is None else (own.kind, schedule_of(own.kind).record_group(own.tvm))


@functools.cache
def _resolved(text: str) -> ResolvedTarget | None:
    """A record's target; None if it is not valid: some make TVM or LLVM end the process."""
    try:
        return resolve(json.loads(text))
    except TargetError:
        return None
