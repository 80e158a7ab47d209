"""A session of many workloads: what is tuned, in which order, and for how long."""

from pytest import approx, fixture, mark, raises

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.records import doubt, log
from te_select.tuning import show
from te_select.tuning.agenda import NEAR_ROOF, OUT_OF_TIME, Agenda, Job
from te_select.tuning.options import Options
from te_select.tuning.session import Session
from tests.support import flat
from tests.support.clock import Clock
from tests.support.tuning import FakeMeasurer, by_unroll

TARGET = "x86-64-v4"
SLOW, FAST, MIDDLE = (flat(n) for n in (900, 300, 600))
SECONDS = {SLOW: 4e-3, FAST: 1e-3, MIDDLE: 2e-3}


@fixture
def run(tmp_path, monkeypatch):
    """Run an agenda on fake times, under a roof that every default fills by the given share."""
    clock = Clock()
    monkeypatch.setattr("te_select.tuning.agenda.time", clock)
    monkeypatch.setattr("te_select.tuning.trials.time", clock)

    def start(
        *workloads,
        stop_after=None,
        share=0.5,
        runner="local",
        targets=(TARGET,),
        turns=0.0,
        **options,
    ):
        def seconds(candidate):
            return 4e3 * SECONDS[candidate.workload] * by_unroll(candidate)

        def roof(_kind, moved):
            seconds = next(s for w, s in SECONDS.items() if _moved(w) == moved)
            start.probed += 1
            return moved / seconds / (share[moved] if isinstance(share, dict) else share)

        monkeypatch.setattr("te_select.tuning.agenda.roof_of", options.pop("roof", roof))
        start.probed = 0
        start.begun = []
        start.measurer = FakeMeasurer(
            seconds,
            stop_after,
            after=lambda *_: clock.sleep(1.0),
            finals=lambda _, candidates: clock.sleep(turns * len(candidates)),
        )
        monkeypatch.setattr("te_select.tuning.session.open_measurer", lambda *_: start.measurer)
        own = ("every", "seconds", "again")
        given = {"every": False} | {k: options.pop(k) for k in own if k in options}
        options = {"patient": True, **options}
        opened = [Session(t, tmp_path, runner, Options(**options)) for t in targets]
        jobs = [Job(str(w.out_shape[0]), s, s.task(w)) for w in workloads for s in opened]
        return list(Agenda(jobs, **given).run(start.begun.append, _nothing))

    start.folder = tmp_path
    start.clock = clock
    return start


def _moved(workload):
    return access_pattern(workload).bytes_moved()


def _nothing(_progress):
    pass


def test_most_to_gain_is_tuned_first(run):
    outcomes = run(FAST, SLOW, MIDDLE, trials=3)
    assert [outcome.name for outcome in outcomes] == ["900", "600", "300"]
    assert [job.name for job in run.begun] == ["300", "900", "600", "900", "600", "300"]
    assert all(outcome.record and outcome.record.trials == 3 for outcome in outcomes)


def test_workload_that_cannot_follow_a_fixed_knob_fails_alone(run):
    outcomes = run(FAST, SLOW, trials=3, fixed={"rows": True})
    assert [outcome.name for outcome in outcomes] == ["900", "300"]
    assert all("rows" in outcome.error for outcome in outcomes)


@mark.parametrize("busy, seconds, unsure", [(1, 60, []), (1, 9.7, ["900"]), (3, 18, ["300"])])
def test_time_that_is_left_goes_to_what_is_unsure(run, monkeypatch, busy, seconds, unsure):
    """Another turn has twice the time: of three that took 2 s, two fit into 9 s."""
    told = iter([1.0] * 2 * busy)  # in the whole and in the finals
    monkeypatch.setattr("te_select.timing.cores.Watch.others", lambda _watch: next(told, 0.0))
    workloads = [FAST, SLOW, MIDDLE] if busy > 1 else [FAST, SLOW]
    outcomes = run(*workloads, trials=3, seconds=seconds)
    assert [outcome.name for outcome in outcomes if outcome.record.unsure] == unsure
    assert len(log.read(run.folder / TARGET).entries) == len(outcomes)


def test_time_of_an_effort_begins_after_a_look_that_was_taken(run):
    """A workload that has a record is not looked at; processes begin in the first look."""
    run(FAST, trials=3)

    def slow_roof(_kind, moved):
        run.clock.now += 60.0
        return moved / 1e-3

    _, outcome = run(FAST, SLOW, trials=3, seconds=30, again=False, roof=slow_roof)
    assert outcome.record.trials == 3


