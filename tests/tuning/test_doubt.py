"""Outcomes that cannot be trusted: what is recorded, and who uses it."""

import dataclasses

import pytest

import te_select
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.records import doubt, log, lookup, manage
from te_select.schedules.cpu import schedule as cpu
from te_select.timing import cores
from te_select.timing.rounds import Timing
from te_select.tuning import session as module
from tests.support.tuning_fakes import SMALL, FakeMeasurer, flat

TARGET = "x86-64-v4"
V4 = resolve(TARGET)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Tune beside programs that use so many cores."""

    def tune(busy=0.0, measurer=None, **options):
        tune.measurer = measurer or FakeMeasurer()
        monkeypatch.setattr(module, "open_measurer", lambda *_: tune.measurer)
        monkeypatch.setattr(cores.Watch, "others", lambda _: busy)
        options = {"patient": True, **options}
        return te_select.tune(SMALL, TARGET, tuning_logs=tmp_path, trials=80, **options)

    return tune


def default():
    return dataclasses.asdict(cpu.default_config(access_pattern(SMALL), V4.tvm))


def test_winner_beside_other_programs_is_not_recorded(run, tmp_path):
    record = run(busy=1.0)
    assert record.unsure == (
        "other programs used 1.00 cores meanwhile; a config measured 2.00x faster is not recorded"
    )
    assert (record.config, record.busy_cores) == (default(), 1.0)
    (entry,) = log.read(tmp_path / TARGET).entries
    assert dict(entry.knobs) == {name: int(value) for name, value in default().items()}
    assert entry.unsure == record.unsure


@pytest.mark.parametrize("runner", ["local", "rpc://tracker:9190/kind"])
def test_winner_on_a_busy_machine_is_unsure_by_any_runner(run, runner):
    record = run(busy=1.67, runner=runner)
    assert record.busy_cores == 1.67
    assert record.unsure.startswith("other programs used 1.67 cores meanwhile")


def test_compilation_does_not_use_what_is_unsure(run, tmp_path):
    run(busy=1.0)
    found = lookup.find(SMALL, V4, tmp_path)
    assert (found.config, found.origin) == (None, "default")


def test_unsure_workload_is_tuned_again_next_time(run, tmp_path):
    run(busy=1.0)
    record = run()
    assert run.measurer.measured
    assert (record.unsure, record.config["unroll"], record.busy_cores) == ("", 8, 0.0)
    assert len(log.read(tmp_path / TARGET).entries) == 1
    run()
    assert run.measurer.measured == []


def test_unsure_record_does_not_replace_one_that_is_sure(run, tmp_path):
    sure = run()
    assert run(busy=1.0, force=True).unsure
    (entry,) = log.read(tmp_path / TARGET).entries
    assert (entry.seconds, entry.unsure) == (pytest.approx(sure.seconds), "")


def test_default_that_wins_beside_other_programs_is_unsure(run):
    record = run(busy=1.0, measurer=FakeMeasurer(flat))
    assert record.unsure == "other programs used 1.00 cores meanwhile"


def test_record_says_how_far_the_rounds_lay_apart(run):
    record = run()
    assert 0 < record.spread < 0.1  # the noise of the fake


def test_drift_that_all_contestants_share_is_no_spread(run):
    """The machine was twice as slow in every second round."""

    class Drifting(FakeMeasurer):
        def interleave(self, candidates, rounds):
            return [
                dataclasses.replace(
                    each, seconds=tuple(s * (1 + i % 2) for i, s in enumerate(each.seconds))
                )
                for each in super().interleave(candidates, rounds)
            ]

    record = run(measurer=Drifting())
    assert record.spread < 0.1
    assert record.unsure == ""


@pytest.mark.parametrize(
    ("spread", "busy", "said"),
    [
        (0.1, 0.0, ""),
        (0.1, 0.29, ""),
        (0.1, 0.31, "other programs used 0.31 cores meanwhile"),
        (0.8, 0.0, "the rounds lay 80% apart"),
        (0.8, 2.0, "other programs used 2.00 cores meanwhile; the rounds lay 80% apart"),
    ],
)
def test_reasons_for_doubt(spread, busy, said):
    assert doubt.reasons(busy, spread) == said


def test_spread_is_the_middle_half_of_the_rounds():
    assert Timing((1.0, 2.0, 3.0, 4.0, 5.0)).spread == pytest.approx(2 / 3)
    assert Timing((1.0, 2.0, 4.0)).ratios(Timing((2.0, 4.0, 8.0))).spread == 0


def test_unsure_records_are_pruned_and_replaced_by_imports(run, tmp_path):
    run(busy=1.0)
    other = tmp_path / "other"
    manage.merge(tmp_path, other)
    run()
    assert manage.merge(tmp_path, other).taken
    assert not log.read(other / TARGET).entries[0].unsure
    run(busy=1.0, force=True)
    assert manage.prune(tmp_path) == []  # the sure record is still there


def test_prune_drops_what_is_unsure(run, tmp_path):
    run(busy=1.0)
    (line,) = manage.prune(tmp_path)
    assert line.startswith(f"{TARGET}/w4_1024cte: it is unsure: other programs used 1.00 cores")
    assert log.read(tmp_path / TARGET).entries == ()
