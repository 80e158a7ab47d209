"""A tuning session with made-up times."""

import itertools
import shutil
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import asdict
from math import inf, nan
from threading import Event

from pytest import approx, mark, raises

import te_select
from te_select.compiler.scheduling import schedule
from te_select.records.log import read
from te_select.timing.rounds import Timing
from te_select.tuning.journal import FOLDER
from te_select.tuning.options import Options
from te_select.tuning.session import Session
from te_select.tuning.space import Space
from te_select.tuning.trials import LOST, UntunableError, wins
from tests.support import flat, masked_rows
from tests.support.tuning import (
    BIG,
    FEW,
    SMALL,
    V4,
    FakeMeasurer,
    alike,
    by_unroll,
    default_of,
    edit,
    unfinished,
)

TARGET = "x86-64-v4"
EVERY = {"trials": 80, "patient": True}


def test_default_is_trial_0_and_the_fastest_is_recorded(run, tmp_path):
    record = run()
    assert dict(run.measurer.measured[0].config) == asdict(default_of(SMALL))
    assert record.config["unroll"] == 8
    assert record.seconds == approx(1e-3 / 8, rel=0.01)
    assert record.default_seconds == approx(1e-3 / 4, rel=0.01)
    assert (record.trials, record.failed) == (len(Space(SMALL, V4).configs), 0)
    assert run.measurer.closed
    scheduled = schedule(SMALL, V4, tmp_path)
    assert asdict(scheduled.config) == dict(record.config)
    assert scheduled.origin == f"tuned:{record.name}" == f"tuned:{TARGET}/w4_1024cte"


@mark.parametrize("lucky", [0, 1, 2])
def test_config_that_does_not_win_each_time_leaves_the_default(run, lucky):
    def finals(measurer, _candidates):
        measurer.seconds = by_unroll if len(measurer.rounds) < lucky else alike

    record = run(SMALL, FakeMeasurer(finals=finals))
    assert dict(record.config) == asdict(default_of(SMALL))
    assert record.seconds == record.default_seconds
    assert run.measurer.rounds == [5, 15, 25][: lucky + 1]


def test_configs_that_have_lost_are_not_in_the_finals(run):
    def seconds(candidate):
        return 1e-3 * {8: 1.0, 4: 1.0, 2: LOST * 1.1, 1: 2.0}[candidate.config["unroll"]]

    def finals(_measurer, candidates):
        assert {each.config["unroll"] for each in candidates} <= {4, 8}

    run(SMALL, FakeMeasurer(seconds, finals=finals))
    assert run.measurer.rounds


def test_finalist_that_fails_in_the_finals_is_not_recorded(run):
    def finals(measurer, _candidates):
        measurer.seconds = lambda c: None if c.config["unroll"] == 8 else by_unroll(c)

    assert run(SMALL, FakeMeasurer(finals=finals)).config["unroll"] == 4


def test_failing_default_ends_the_workload_until_next_time(run):
    with raises(UntunableError, match="default config failed: it crashed: SIGSEGV"):
        run(SMALL, FakeMeasurer(lambda _: None))
    assert read(run.folder).entries == ()
    assert run().trials == len(Space(SMALL, V4).configs)


def test_resumed_session_measures_what_a_whole_one_does(run, tmp_path):
    """The same times: the noise goes on where it stopped."""
    with raises(KeyboardInterrupt):
        run(BIG, FakeMeasurer(stop_after=25), trials=40)
    assert len(unfinished(run.folder / FOLDER)) == 1
    measured = run.measurer.measured
    resumed = FakeMeasurer()
    resumed.noise = itertools.chain((1.0, 1.0, 1.0), run.measurer.noise)  # of the default
    assert run(BIG, resumed, trials=40).trials == 40
    assert unfinished(run.folder / FOLDER) == []
    assert len(resumed.measured) == 16  # the default is measured anew
    measured += resumed.measured[1:]
    whole = FakeMeasurer()
    shutil.rmtree(tmp_path)
    run(BIG, whole, trials=40)
    assert [c.config for c in measured] == [c.config for c in whole.measured]


def test_range_is_tuned_at_three_sizes_and_recorded_for_names(run, tmp_path):
    """A config that is the best at one size only does not win."""
    named = masked_rows("b", "n")

    def seconds(candidate):
        at_most = candidate.point.out_shape == (64, 4096)
        unroll = candidate.config["unroll"]
        return 1e-3 * {1: 0.5 if at_most else 4.0, 8: 0.9}.get(unroll, 1.0)

    sizes = {"b": (2, 64), "n": (16, 4096)}
    record = run(named, FakeMeasurer(seconds), trials=30, sizes=sizes)
    assert record.config["unroll"] == 8
    assert record.sizes == "b=2:64 n=16:4096"
    shapes = {candidate.point.out_shape for candidate in run.measurer.measured}
    assert shapes == {(2, 16), (11, 256), (64, 4096)}
    assert len(run.measurer.measured) == 3 * record.trials
    found = schedule(named, V4, tmp_path)
    assert found.origin == f"tuned:{record.name}"
    assert asdict(found.config) == dict(record.config)
    assert run(named, trials=30, sizes=sizes) == record
    assert run.measurer.measured == []
    run(named, trials=2, sizes={"b": (2, 8), "n": (16, 16)})
    assert run.measurer.measured


