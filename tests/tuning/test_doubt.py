"""Outcomes that cannot be trusted: what is recorded, and who uses it."""

import dataclasses

import pytest
from tvm.s_tir import meta_schedule as ms

from te_select.operator.access import access_pattern
from te_select.records import doubt, log, lookup, manage
from te_select.schedules.cpu import schedule as cpu
from tests.support.cli import run_json
from tests.support.tuning_fakes import SMALL, FakeMeasurer
from tests.support.tuning_records import V4, add
from tests.support.workloads import flat as one_loop

TARGET = V4.name
SAID = "other programs used 1.00 cores meanwhile"


def test_winner_beside_other_programs_is_not_recorded(run, tmp_path):
    """By a fleet as well, of which the record has the CPU."""
    record = run(busy=1.0, runner="rpc://tracker:9190/kind")
    default = dataclasses.asdict(cpu.default_config(access_pattern(SMALL), V4.tvm))
    said = f"{SAID}; a config measured 2.00x faster is not recorded"
    assert (record.unsure, record.config, record.busy_cores) == (said, default, 1.0)
    (entry,) = log.read(tmp_path / TARGET).entries
    assert (dict(entry.config), entry.unsure) == ({k: int(v) for k, v in default.items()}, said)
    assert entry.session["machine"] == "a CPU behind rpc://tracker:9190/kind"
    found = lookup.find(SMALL, V4, tmp_path)
    assert (found.config, found.origin) == (None, "default")
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["gain"], row["outcome"], row["unsure"]) == (None, "unsure", said)
    # MetaSchedule's files say nothing of doubts, so they hold only what may be replayed.
    database = ms.database.JSONDatabase(work_dir=str(tmp_path / TARGET))
    assert len(database.get_all_tuning_records()) == 0


def test_winner_by_more_than_others_used_is_recorded(run):
    """Twice as fast is a gain of a whole call, and half a core is half of that."""
    assert [bool(run(busy=busy, force=True).unsure) for busy in (0.49, 0.51)] == [False, True]


def test_drift_that_all_contestants_share_is_no_spread(run):
    """The machine was twice as slow in every second round; the fake has noise of its own."""

    class Drifting(FakeMeasurer):
        def interleave(self, candidates, rounds):
            return [
                dataclasses.replace(
                    each, seconds=tuple(s * (1 + i % 2) for i, s in enumerate(each.seconds))
                )
                for each in super().interleave(candidates, rounds)
            ]

    record = run(measurer=Drifting())
    assert 0 < record.spread < 0.1
    assert record.unsure == ""


@pytest.mark.parametrize(
    ("spread", "busy", "gain", "said"),
    [
        (0.5, 0.15, 1, ""),
        (0.1, 0.16, 1, "other programs used 0.16 cores meanwhile"),
        (0.1, 0.16, 1.4, ""),
        (0.1, 0.3, 1.4, "used 0.30 cores meanwhile; a config measured 1.40x faster is not"),
        (0.8, 0.0, 1, "the rounds lay 80% apart"),
        (0.8, 2.0, 1, "other programs used 2.00 cores meanwhile; the rounds lay 80% apart"),
    ],
)
def test_reasons_for_doubt(spread, busy, gain, said):
    found = doubt.reasons(busy, spread, gain)
    assert said in found and bool(found) == bool(said)


def test_finals_that_do_not_repeat_a_trial_are_unsure(run):
    """For less than half a second, both threads of a trial had one core."""

    class Slower(FakeMeasurer):
        def interleave(self, candidates, rounds):
            return [self._measurement(candidates[0], rounds) for _ in candidates]

    assert run(measurer=Slower()).unsure == "the finals did not repeat the 2.00x of a trial"


def test_unsure_records_are_pruned_and_replaced_by_imports(run, tmp_path):
    run(busy=1.0)
    other = tmp_path / "other"
    manage.merge(tmp_path, other)
    run()
    assert manage.merge(tmp_path, other).taken
    assert not log.read(other / TARGET).entries[0].unsure
    assert manage.prune(other) == []
    run(busy=1.0, force=True)
    assert manage.prune(tmp_path) == []  # the sure record is still there


def test_prune_drops_what_is_unsure(run, tmp_path):
    run(busy=1.0)
    (line,) = manage.prune(tmp_path)
    assert line.startswith(f"{TARGET}/w4_1024cte: it is unsure: {SAID}")
    assert log.read(tmp_path / TARGET).entries == ()


@pytest.mark.parametrize("nearest", [20_000, 19_000])
def test_unsure_record_that_is_nearer_is_told_of(tmp_path, nearest):
    add(tmp_path, one_loop(17_000), said={"unsure": "it is not the nearest"})
    add(tmp_path, one_loop(nearest), said={"unsure": "noise"})
    said = f"; the record x86-64-v4/w4_{nearest}cte is not used: it is unsure: noise"
    found = lookup.find(one_loop(20_000), V4, tmp_path)
    assert (found.config, found.origin) == (None, "default")
    assert found.why == f"the schedule's default config{said}"
    add(tmp_path, one_loop(15_000), unroll=1)
    found = lookup.find(one_loop(20_000), V4, tmp_path)
    assert found.origin == "nearest:x86-64-v4/w4_15000cte"
    assert found.why.startswith("tuned for x86-64-v4") and found.why.endswith(said)
    for n in (15_000, 900_000):  # another is nearer, or none is near
        assert "unsure" not in lookup.find(one_loop(n), V4, tmp_path).why
