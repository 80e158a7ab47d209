"""How much a session does: its effort, what overrides it, and knobs that are held."""

from pytest import approx, fail, fixture, mark, raises

import te_select
from te_select import ArgumentError
from te_select.cli.tune import ChoiceFlags
from te_select.records import origin
from te_select.tuning import options
from te_select.tuning.agenda import Outcome
from te_select.tuning.journal import Trial, knobs_of
from te_select.tuning.options import Options
from te_select.tuning.show import report, report_of_knobs
from tests.support import masked_rows
from tests.support.cli import FLAGS, refused
from tests.support.cli import run as run_verb
from tests.support.clock import Clock
from tests.support.tuning import BIG, V4, FakeMeasurer, only


@fixture
def clock(monkeypatch):
    """The clock of sessions, which only measuring moves."""
    made = Clock()
    for module in ("session", "trials"):
        monkeypatch.setattr(f"te_select.tuning.{module}.time", made)
    return made


@mark.usefixtures("clock")
def test_quick_session_tries_few_configs_and_has_short_finals(run):
    def finals(_measurer, candidates):
        assert len(candidates) <= 3

    record = run(BIG, FakeMeasurer(finals=finals), effort="quick", trials=None, patient=False)
    assert record.trials <= 10
    assert run.measurer.rounds == [3, 5, 11] and record.gain == approx(2, rel=0.05)


def test_what_is_given_overrides_the_effort():
    assert Options(trials=3, effort="quick").most_trials == 3
    quick, full = Options(effort="quick"), Options()
    assert (quick.most_trials, full.most_trials) == (10, 64)
    with raises(ArgumentError, match="effort is 'fast'; expected quick or full"):
        Options(effort="fast")
    assert [ChoiceFlags().seconds(each, 39) for each in (quick, full)] == [117, 4680]
    assert ChoiceFlags(minutes=1).seconds(quick, 39) == 60


def test_time_of_one_workload_begins_with_its_default(run, clock):
    """Before that the processes that measure import TVM."""

    def after(measurer, _candidate):
        clock.now += 0.4 if len(measurer.measured) > 1 else 9.0

    record = run(BIG, FakeMeasurer(after=after), effort="quick", trials=None)
    assert record.trials == 4  # the default, and what ends in 1.5 seconds
    assert record.unsure == ""  # the time is over as it should be


def test_ranges_of_sizes_keep_the_time_too(run, clock):
    """A config is measured at three sizes, and is known only after the third."""

    measurer = FakeMeasurer(after=lambda *_: clock.sleep(0.1))
    record = run(
        masked_rows("n", 512), measurer, effort="quick", trials=None, sizes={"n": (3, 300)}
    )
    assert record.trials == 6  # the default, and five in 1.5 seconds
    assert clock.now <= 0.3 + 3.0


def test_full_session_tries_again_what_a_quick_one_has_recorded(run):
    for effort, is_tuned in (("quick", True), ("quick", False), ("full", True), ("quick", False)):
        run(effort=effort)
        assert bool(run.measurer.measured) == is_tuned


def test_first_line_has_the_time_and_how_busy_others_are(monkeypatch):
    monkeypatch.setattr("te_select.timing.cores.busy_cores", lambda: 0.6)
    said = options.outlook(39, 39 * 3.0)
    assert said.startswith(
        f"39 workloads in at most 117 seconds {options.AFTER}; other programs use 0.60 cores: "
    )
    monkeypatch.setattr("te_select.timing.cores.busy_cores", lambda: 0.15)
    assert options.outlook(1, 600.0) == (
        f"1 workload in at most 10 minutes {options.AFTER}; other programs use 0.15 cores"
    )
    assert options.outlook(2, 120.0).startswith("2 workloads in at most 120 seconds ")
    assert options.outlook(0, 0.0) == "other programs use 0.15 cores"


def test_first_line_is_printed_before_anything_is_measured(tmp_path, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "outlook", lambda count, seconds, accept: f"{count} in {seconds}")
    monkeypatch.setattr("te_select.tuning.options.measure_profile", interrupt)
    shapes = [*FLAGS, "--tuning-logs", tmp_path]
    result = run_verb("tune", *shapes, "--effort", "quick")
    assert (result.exit_code, result.stdout) == (130, "1 in 3.0\n")
    refused("tune", *shapes, "--effort", "fast")


