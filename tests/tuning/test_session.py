"""A tuning session with made-up times."""

import contextlib
import dataclasses
import itertools
import json
import math
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError

import pytest

import te_select
from te_select import Workload
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.records import log, store
from te_select.records.sizes import representative
from te_select.schedules.cpu import schedule as cpu
from te_select.timing.rounds import Timing
from te_select.tuning import session as module
from te_select.tuning import trials
from te_select.tuning.journal import FOLDER
from te_select.tuning.options import Options
from te_select.tuning.session import Session
from te_select.tuning.space import Space
from te_select.tuning.trials import UntunableError, wins
from tests.support.tuning_fakes import BIG, FEW, SMALL, FakeMeasurer, by_unroll, flat
from tests.support.tuning_records import unfinished

TARGET = "x86-64-v4"
V4 = resolve(TARGET)
EVERY = {"trials": 80, "patient": True}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Tune with a fake measurer; returns the record, and keeps the measurer."""

    def tune(workload, measurer=None, **options):
        tune.measurer = measurer or FakeMeasurer()
        monkeypatch.setattr(module, "open_measurer", lambda *_: tune.measurer)
        options = {"patient": True, **options}
        return te_select.tune(workload, TARGET, tuning_logs=tmp_path, **options)

    tune.folder = tmp_path / TARGET
    return tune


def default_of(workload):
    return cpu.default_config(access_pattern(workload), V4.tvm)


def test_default_is_trial_0_and_the_fastest_is_recorded(run):
    record = run(SMALL, trials=80)
    assert dict(run.measurer.measured[0].config) == dataclasses.asdict(default_of(SMALL))
    assert record.config["unroll"] == 8
    assert record.seconds == pytest.approx(1e-3 / 8, rel=0.01)
    assert record.default_seconds == pytest.approx(1e-3 / 4, rel=0.01)
    assert (record.trials, record.failed) == (len(Space(SMALL, V4).configs), 0)
    assert run.measurer.closed


def test_compile_takes_the_record_and_says_so(run, tmp_path):
    record = run(SMALL, trials=80)
    scheduled = schedule(SMALL, V4, tmp_path)
    assert dataclasses.asdict(scheduled.config) == dict(record.config)
    assert scheduled.origin == f"tuned:{record.name}" == f"tuned:{TARGET}/w4_1024cte"


def test_default_is_recorded_unless_beaten_beyond_noise(run):
    record = run(SMALL, FakeMeasurer(flat), trials=80)
    assert dict(record.config) == dataclasses.asdict(default_of(SMALL))
    assert record.seconds == record.default_seconds


def test_config_that_wins_once_does_not_replace_the_default(run):
    class Lucky(FakeMeasurer):
        def interleave(self, candidates, rounds):
            self.seconds = by_unroll if len(self.rounds) < 1 else flat
            return super().interleave(candidates, rounds)

    record = run(SMALL, Lucky(), trials=80)
    assert dict(record.config) == dataclasses.asdict(default_of(SMALL))
    assert run.measurer.rounds == [trials.FIRST_ROUNDS, trials.ROUNDS]


def test_finals_end_if_no_config_is_ahead(run):
    run(SMALL, FakeMeasurer(flat), trials=80)
    assert run.measurer.rounds == [trials.FIRST_ROUNDS]
    run(SMALL, trials=80, force=True)
    assert run.measurer.rounds == [trials.FIRST_ROUNDS, trials.ROUNDS, trials.DUEL_ROUNDS]


def test_configs_that_have_lost_are_not_in_the_finals(run):
    def seconds(candidate):
        return 1e-3 * {8: 1.0, 4: 1.0, 2: trials.LOST * 1.1, 1: 2.0}[candidate.config["unroll"]]

    class Seen(FakeMeasurer):
        def interleave(self, candidates, rounds):
            self.seen = {each.config["unroll"] for each in candidates}
            return super().interleave(candidates, rounds)

    run(SMALL, Seen(seconds), trials=80)
    assert run.measurer.seen <= {4, 8}


def test_failed_configs_are_counted_and_never_recorded(run):
    def seconds(candidate):
        return None if candidate.config["unroll"] == 8 else by_unroll(candidate)

    record = run(SMALL, FakeMeasurer(seconds), trials=80)
    assert record.config["unroll"] == 4
    assert record.failed == sum(c.unroll == 8 for c in Space(SMALL, V4).configs) > 0


def test_finalist_that_fails_in_the_finals_is_not_recorded(run):
    class Flaky(FakeMeasurer):
        def interleave(self, candidates, rounds):
            self.seconds = lambda c: None if c.config["unroll"] == 8 else by_unroll(c)
            return super().interleave(candidates, rounds)

    assert run(SMALL, Flaky(), trials=80).config["unroll"] == 4


def test_failing_default_ends_the_workload_until_next_time(run):
    with pytest.raises(UntunableError, match="default config failed: it crashed: SIGSEGV"):
        run(SMALL, FakeMeasurer(lambda _: None))
    assert log.read(run.folder).entries == ()
    assert run(SMALL, trials=80).trials == len(Space(SMALL, V4).configs)


def test_interrupted_session_goes_on_where_it_was(run):
    with pytest.raises(KeyboardInterrupt):
        run(BIG, FakeMeasurer(stop_after=25), trials=40)
    assert len(unfinished(run.folder / FOLDER)) == 1
    first = run.measurer.measured
    record = run(BIG, trials=40)
    assert record.trials == 40
    assert len(run.measurer.measured) == 16  # the default is measured anew
    assert not any(candidate in first for candidate in run.measurer.measured[1:])
    assert unfinished(run.folder / FOLDER) == []


def test_resumed_session_measures_what_a_whole_one_does(run, tmp_path):
    """The same times: the noise goes on where it stopped."""
    with pytest.raises(KeyboardInterrupt):
        run(BIG, FakeMeasurer(stop_after=25), trials=40)
    measured, resumed = run.measurer.measured, FakeMeasurer()
    resumed.noise = itertools.chain((1.0, 1.0, 1.0), run.measurer.noise)  # of the default
    run(BIG, resumed, trials=40)
    measured += resumed.measured[1:]
    whole = FakeMeasurer()
    shutil.rmtree(tmp_path)
    run(BIG, whole, trials=40)
    assert [c.config for c in measured] == [c.config for c in whole.measured]


def test_range_is_tuned_at_three_sizes_and_recorded_for_names(run, tmp_path):
    """A config that is the best at one size only does not win."""
    named = Workload(("b", 1), ("b", "n"), ())

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
    assert dataclasses.asdict(found.config) == dict(record.config)
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
    assert len(log.read(run.folder).entries) == 1


def test_trials_of_another_cond_are_not_taken_over(run):
    with pytest.raises(KeyboardInterrupt):
        run(BIG, FakeMeasurer(stop_after=25), trials=40)
    record = run(BIG, trials=40, block=64)
    assert len(run.measurer.measured) == record.trials == 40


def test_two_names_of_one_pattern_have_records_of_their_own(run, tmp_path):
    """Their functions have the same loops, and other sizes."""
    found = {}
    for name, sizes in (("n", (100, 1000)), ("m", (1, 64)), ("n", (100, 1000))):
        workload = Workload((name, 1), (name, 4), ())
        fake = FakeMeasurer(lambda each: by_unroll(each) * each.point.out_shape[0])
        record = run(workload, fake, trials=3, sizes={name: sizes})
        assert found.setdefault(name, record) == record
    assert run.measurer.measured == []
    assert len(log.read(run.folder).entries) == 2
    for name in "nm":
        workload = Workload((name, 1), (name, 4), ())
        why = schedule(workload, V4, tmp_path).why
        assert f"sizes {found[name].sizes}" in why


def test_trials_of_one_name_are_not_taken_for_another(tmp_path, monkeypatch):
    measurer = FakeMeasurer()
    monkeypatch.setattr(module, "open_measurer", lambda *_: measurer)
    with Session(TARGET, tmp_path, options=Options(trials=2)) as session:
        tasks = [
            session.task(Workload((name, 1), (name, 4), ()), ((name, 1, most),))
            for name, most in (("n", 9), ("m", 99))
        ]
        for task in tasks:
            session.look(task, lambda progress: None)
        assert len(measurer.measured) == 6
        for task in tasks:
            session.tune(task, lambda progress: None)
    assert len(measurer.measured) == 12


@pytest.mark.parametrize(
    "sizes",
    [
        5, "n=1:5", [("n", 1, 2)], {"n": 5}, {"n": None}, {"n": ("1", "4")}, {"n": (1, math.inf)},
        {"n": (1.5, 3)}, {"n": (1, 2, 3)}, {1: (1, 2)},
    ],
)  # fmt: skip
def test_sizes_that_are_none_are_an_argument_error(run, sizes):
    with pytest.raises(te_select.ArgumentError, match="expected the least and the largest size"):
        run(Workload(("n",), ("n",), ("n",)), trials=2, sizes=sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 101}, "density is 101; expected 0 to 100"),
        ({"density": "x"}, "density is 'x'"),
        ({"block": 0}, "block is 0; expected an int of at least 1"),
        ({"cond_file": "nix.npy"}, "nix.npy cannot be read: No such file"),
        ({"cond_file": "nix.npy", "block": 2}, "leave density and block out"),
        ({"sizes": {"n": (2, 1)}}, "n=2:1"),
        (
            {"sizes": {"q": (1, 2)}},
            "q=1:2; expected a least and a largest size of one of the dims n",
        ),
    ],
)
def test_cond_and_sizes_that_are_none_are_refused(run, options, message):
    with pytest.raises(te_select.SelectError, match=message):
        run(Workload(("n",), ("n",), ("n",)), trials=2, **options)


def test_tuned_workload_is_skipped_unless_forced(run):
    record = run(SMALL, trials=80)
    assert run(SMALL, trials=80) == record
    assert run.measurer.measured == []
    run(SMALL, trials=80, force=True)
    assert run.measurer.measured
    assert len(log.read(run.folder).entries) == 1


def test_session_that_waited_takes_the_others_record(run, tmp_path, monkeypatch):
    first = FakeMeasurer()
    others = [first, FakeMeasurer()]
    monkeypatch.setattr(module, "open_measurer", lambda *_: others.pop(0))
    locked, records = store.locked, []

    @contextlib.contextmanager
    def waiting(folder, *name):
        """Wait until another session is done, before the workload's own lock is held."""
        if name and not records:
            records.append(None)
            records[0] = te_select.tune(
                SMALL, TARGET, tuning_logs=tmp_path, trials=80, patient=True
            )
        with locked(folder, *name):
            yield

    monkeypatch.setattr(store, "locked", waiting)
    assert te_select.tune(SMALL, TARGET, tuning_logs=tmp_path, **EVERY) == records[0]
    assert first.measured
    assert len(others) == 1  # it was not opened