def test_gain_counts_what_the_roof_leaves_not_the_time(run):
    """The slowest is near its roof, so it is last."""
    shares = {_moved(SLOW): 0.95, _moved(FAST): 0.1, _moved(MIDDLE): 0.5}
    assert [each.name for each in run(SLOW, FAST, MIDDLE, share=shares)] == ["600", "300", "900"]


@mark.parametrize(
    "share, busy, every, said",
    [
        (NEAR_ROOF + 0.001, 0.0, False, "the default reaches 97% of the roof; --all tunes it"),
        (1.32, 1.2, False, "unsure: the default reaches 132% of the roof, but other programs used"),
        (1.34, 0.0, False, "unsure: the default reaches 134% of the roof, but no kernel can"),
        (NEAR_ROOF + 0.001, 0.0, True, ""),
        (NEAR_ROOF - 0.01, 0.0, False, ""),
    ],
)
def test_default_near_the_roof_is_passed_over(run, monkeypatch, share, busy, every, said):
    monkeypatch.setattr("te_select.timing.cores.Watch.others", lambda _: busy)
    (outcome,) = run(SLOW, share=share, every=every, trials=3)
    assert outcome.error is None
    if not said:
        assert outcome.record and not outcome.passed_over
        return
    assert outcome.record is None and outcome.passed_over.startswith(said)
    assert outcome.default_seconds == approx(4e-3, rel=0.01)
    assert [each.workload for each in run.measurer.measured] == [SLOW] * 2  # the default, twice
    assert log.read(run.folder / TARGET).entries == ()


def test_roof_is_that_of_the_bytes_which_a_call_must_move(run, monkeypatch, tmp_path):
    """Of whole rows a half is left unread; to count it would pass over what may gain."""
    rows = Workload((64, 1), (64, 16), (64, 16))
    pattern = access_pattern(rows)
    monkeypatch.setitem(SECONDS, rows, 1e-3)
    asked = []
    needed = pattern.bytes_needed(0.3, 8)
    (outcome,) = run(
        rows, roof=lambda _, moved: asked.append(moved) or 0.99 * moved / 1e-3, density=30, block=8
    )
    assert asked == [needed] * 2 and needed < 0.7 * pattern.bytes_moved()
    assert outcome.passed_over


def test_fleet_has_no_roof_and_passes_nothing_over(run):
    (outcome,) = run(SLOW, share=1.5, runner="rpc://tracker:9190/kind")
    assert outcome.record
    assert (outcome.roof_bytes_per_second, run.probed) == (None, 0)


def test_time_is_shared_by_those_that_are_left(run):
    """Three defaults take 3 s; the first has a third of the 30 s left, of it 0.8 for trials."""
    outcomes = run(SLOW, MIDDLE, FAST, seconds=33.0)
    tried = [outcome.record.trials for outcome in outcomes]
    assert tried == [9, 9, 12]  # the default, and one a second
    assert run.clock.now <= 33


def test_no_look_begins_that_would_end_after_a_third(run):
    outcomes = run(FAST, MIDDLE, SLOW, seconds=7.5)
    assert [job.name for job in run.begun[:3]] == ["300", "600", "600"]
    assert len(outcomes) == 3


@mark.parametrize("turns", [0.0, 0.25])
def test_finals_end_in_the_time_of_the_session(run, turns):
    run(SLOW, MIDDLE, FAST, seconds=40.0, turns=turns)
    assert run.clock.now <= 40


def test_finals_that_were_cut_short_leave_the_outcome_undecided(run):
    """The first comparison is all that fits; what was ahead then has not won."""
    (outcome,) = run(SLOW, seconds=16.0, turns=1.2, trials=8, accept_unsure=True)
    said = "the time was over after 8 of 8 trials, amid the finals"
    assert outcome.record.unsure.endswith(said) and outcome.ended_early
    assert outcome.record.default_won and not outcome.record.accepted
    assert len(run.measurer.rounds) == 1


