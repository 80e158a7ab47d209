"""Records as MetaSchedule writes them, made and replayed by MetaSchedule itself."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm import IRModule, s_tir
from tvm.s_tir import meta_schedule as ms

from te_select import forks
from te_select.backends import limits, schedule_of
from te_select.backends.targets import ResolvedTarget
from te_select.errors import TuningError, caught
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.records import log
from te_select.records.folders import RECORDS, WORKLOADS
from te_select.records.log import Entry
from te_select.runtime.artifact import scratch

_PATIENCE = 60  # seconds; replaying a record takes some ms


@forks.no_fork_during()
def entry(
    workload: Workload,
    target: ResolvedTarget,
    config: Any,
    seconds: float,
    session: Mapping[str, Any],
) -> Entry:
    """Make the record of a measured config.

    Parameters
    ----------
    workload
        A workload of int dims.
    target
        The target.
    config
        The config of the machine's schedule.
    seconds
        Its time for one call.
    session
        How it was found, to be kept with the record.

    Returns
    -------
    Entry
        The record. Its trace is that of the schedule that ships. One that is unsure has no trace,
        so that TVM never replays it.
    """
    pattern = access_pattern(workload)
    mod = IRModule({"main": definition(workload)})
    sch = s_tir.Schedule(mod)
    with limits.tvm_errors_as_ours(workload):
        schedule_of(target.kind).apply(sch, pattern, target.tvm, config)
    with scratch.folder() as folder:
        database = ms.database.JSONDatabase(work_dir=str(folder))
        arguments = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
        committed = database.commit_workload(mod)
        database.commit_tuning_record(
            ms.database.TuningRecord(sch.trace, committed, [seconds], target.tvm, arguments)
        )
        (written,) = log.read(folder).entries
    said = {"record": written.key, **session}
    if said.get("unsure"):
        said |= {"config": dict(written.knobs), "seconds": seconds}
        said |= {"target": written.target, "tvm": written.tvm}
        return replace(written, workload="", body="", session=said)
    said |= {"digest": log.digest(written.body), "workload_hash": json.loads(written.workload)[0]}
    return replace(written, session=said)


def problem(record: Entry) -> str | None:
    """Say why a record cannot be replayed; None if it can be.

    A child process tries it, because some edited traces and workloads make TVM end the process. If
    a signal ends the child, another one tries it again: the child of a process that has threads, of
    JAX for example, may fail by itself.
    """
    code = _tried(record)
    if code < 0:
        code = _tried(record)
    if code == -signal.SIGALRM:
        return f"it takes longer than {_PATIENCE} s to be replayed on its workload"
    if code < 0:
        return f"TVM crashes ({signal.strsignal(-code)}) as it replays it on its workload"
    return "it cannot be replayed on its workload" if code else None


def _tried(record: Entry) -> int:
    """The exit code of a child that tries to replay a record; negative for a signal."""
    with scratch.folder() as folder:

        def replay_in_silence() -> None:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            replay(record, folder)

        return forks.try_in_child(replay_in_silence, _PATIENCE)


def replay(record: Entry, folder: Path) -> s_tir.Schedule:
    """Have MetaSchedule load a record and apply its trace to its workload.

    Parameters
    ----------
    record
        The record. Ask `problem` first, because some records crash TVM.
    folder
        An empty folder, for the files of a log.

    Returns
    -------
    tvm.s_tir.Schedule
        The schedule.

    Raises
    ------
    TuningError
        If the trace does not fit the workload.
    """
    (folder / WORKLOADS).write_text(f"{record.workload}\n")
    (folder / RECORDS).write_text(f"[0,{record.body}]\n")
    try:
        database = ms.database.JSONDatabase(work_dir=str(folder))
        (loaded,) = database.get_all_tuning_records()
        sch = s_tir.Schedule(loaded.workload.mod)
        loaded.trace.apply_to_schedule(sch, remove_postproc=False)
    except caught(Exception) as error:  # TVM raises many kinds
        raise TuningError(f"record {record.key} cannot be replayed on its workload") from error
    return sch