@pytest.mark.parametrize(
    "same",
    [
        Workload((1024,), (1024,), (1024,), "int32"),
        Workload((4, 256), (4, 256), (4, 256)),
        Workload((1, 1024), (1, 1024), (1, 1024), "uint32", "none"),
    ],
    ids=str,
)
def test_workloads_that_are_one_kernel_share_a_record(run, same):
    name = run(SMALL, trials=80).name
    assert run(same, trials=80).name == name
    assert run.measurer.measured == []


def test_named_dims_are_tuned_at_representative_sizes(run, tmp_path):
    named = Workload(("batch", 1024), ("batch", 1024), ())
    record = run(named, trials=8)
    assert {candidate.workload for candidate in run.measurer.measured} == {representative(named)}
    scheduled = schedule(named, V4, tmp_path)
    assert scheduled.origin == f"nearest:{record.name}"
    assert dataclasses.asdict(scheduled.config) == dict(record.config)


def test_observer_sees_trials_the_best_and_the_first_failure(run):
    seen = []

    def seconds(candidate):
        return None if candidate.config["unroll"] == 1 else by_unroll(candidate)

    run(SMALL, FakeMeasurer(seconds), trials=80, observe=seen.append)
    total = len(Space(SMALL, V4).configs)
    assert {progress.done for progress in seen} == set(range(1, total + 1))
    assert {progress.total for progress in seen} == {total}
    assert seen[-1].phase == "finalists"
    assert seen[-1].default == pytest.approx(1e-3 / 4, rel=0.01)
    assert seen[-1].best == pytest.approx(1e-3 / 8, rel=0.01)
    assert seen[-1].failure == "it crashed: SIGSEGV"


