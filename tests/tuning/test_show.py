"""What a session prints and draws."""

from pytest import mark

from te_select.records.log import Record
from te_select.tuning import show
from te_select.tuning.agenda import Outcome
from te_select.tuning.journal import Trial, knobs_of
from te_select.tuning.trials import Progress
from tests.support import flat

W = flat(1 << 20, "uint8")  # 4 MiB moved
RECORD = Record({"unroll": 4}, 1e-4, 2e-4, 64, 3, "znver5/x", W)
WON = Record({}, 1e-4, 1e-4, 9, 0, "znver5/x", W)
DEFAULT = Trial({"skip": 0, "unroll": 4, "rows": False}, 2.0)
TRIALS = [
    DEFAULT,
    Trial({"unroll": 8, "skip": 0, "rows": False}, 1.0),
    Trial({"unroll": 8, "skip": 1, "rows": False}, 1.25),
    Trial({"unroll": 1, "skip": 1, "rows": False}, 3.0),
    Trial({"unroll": 2, "skip": 0, "rows": True}, None, "it hung"),
]


@mark.parametrize(
    "seconds, text",
    [
        (None, "-"),
        (2.5, "2.5 s"),
        (0.999, "999 ms"),
        (1.234e-2, "12.3 ms"),
        (1e-3, "1 ms"),
        (9.99e-4, "999 us"),
        (9.9e-7, "990 ns"),
    ],
)
def test_times_are_shown_in_the_unit_that_fits(seconds, text):
    assert show.duration(seconds) == text


def test_report_says_what_was_gained_and_why_not_in_80_columns():
    early = Outcome("w", RECORD, roof_bytes_per_second=8 * 2**20 * 1e4, ended_early=True)
    unsure = Record({}, 1e-4, 1e-4, 9, 0, "x/y", W, unsure="the rounds lay 80% apart; " * 5)
    others = [
        Outcome("v" * 60, unsure, resumed=1),
        Outcome("before", WON, fresh=False),
        Outcome("u", passed_over="the default reaches 99% of the roof; --all tunes it"),
    ]
    first, head, line, note, *lines = show.report([early, *others])
    assert first == "1 of 4 workloads faster than the default: 2.00x at most"
    assert line.split() == ["w", "200", "us", "100", "us", "2.00x", "50%", "64"]
    assert head.split()[:2] == ["workload", "default"]
    assert note == "  ended early: nothing untried is predicted to be faster"
    for said in ("  1 trial taken over from an earlier run", "  tuned before", "  the default won"):
        assert said in lines
    assert max(map(len, (first, head, line, *lines))) <= 80
    assert not any(each.endswith(" ") for each in lines)
    assert max(map(len, show.report_of_knobs(knobs_of(TRIALS)))) <= 80


def test_progress_has_the_best_and_the_failures():
    progress = Progress(W, 64, [4e-3, None, 2e-3, None], "it hung: 30 s", resumed=1)
    assert show.told(progress) == (
        "default 4 ms; best 2 ms (2.00x); 1 trial taken over; 2 failed, the first: it hung: 30 s"
    )
    assert show.told(Progress(W, phase="finalists")).endswith("; finals")


def test_interruption_says_when_trials_are_taken_over():
    said = show.interruption([], 1, Progress(W, 64, [4e-3]))
    assert f"1 of 64 trials of {W} are kept if the default's time stays the same within a" in said


def test_bar_shows_how_far_a_workload_is():
    display = show.Display(3)
    display.end(Outcome("u", None, "it hung"))
    display._name = "2/3 w"
    display(Progress(W, 64, [4e-3, 2e-3]))
    assert "default 4 ms; best 2 ms (2.00x); 2/3 w" in display.tasks[0].description
    assert (display.tasks[0].completed, display.tasks[0].total) == (2, 64)


def test_best_with_a_knob_is_compared_with_the_best_without():
    unroll, skip = knobs_of(TRIALS)
    assert (unroll.name, unroll.default, unroll.value, unroll.gain) == ("unroll", 4, 8, 2.0)
    assert (skip.name, skip.default, skip.value, skip.gain) == ("skip", 0, 1, 0.8)
    assert knobs_of([DEFAULT]) == knobs_of([]) == []
    other = Trial({"unroll": 8, "gone": 1}, 1.0)  # of another te-select
    assert [knob.name for knob in knobs_of([DEFAULT, other])] == ["unroll"]


@mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_picture_has_the_trials_and_a_cell_for_each_knob(tmp_path, suffix):
    path = tmp_path / f"knobs.{suffix}"
    knobs = knobs_of(TRIALS)
    unsure = Record({}, 1e-4, 1e-4, 9, 0, "x/y", W, unsure="noise")
    outcomes = [
        Outcome("mask over heads", RECORD, knobs=knobs, seconds=[2.0, 1.0, None]),
        Outcome("a$x_{$b", unsure, knobs=knobs[:1], seconds=[2.0, 0.9, 0.9]),
    ]
    show.plot(path, outcomes)
    data = path.read_bytes()
    assert len(data) > 1000
    if suffix == "svg":
        for text in (b"mask over heads", b"(1 = the default's value", b"4 -&gt; 8:", b"<pattern"):
            assert text in data, text
        assert data.count(b"<!-- 2.00") >= 1
        assert data.count(b"<!-- mask over heads -->") == 1
        assert b"2.22, finals 1.00" in data  # of the row that is hatched in both halves
        assert data.count(b"url(#") >= 2
