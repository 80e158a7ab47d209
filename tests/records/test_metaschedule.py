"""MetaSchedule reads the records, and a record gives the function that was measured."""

import dataclasses
import random

import pytest
import tvm_ffi
from tvm import s_tir
from tvm.s_tir import meta_schedule as ms

from te_select.backends import schedule_of
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.records import log, store
from te_select.tuning.space import Space
from tests.support.tuning_fakes import BIG, FEW, ROWS
from tests.support.tuning_records import V4, flat, of_another_tvm, record


@pytest.mark.parametrize("target", [V4, resolve("cuda:sm_90")], ids=lambda target: target.kind)
@pytest.mark.parametrize("workload", [FEW, flat(4099, "complex128"), ROWS, BIG], ids=str)
def test_record_rebuilds_exactly_the_function_that_was_measured(workload, target, tmp_path):
    rules, configs = schedule_of(target.kind), Space(workload, target).configs
    for number, config in enumerate(random.Random(0).sample(configs, min(6, len(configs)))):
        entry = record(workload, target, config)
        store.put(tmp_path / str(number), [entry])
        database = ms.database.JSONDatabase(work_dir=str(tmp_path / str(number)))
        (loaded,) = database.get_all_tuning_records()
        sch = s_tir.Schedule(loaded.workload.mod)
        loaded.trace.apply_to_schedule(sch, remove_postproc=False)
        replayed = sch.mod["main"]
        measured = schedule(workload, target, config=dataclasses.asdict(config)).func
        assert tvm_ffi.structural_equal(replayed, measured)
        assert rules.config_from(entry.config) == config == rules.config_of(replayed)
        assert entry.kind == target.kind


def test_records_that_this_tvm_cannot_take_are_not_in_its_files(tmp_path, entries):
    store.put(tmp_path, [entries[0], of_another_tvm(entries[1])])
    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert len(database.get_all_tuning_records()) == 1
    assert len(log.read(tmp_path).entries) == 2