def test_session_says_what_it_measured_and_how_to_repeat_it(run):
    run(FEW, seed=5, trials=9)
    (entry,) = log.read(run.folder).entries
    said = dict(entry.session)
    assert {"machine", "cpus", "versions", "trials", "failed", "default_seconds"} <= set(said)
    assert "--trials 9" in said["command"]
    assert "--seed 5" in said["command"]
    assert json.dumps(FEW.to_json()) in said["command"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials is 0"),
        ({"trials": -3}, "at least 1"),
        ({"seed": -1}, "seed is -1"),
        ({"jobs": 0}, "jobs is 0"),
        ({"jobs": "two"}, "jobs is 'two'"),
        ({"jobs": 1025}, "jobs is 1025"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": math.nan}, "timeout is nan"),
        ({"timeout": math.inf}, "timeout is inf"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(te_select.ArgumentError, match=message):
        Options(**options)


def test_what_is_no_workload_or_has_no_elements_cannot_be_tuned(run):
    with pytest.raises(te_select.ArgumentError, match="'x' is not a te_select"):
        te_select.tune("x")
    with pytest.raises(te_select.TuningError, match="no elements"):
        run(Workload((0, 4), (0, 4), ()))


@pytest.mark.parametrize("wrong", [False, 3])
def test_logs_that_are_no_path_are_refused(wrong):
    with pytest.raises(te_select.TuningError, match="no path"):
        Session(TARGET, wrong)


def test_unwritable_folder_is_refused_before_timing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(te_select.TuningError, match="cannot be written"):
        Session(TARGET, tmp_path / "file")


def test_two_sessions_of_one_workload_measure_it_once(tmp_path, monkeypatch):
    """The second waits for the first, and then takes its record."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(FakeMeasurer):
        def measure(self, candidates):
            begun.set()
            assert go_on.wait(60)
            yield from super().measure(candidates)

    first, second = Slow(), FakeMeasurer()
    opened = iter([first, second])
    monkeypatch.setattr(module, "open_measurer", lambda *_: next(opened))

    def tune():
        return te_select.tune(SMALL, TARGET, tuning_logs=tmp_path, **EVERY)

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(tune)
        assert begun.wait(60)
        with Session(TARGET, tmp_path) as other:  # it has workers, so it could measure at once
            assert other.measurer is second
            two = pool.submit(other.tune, other.task(SMALL), lambda progress: None)
            with pytest.raises(FutureTimeoutError):
                two.result(0.5)
            assert second.measured == []
            go_on.set()
            assert two.result(60) == one.result(60)
    assert second.measured == []
    assert len(first.measured) == len(Space(SMALL, V4).configs)


def test_sessions_of_two_workloads_do_not_wait_for_each_other(tmp_path, monkeypatch):
    class Nested(FakeMeasurer):
        def measure(self, candidates):
            if not self.measured:
                te_select.tune(FEW, TARGET, tuning_logs=tmp_path, trials=2)
            yield from super().measure(candidates)

    opened = iter([Nested(), FakeMeasurer()])
    monkeypatch.setattr(module, "open_measurer", lambda *_: next(opened))
    te_select.tune(SMALL, TARGET, tuning_logs=tmp_path, **EVERY)
    assert {entry.key for entry in log.read(tmp_path / TARGET).entries} == {"w4", "w4_1024cte"}


@pytest.mark.parametrize(
    ("mine", "its", "won"),
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


def test_tune_measures_for_real(tmp_path):
    record = te_select.tune(FEW, tuning_logs=tmp_path, trials=2, timeout=60)
    assert record.trials == 2
    assert record.failed == 0
    assert te_select.compile(FEW, tuning_logs=tmp_path).origin == f"tuned:{record.name}"


# ---- warm starts, early ends, moments


def test_configs_of_records_near_by_come_after_the_default(run):
    near = Workload((1400,), (1400,), (1400,))
    won = run(near, trials=80).config
    run(SMALL, trials=80)
    assert dict(run.measurer.measured[1].config) == dict(won)
    assert won["unroll"] == 8


def test_record_is_replaced_only_after_turns_with_it(run):
    """Its config is in the finals, though its trial was slow this time."""
    first = run(SMALL, trials=80)

    def seconds(candidate):
        return 0.99e-3 if dict(candidate.config) == dict(first.config) else 1e-3

    class Slow(FakeMeasurer):
        def interleave(self, candidates, rounds):
            self.seconds = by_unroll
            self.turns = [dict(each.config) for each in candidates]
            return super().interleave(candidates, rounds)

    again = run(SMALL, Slow(seconds), trials=80, force=True)
    assert dict(first.config) in run.measurer.turns
    assert again.config["unroll"] == 8


def test_search_ends_if_nothing_untried_is_predicted_to_win(run):
    record = run(BIG, FakeMeasurer(flat), trials=64, patient=False)
    assert record.trials < len(Space(BIG, V4).configs) and record.trials < 64
    assert run(BIG, FakeMeasurer(flat), trials=64, force=True).trials == 64


def test_trials_of_a_busy_moment_are_not_taken_over(run):
    """The default is measured by each session; if it is another one, so was the machine."""
    slow = FakeMeasurer(lambda each: 2 * by_unroll(each), stop_after=25)
    with pytest.raises(KeyboardInterrupt):
        run(BIG, slow, trials=40)
    assert run(BIG, trials=40).trials == len(run.measurer.measured) == 40


def test_session_of_a_fleet_names_its_cpu(run):
    run(FEW, trials=2, runner="rpc://tracker:9190/kind")
    (entry,) = log.read(run.folder).entries
    assert entry.session["machine"] == "a CPU behind rpc://tracker:9190/kind"
