"""Writes records, under a lock: the files of a target one after another, each whole or not at all.

The records' own file is the last one. So a process that is killed at any moment leaves the old
records or the new ones. MetaSchedule's files are made of them, and the next write makes them anew.
"""

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from filelock import FileLock
from tvm import IRModule, s_tir
from tvm.s_tir import meta_schedule as ms

from te_select.backends import limits, schedule_of
from te_select.base import atomic, forks, scratch
from te_select.errors import ArgumentError, ArtifactError, TuningError, caught, suppress
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.records import doubt, log
from te_select.records.fields import Damage
from te_select.records.folders import RECORDS, SESSIONS, WORKLOADS
from te_select.records.log import Record

LOCK = ".lock"


def locked(folder: Path, name: str = LOCK) -> AbstractContextManager[object]:
    """Make the folder if it is missing, and take one of its locks, which its context releases.

    Raises
    ------
    TuningError
        If the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / name).acquire()
    except caught(OSError, ValueError, NotImplementedError) as error:
        raise TuningError(
            f"{folder} cannot be written: {getattr(error, 'strerror', None) or error}; expected a "
            "folder of yours"
        ) from error


def put(
    folder: Path,
    entries: Sequence[Record],
    wanted: Callable[[Record, Record], bool] = doubt.may_replace,
) -> list[Record]:
    """Put records into a target's folder; each replaces those of its name (`Record.identity`).

    Parameters
    ----------
    folder
        The folder of the target; made if it is missing.
    entries
        The records, one for each name.
    wanted
        ``wanted(new, old)``: whether the new record may replace the old one.

    Returns
    -------
    list of Record
        The records that were put.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with locked(folder):
        found = log.read(folder)
        old = {entry.identity: entry for entry in found.entries}
        new = [e for e in entries if e.identity not in old or wanted(e, old[e.identity])]
        _write(folder, [*(old | {e.identity: e for e in new}).values()], found.damaged)
    return new


def drop(folder: Path, useless: Sequence[Record]) -> None:
    """Drop records and all damaged lines; what others have put since the caller looked is kept.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with locked(folder):
        found = log.read(folder)
        kept = [entry for entry in found.entries if entry not in useless]
        if len(kept) < len(found.entries) or found.damaged:
            _write(folder, kept)


def _write(folder: Path, entries: Sequence[Record], damaged: Sequence[Damage] = ()) -> None:
    """Replace the records by these; lines that are damaged stay, as somebody may repair them."""
    lines = [json.dumps(entry.session).encode() for entry in entries]
    text = b"".join(line + b"\n" for line in (*lines, *(each.text for each in damaged)))
    try:
        # MetaSchedule's records name lines of workloads: there are none while these may move.
        of_metaschedule = [(RECORDS, b""), *_of_metaschedule(entries).items()]
        for name, data in (*of_metaschedule, (SESSIONS, text)):
            atomic.replace(folder / name, data)
    except caught(ArtifactError) as error:
        raise TuningError(f"{folder} cannot be written: {error}") from error


@forks.no_fork_during()
def _of_metaschedule(entries: Iterable[Record]) -> dict[str, bytes]:
    """MetaSchedule's two files of those records that this TVM may use, by their names.

    The trace of a record is that of the schedule that ships.
    """
    with scratch.folder() as folder:
        database = ms.database.JSONDatabase(work_dir=str(folder))
        for entry in entries:
            if doubt.unusable(entry):
                continue
            with suppress(ArgumentError), limits.tvm_errors_as_ours(entry.workload):
                knobs = tuple(entry.config.items())
                mod, trace, target, args = _traced(entry.workload, entry.target, knobs)
                workload = database.commit_workload(mod)
                database.commit_tuning_record(
                    ms.database.TuningRecord(trace, workload, [entry.seconds], target, args)
                )
        return {name: (folder / name).read_bytes() for name in (WORKLOADS, RECORDS)}


@functools.lru_cache(maxsize=1024)
def _traced(workload: Workload, target: str, knobs: tuple[tuple[str, int], ...]) -> tuple[Any, ...]:
    """What MetaSchedule keeps of a config, which takes some 10 ms."""
    resolved = doubt.resolved(target)
    assert resolved is not None
    schedule = schedule_of(resolved.kind)
    mod = IRModule({"main": definition(workload)})
    sch = s_tir.Schedule(mod)
    config = schedule.config_from(dict(knobs))
    schedule.apply(sch, access_pattern(workload), resolved.tvm, config)
    return mod, sch.trace, resolved.tvm, ms.arg_info.ArgInfo.from_prim_func(mod["main"])
