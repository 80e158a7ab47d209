"""MetaSchedule reads the records, and a record gives the function that was measured."""

import dataclasses
import random

import pytest
import tvm_ffi
from tvm import IRModule, s_tir
from tvm.s_tir import meta_schedule as ms

import te_select
from te_select.compiler.scheduling import schedule
from te_select.records import log, store
from te_select.schedules.cpu import schedule as cpu
from te_select.tuning.space import Space
from tests.support.tuning_fakes import BIG, FEW, ROWS, SMALL
from tests.support.tuning_records import V4, make, of_another_tvm


@pytest.mark.parametrize("workload", [FEW, SMALL, ROWS, BIG], ids=str)
def test_record_rebuilds_exactly_the_function_that_was_measured(workload, tmp_path):
    configs = Space(workload, V4).configs
    for number, config in enumerate(random.Random(0).sample(configs, min(6, len(configs)))):
        entry = make(workload, config=config)
        store.put(tmp_path / str(number), [entry])
        database = ms.database.JSONDatabase(work_dir=str(tmp_path / str(number)))
        (loaded,) = database.get_all_tuning_records()
        sch = s_tir.Schedule(loaded.workload.mod)
        loaded.trace.apply_to_schedule(sch, remove_postproc=False)
        replayed = sch.mod["main"]
        measured = schedule(workload, V4, config=dataclasses.asdict(config)).func
        assert tvm_ffi.structural_equal(replayed, measured)
        assert cpu.config_from(entry.knobs) == config == cpu.config_of(replayed)


def test_records_that_this_tvm_cannot_take_are_not_in_its_files(tmp_path, entries):
    store.put(tmp_path, [entries[0], of_another_tvm(entries[1])])
    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert len(database.get_all_tuning_records()) == 1
    assert len(log.read(tmp_path).entries) == 2


def test_metaschedule_loads_the_files_and_finds_the_schedule(tmp_path, entries):
    store.put(tmp_path, entries)
    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert len(database.get_all_tuning_records()) == 3
    mod = te_select.operator.definition.definition(ROWS)
    found = database.query_schedule(IRModule({"main": mod}), V4.tvm, "main")
    assert tvm_ffi.structural_equal(found.mod["main"], schedule(ROWS, V4, False).func)
