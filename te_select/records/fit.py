"""Whether this te_select can use a record: who wrote it, and whether its config fits a schedule."""

from __future__ import annotations

import json

import tvm
from tvm.target import Target

from te_select.machines import schedule_of
from te_select.machines.targets import ResolvedTarget
from te_select.records.log import Entry


def misfit(entry: Entry) -> str | None:
    """Why a record was written by something else than this te_select, if it was."""
    if entry.tvm != tvm.__version__:
        return f"it is of TVM {entry.tvm}, this is {tvm.__version__}"
    if entry.kind is None:
        return f"its target {entry.target} is of no kind of machine that te_select knows"
    try:
        schedule_of(entry.kind).config_from(entry.knobs).checked(entry.pattern)
    except ValueError as error:
        return f"its config does not fit the schedule: {error}"
    return None


def is_of(entry: Entry, target: ResolvedTarget) -> bool:
    """Whether a record is of a target.

    The folder alone does not say so: those of targets in JSON are named by ten digits of a digest.
    """
    try:
        return str(Target(json.loads(entry.target))) == str(target.tvm)
    except (ValueError, TypeError, RuntimeError, KeyError):
        return False