def test_default_alone_is_never_accepted(run):
    """The second is not looked at, and its time is over with its default."""
    outcomes = run(FAST, SLOW, seconds=2.2, accept_unsure=True, every=True)
    (slow,) = (outcome for outcome in outcomes if outcome.name == "900")
    assert (slow.record.trials, slow.record.accepted) == (1, "")
    assert slow.record.unsure == doubt.late(1, 36) and slow.ended_early
    (line,) = [line for line in show.report([slow]) if "the time was over" in line]
    assert line == "  unsure: the time was over after 1 of 36 trials"
    again = {each.name: each for each in run(SLOW, trials=3, accept_unsure=True)}
    assert again["900"].fresh


def test_what_a_workload_leaves_of_its_time_the_others_get(run):
    outcomes = run(SLOW, MIDDLE, trials=20, seconds=60.0)
    assert [outcome.record.trials for outcome in outcomes] == [20, 20]


def test_no_workload_begins_when_the_time_is_over(run):
    """A third of it goes into looks; the others are tuned without, as long as there is time."""
    *outcomes, slow = run(SLOW, MIDDLE, FAST, seconds=1.5)
    assert not any(outcome.record for outcome in outcomes)
    assert [outcome.passed_over for outcome in outcomes] == [OUT_OF_TIME, OUT_OF_TIME]
    assert slow.record.unsure == doubt.late(2, 36) and slow.ended_early
    assert not any(outcome.error for outcome in outcomes)
    assert run.probed == 1
    again = run(SLOW, MIDDLE, FAST, trials=3)
    assert all(outcome.record for outcome in again)


def test_trials_that_were_cut_short_are_taken_over(run):
    (cut,) = run(SLOW, seconds=4.0, accept_unsure=True)
    assert (cut.record.unsure, cut.record.accepted) == ("", doubt.late(3, 36))
    (whole,) = run(SLOW)
    assert whole.resumed == cut.record.trials - 1 > 0  # the default is measured anew
    assert whole.record.gain > 1


def test_trials_that_are_of_no_use_any_more_are_told(run, monkeypatch):
    (cut,) = run(SLOW, seconds=4.0)
    monkeypatch.setitem(SECONDS, SLOW, 2 * SECONDS[SLOW])
    (whole,) = run(SLOW)
    assert (whole.resumed, whole.forgotten) == (0, cut.record.trials - 1)
    (note,) = [line for line in show.report([whole]) if "taken over" in line]
    assert note.startswith(f"  0 of {whole.forgotten} trials taken over: the default's time has")


@mark.parametrize("busy", [0.0, 1.2])
def test_second_look_may_find_that_there_is_something_to_gain(run, monkeypatch, busy):
    monkeypatch.setattr("te_select.timing.cores.Watch.others", lambda _: busy)
    roofs = iter((1.2, 0.5))
    (outcome,) = run(SLOW, roof=lambda _, moved: moved / 4e-3 / next(roofs), trials=2)
    assert outcome.record


def test_default_that_was_looked_at_is_not_taken_over(run):
    """It is a trial of this session, and is not measured twice."""
    (outcome,) = run(SLOW, trials=4)
    assert outcome.resumed == 0
    assert sum(1 for _ in run.measurer.measured) == 4


def test_second_run_finds_the_records_and_what_was_kept(run):
    first = run(SLOW, trials=4)
    second = run(SLOW, trials=4)
    assert run.measurer.measured == []
    assert [outcome.fresh for outcome in (*first, *second)] == [True, False]
    assert second[0].roof_bytes_per_second is None  # of another moment
    assert second[0].knobs == first[0].knobs != []


def test_workload_that_was_begun_is_tuned_whatever_the_roof(run):
    with raises(KeyboardInterrupt):
        run(SLOW, trials=40, stop_after=9)
    (outcome,) = run(SLOW, trials=40, share=1.2)
    assert outcome.record and outcome.resumed == 8  # the default is measured anew


def test_record_of_another_session_meanwhile_is_found(run, monkeypatch):
    tune = Session.tune
    others = [Session(TARGET, run.folder, "local", Options(trials=2))]

    def meanwhile(self, task, *args):
        if others:
            tune(others.pop(), task, _nothing)
        return tune(self, task, *args)

    monkeypatch.setattr("te_select.tuning.session.Session.tune", meanwhile)
    (outcome,) = run(SLOW, trials=2)
    assert outcome.record and not outcome.fresh
    assert outcome.knobs == ()


def test_workload_that_fails_leaves_the_others(run):
    empty = flat(0)
    outcomes = {outcome.name: outcome for outcome in run(empty, FAST, trials=2)}
    assert "has no elements" in outcomes["0"].error
    assert outcomes["300"].record