def test_record_for_another_cond_is_tuned_again(run):
    first = run(SMALL, trials=5, density=10, block=64)
    assert first.cond == "10 % true, in blocks of 64"
    assert {candidate.mask.block for candidate in run.measurer.measured} == {64}
    assert run(SMALL, trials=5, density=10, block=64) == first
    assert run(SMALL, trials=5).cond == ""
    assert run.measurer.measured
    assert len(read(run.folder).entries) == 1


@mark.parametrize("times, options", [(1, {"block": 64}), (2, {})])
def test_trials_of_another_cond_or_moment_are_not_taken_over(run, times, options):
    """The default is measured by each session; if it is another one, so was the machine."""
    first = FakeMeasurer(lambda each: times * by_unroll(each), stop_after=25)
    with raises(KeyboardInterrupt):
        run(BIG, first, trials=40)
    assert run(BIG, trials=40, **options).trials == len(run.measurer.measured) == 40


def test_two_names_of_one_pattern_have_records_of_their_own(run, tmp_path):
    """Their functions have the same loops, and other sizes."""
    found = {}
    for name, sizes in (("n", (100, 1000)), ("m", (1, 64)), ("n", (100, 1000))):
        workload = masked_rows(name, 4)
        fake = FakeMeasurer(lambda each: by_unroll(each) * each.point.out_shape[0])
        record = run(workload, fake, trials=3, sizes={name: sizes})
        assert found.setdefault(name, record) == record
    assert run.measurer.measured == []
    assert len(read(run.folder).entries) == 2
    for name in "nm":
        workload = masked_rows(name, 4)
        why = schedule(workload, V4, tmp_path).why
        assert f"sizes {found[name].sizes}" in why


def test_trials_of_one_name_are_not_taken_for_another(tmp_path, monkeypatch):
    measurer = FakeMeasurer()
    monkeypatch.setattr("te_select.tuning.session.open_measurer", lambda *_: measurer)
    with Session(TARGET, tmp_path, options=Options(trials=2)) as session:
        tasks = [
            session.task(masked_rows(name, 4), ((name, 1, most),))
            for name, most in (("n", 9), ("m", 99))
        ]
        for task in tasks:
            session.look(task, lambda progress: None)
        assert len(measurer.measured) == 6
        for task in tasks:
            session.tune(task, lambda progress: None)
    assert len(measurer.measured) == 12


ANY, ARGUMENT = te_select.SelectError, te_select.ArgumentError
NO_SIZES = (5, {"n": 5}, {"n": (1, inf)}, {"n": (1.5, 3)}, {"n": (1, 2, 3)}, {1: (1, 2)})


@mark.parametrize(
    "error, options, message",
    [
        *((ARGUMENT, {"sizes": x}, "expected the least and the largest size") for x in NO_SIZES),
        (ANY, {"sizes": {"n": (2, 1)}}, "n=2:1"),
        (ANY, {"sizes": {"q": (1, 2)}}, "q=1:2; expected a least and a largest size of one"),
        *((ARGUMENT, {"density": d}, f"density is {d}; expected 0 to") for d in (-1, 101)),
        (ARGUMENT, {"density": "x"}, "density is 'x'"),
        (ARGUMENT, {"density": True}, "density is True"),
        (ARGUMENT, {"block": 0}, "block is 0; expected an int of at least 1"),
        (ARGUMENT, {"trials": 0}, "trials is 0; expected an int of 1"),
        *((ARGUMENT, {"seed": seed}, f"seed is {seed}") for seed in (-1, 1 << 30)),
        (ARGUMENT, {"jobs": "two"}, "jobs is 'two'; expected an int of 1 to 1024"),
        (ARGUMENT, {"jobs": 2.0}, "jobs is 2.0; expected an int of 1 to 1024"),
        (ARGUMENT, {"jobs": 0}, "jobs is 0"),
        (ARGUMENT, {"jobs": 1025}, "jobs is 1025"),
        *((ARGUMENT, {"timeout": t}, f"timeout is {t}; exp") for t in (0, nan, inf)),
    ],
    ids=str,
)
def test_option_of_another_value_is_refused(run, error, options, message):
    with raises(error, match=message):
        run(flat("n"), **{"trials": 2, **options})