def test_fixed_knob_is_held_and_the_default_stays_as_it_is(run, tmp_path):
    record = run(BIG, fixed={"unroll": 2, "vector_bytes": 32}, measurer=FakeMeasurer())
    first, *others = [each.config for each in run.measurer.measured]
    assert first["unroll"] == 4 and len(others) > 3
    assert {(each["unroll"], each["vector_bytes"]) for each in others} == {(2, 32)}
    assert record.default_won  # with less unroll all are slower
    entry = only(tmp_path / V4.name)
    assert entry.session["fixed"] == "unroll=2 vector_bytes=32"
    assert "--fix unroll=2 --fix vector_bytes=32" in entry.session["command"]
    said = "with unroll=2 vector_bytes=32 held"
    assert origin.outcome(entry).endswith(f" configs ({said})")
    assert next(report([Outcome("w", entry)])).endswith(f" than the default, {said}")


def test_record_of_a_fixed_knob_does_not_end_the_search(run):
    run(fixed={"unroll": 8})
    run(fixed={"unroll": 8})
    assert run.measurer.measured == []
    run()
    assert run.measurer.measured  # the other knobs were not all tried
    run(fixed={"unroll": 8})
    assert run.measurer.measured == []
    run(fixed={"unroll": 2})
    assert run.measurer.measured
    run(fixed={"unroll": 2})
    assert run.measurer.measured == []  # though the default has won, which has another unroll
    run(fixed={"vector_bytes": 64})
    assert run.measurer.measured  # other values of unroll were not tried


def test_session_that_holds_a_knob_meets_the_record_there(run, tmp_path):
    run(BIG)
    best = only(tmp_path / V4.name).config
    run(BIG, fixed={"unroll": 1 if best["unroll"] > 1 else 2})
    assert only(tmp_path / V4.name).config == best


@mark.parametrize(
    "fixed, said",
    [
        (
            {"unrol": 4},
            "fixed knobs {'unrol': 4} cannot be followed: 'unrol' is no knob; expected one",
        ),
        ({"unroll": 3}, "fixed knobs {'unroll': 3} cannot be followed: "),
        ({"unroll": "4"}, "fixed knobs {'unroll': '4'} cannot be followed: "),
    ],
)
def test_knob_that_cannot_be_held_is_refused(run, fixed, said):
    with raises(ArgumentError) as caught:
        run(fixed=fixed)
    assert said in str(caught.value)


@mark.parametrize("target", ["native", "cuda:sm_90"])
@mark.parametrize("pair", ["unrol=4", "threads=3", "unroll=3"])
def test_knob_of_another_name_or_value_is_bad_usage(tmp_path, monkeypatch, target, pair):
    """It is refused before the profile is measured, and whatever has a record."""
    monkeypatch.setattr("te_select.tuning.options.outlook", fail)
    flags = [*FLAGS, "--tuning-logs", tmp_path, "--target", target, "--fix", pair]
    result = run_verb("tune", *flags)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    assert "--fix fixed knobs {" in result.stderr


def test_option_of_another_name_is_refused_with_the_nearest():
    said = r"^tune\(\) got an unexpected keyword argument 'accept_unsur'; did you mean accept_un"
    with raises(TypeError, match=said):
        te_select.tune(BIG, accept_unsur=True)


def test_report_has_every_value_tried_with_its_best_time():
    told = [(4, False, 4e-6), (8, False, 2e-6), (8, True, 3e-6), (1, False, None)]
    timed = [Trial({"unroll": u, "rows": rows}, seconds) for u, rows, seconds in told]
    unroll, rows = knobs_of(timed)
    assert unroll.tried == {"4": 4e-6, "8": 2e-6, "1": None}
    assert rows.tried == {"false": 2e-6, "true": 3e-6}
    lines = list(report_of_knobs([unroll, rows]))
    assert "  tried 4: 4 us, 8: 2 us, 1: failed" in lines
