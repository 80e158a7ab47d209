"""The figures of a tuning session, in their units."""

from __future__ import annotations

import pytest

from te_select import Workload
from te_select.tuning import display as module
from te_select.tuning.display import (
    Display,
    Outcome,
    duration,
    interruption,
    print_outcomes,
    rate,
    times,
)
from te_select.tuning.record import Progress, Record
from tests.support.clock import Clock
from tests.support.tuning_fakes import BIG

W = Workload((1 << 20,), (1 << 20,), (1 << 20,), "uint8")  # 4 MiB moved
RECORD = Record({"unroll": 4}, 1e-4, 2e-4, 64, 3, "znver5/x", W)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (2.5, "2.5 s"),
        (1.0, "1 s"),
        (0.999, "999 ms"),
        (1.234e-2, "12.3 ms"),
        (1e-3, "1 ms"),
        (9.99e-4, "999 us"),
        (5e-6, "5 us"),
        (9.9e-7, "990 ns"),
        (3.21e-7, "321 ns"),
    ],
)
def test_times_are_shown_in_the_unit_that_fits(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_gain_is_above_1_where_it_is_faster() -> None:
    assert times(2.0, 1.0) == "2.00x"
    assert times(1.0, 2.0) == "0.50x"
    assert times(None, 1.0) == times(1.0, None) == "-"


def test_rate_is_in_gigabytes_and_of_the_roof() -> None:
    assert rate(1e-3, 50_000_000, 2e11) == "1 ms  50.0 GB/s, 25% of the roof"
    assert rate(1e-3, 50_000_000, None) == "1 ms  50.0 GB/s"
    assert rate(None, 1, 1.0) == "-"


def test_table_has_the_figures_of_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcomes([Outcome("w", RECORD, roof_bytes_per_second=8 * 2**20 * 1e4)])
    head, line = capsys.readouterr().out.splitlines()
    assert line.split() == ["w", "200", "us", "100", "us", "2.00x", "50%", "64", "3"]
    assert head.split()[:2] == ["workload", "default"]


def test_table_says_what_was_not_measured_now(capsys: pytest.CaptureFixture[str]) -> None:
    won = Record({}, 1e-4, 1e-4, 9, 0, "znver5/x", W)
    print_outcomes([Outcome("w", won, fresh=False, resumed=5), Outcome("v", None, "it hung")])
    _, first, second = capsys.readouterr().out.splitlines()
    assert "tuned before; the default won; 5 trials taken over from an earlier run" in first
    assert " - " in first  # no roof
    assert "failed: it hung" in second


def test_interruption_counts_what_is_kept() -> None:
    outcomes = [Outcome("a", RECORD), Outcome("b", None, "failed")]
    text = interruption(outcomes, 5, Progress(W, done=7, total=64))
    assert "1 of 5 workloads have a record, and 7 of 64 trials of" in text
    assert "trials" not in interruption(outcomes, 5, Progress(W, done=0, total=64))


@pytest.mark.parametrize(
    ("progress", "left"),
    [
        (Progress(W, done=12, total=16, resumed=10), "0:20 for this workload"),
        (Progress(W, done=4, total=64), "2:30 for this workload"),
        (Progress(W, done=10, total=16, resumed=10), "a few seconds"),
        (Progress(W, done=16, total=16, phase="finalists"), "a few seconds"),
    ],
)
def test_time_left_is_by_the_trials_of_this_run(
    progress: Progress, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    display = Display(1)
    display.begin("w", None)
    clock.now += 10.0
    assert display._left(progress) == left


def test_panel_shows_trials_best_roof_failures_and_time_left() -> None:
    from rich.console import Console

    display = Display(3)
    display.end(Outcome("u", None, "it hung"))
    display.begin("w", 4e11)
    display(Progress(BIG, done=1, total=64))
    progress = Progress(BIG, 16, 64, 2, "it hung: 30 s", default=4e-3, best=2e-3)
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(display.panel(progress))
    text = console.export_text()
    for part in (
        "1 of 3 done",
        "16/64",
        "4 ms",
        "2 ms",
        "2.00x",
        "of the roof",
        "2; the first: it hung",
    ):
        assert part in text
    assert "for this workload" in text
