"""Records as MetaSchedule writes them, made and replayed by MetaSchedule itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tvm import IRModule, s_tir
from tvm.s_tir import meta_schedule as ms

from te_select import forks
from te_select.errors import TuningError
from te_select.machines import limits, schedule_of
from te_select.machines.targets import ResolvedTarget
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.records import log
from te_select.records.log import Entry
from te_select.runtime import scratch


@forks.held_off()
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
        What to keep of how it was found.

    Returns
    -------
    Entry
        The record, its trace being that of the schedule that ships.
    """
    pattern = access_pattern(workload)
    mod = IRModule({"main": definition(workload)})
    sch = s_tir.Schedule(mod)
    with limits.explained(workload):
        schedule_of(target.kind).apply(sch, pattern, target.tvm, config)
    with scratch.folder() as folder:
        database = ms.database.JSONDatabase(work_dir=str(folder))
        arguments = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
        committed = database.commit_workload(mod)
        database.commit_tuning_record(
            ms.database.TuningRecord(sch.trace, committed, [seconds], target.tvm, arguments)
        )
        (written,) = log.read(folder).entries
    return replace(written, session={"record": written.key, **session})


@forks.held_off()
def replay(record: Entry) -> s_tir.Schedule:
    """Have MetaSchedule load a record and apply its trace to its workload.

    Parameters
    ----------
    record
        The record.

    Returns
    -------
    tvm.s_tir.Schedule
        The schedule.

    Raises
    ------
    TuningError
        If the trace does not fit the workload, or the record is of another one.
    """
    with scratch.folder() as folder:
        (folder / log.WORKLOADS).write_text(f"{record.workload}\n")
        (folder / log.RECORDS).write_text(f"[0,{record.body}]\n")
        try:
            database = ms.database.JSONDatabase(work_dir=str(folder))
            (loaded,) = database.get_all_tuning_records()
            mod = loaded.workload.mod
            sch = s_tir.Schedule(mod)
            loaded.trace.apply_to_schedule(sch, remove_postproc=False)
            arguments = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
        except Exception as error:  # TVM raises many kinds
            raise TuningError(f"record {record.key} cannot be replayed on its workload") from error
    shapes = [list(info.shape) for info in arguments]
    if shapes != [list(info.shape) for info in loaded.args_info] or not _fits(record, shapes):
        raise TuningError(f"record {record.key} is of another workload than the one it names")
    return sch


def _fits(record: Entry, shapes: list[list[int]]) -> bool:
    """Whether the shapes of cond, then, else and out are such as the record's access pattern has.

    Elements of 16 bytes are pairs there, along a loop that may have been merged with others.
    """
    loops = record.pattern.loops
    moved = [
        math.prod(loop.extent or 0 for loop in loops if letter in f"{loop.movers}o")
        for letter in "cteo"
    ]
    return moved == [math.prod(shape) for shape in shapes]
