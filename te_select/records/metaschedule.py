"""Records as MetaSchedule writes them, for those who have TVM alone."""

import functools
from collections.abc import Iterable
from typing import Any

from tvm import IRModule, s_tir
from tvm.s_tir import meta_schedule as ms

from te_select import forks
from te_select.backends import limits, schedule_of
from te_select.errors import ArgumentError, suppress
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.records import doubt
from te_select.records.folders import RECORDS, WORKLOADS
from te_select.records.log import Record
from te_select.runtime.artifact import scratch


@forks.no_fork_during()
def files(entries: Iterable[Record]) -> dict[str, bytes]:
    """MetaSchedule's two files of those records that this TVM may use, by their names.

    The trace of a record is that of the schedule that ships.
    """
    with scratch.folder() as folder:
        database = ms.database.JSONDatabase(work_dir=str(folder))
        for entry in entries:
            if entry.unsure or doubt.misfit(entry) is not None:
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