def test_observer_sees_trials_the_best_and_the_first_failure(run):
    seen = []

    def seconds(candidate):
        return None if candidate.config["unroll"] == 1 else by_unroll(candidate)

    record = run(SMALL, FakeMeasurer(seconds), observe=seen.append)
    assert record.failed == sum(c.unroll == 1 for c in Space(SMALL, V4).configs) > 0
    total = len(Space(SMALL, V4).configs)
    assert {progress.done for progress in seen} == set(range(1, total + 1))
    assert {progress.total for progress in seen} == {total}
    assert seen[-1].phase == "finalists"
    assert seen[-1].default == approx(1e-3 / 4, rel=0.01)
    assert seen[-1].best == approx(1e-3 / 8, rel=0.01)
    assert seen[-1].failure == "it crashed: SIGSEGV"


def test_logs_that_cannot_be_written_are_refused_before_timing(tmp_path):
    (tmp_path / "file").touch()
    for logs, said in ((False, "no path"), (3, "no path"), (tmp_path / "file", "cannot be wri")):
        with raises(te_select.TuningError, match=said):
            Session(TARGET, logs)


def test_two_sessions_of_one_workload_measure_it_once(tmp_path, monkeypatch):
    """The second waits for the first, and then takes its record."""
    begun, go_on = Event(), Event()

    class Slow(FakeMeasurer):
        def measure(self, candidates):
            begun.set()
            assert go_on.wait(60)
            yield from super().measure(candidates)

    first = Slow()
    second = FakeMeasurer()
    opened = iter([first, second])
    monkeypatch.setattr("te_select.tuning.session.open_measurer", lambda *_: next(opened))

    def tune():
        return te_select.tune(SMALL, TARGET, tuning_logs=tmp_path, **EVERY)

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(tune)
        assert begun.wait(60)
        with Session(TARGET, tmp_path) as other:
            two = pool.submit(other.tune, other.task(SMALL), lambda progress: None)
            with raises(FutureTimeoutError):
                two.result(0.5)
            go_on.set()
            assert two.result(60) == one.result(60)
    assert next(opened) is second  # which only now is opened
    assert len(first.measured) == len(Space(SMALL, V4).configs)


def test_sessions_of_two_workloads_do_not_wait_for_each_other(tmp_path, monkeypatch):
    class Nested(FakeMeasurer):
        def measure(self, candidates):
            if not self.measured:
                te_select.tune(FEW, TARGET, tuning_logs=tmp_path, trials=2)
            yield from super().measure(candidates)

    opened = iter([Nested(), FakeMeasurer()])
    monkeypatch.setattr("te_select.tuning.session.open_measurer", lambda *_: next(opened))
    te_select.tune(SMALL, TARGET, tuning_logs=tmp_path, **EVERY)
    assert {entry.key for entry in read(tmp_path / TARGET).entries} == {"w4", "w4_1024cte"}


@mark.parametrize(
    "mine, its, won",
    [
        ((1.0,) * 8, (1.1,) * 8, True),
        ((1.0,) * 8, (1.005,) * 8, False),
        ((1.0,) * 8, (1.1, 1.1, 1.1, 1.1, 0.9, 0.9, 0.9, 1.1), False),
        ((1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.2), (1.1,) * 8, True),
        ((1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.2, 1.2), (1.1,) * 8, False),
        ((1.0,) * 8, (4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 0.9), False),
    ],
)
def test_config_wins_three_of_four_turns_and_by_a_percent(mine, its, won):
    assert wins(Timing(mine), Timing(its)) is won


def test_tune_measures_for_real(tmp_path, monkeypatch):
    for limit in ("SPREAD", "BROKEN"):  # other tests run beside it
        monkeypatch.setattr(f"te_select.records.doubt.{limit}", inf)
    record = te_select.tune(FEW, tuning_logs=tmp_path, trials=2, timeout=60)
    assert (record.trials, record.failed) == (2, 0)
    assert te_select.compile(FEW, tuning_logs=tmp_path).origin == f"tuned:{record.name}"


def test_configs_of_records_near_by_come_after_the_default(run):
    near = flat(1400)
    won = run(near, trials=80).config
    run()
    assert dict(run.measurer.measured[1].config) == dict(won)
    assert won["unroll"] == 8


def test_record_is_replaced_only_after_turns_with_it(run):
    """Its config is in the finals, though its trial was slow this time."""
    first = run()

    def seconds(candidate):
        return 0.99e-3 if dict(candidate.config) == dict(first.config) else 1e-3

    def finals(measurer, candidates):
        measurer.seconds = by_unroll
        assert dict(first.config) in [dict(each.config) for each in candidates]

    again = run(SMALL, FakeMeasurer(seconds, finals=finals), force=True)
    assert again.config["unroll"] == 8


def test_record_with_other_knobs_is_tuned_again(run):
    run(FEW, trials=2)
    edit(run.folder, lambda lines: lines.append(lines.pop().replace("unroll", "unrolled")))
    run(FEW, trials=2)
    assert run.measurer.measured
    run(FEW, trials=2)
    assert run.measurer.measured == []
