"""What a tuning session looks like: a live panel on a terminal, and a table at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from rich.console import Console, JustifyMethod
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from te_select.operator.access import access_pattern
from te_select.tuning.record import Outcome, Progress, Record
from te_select.tuning.worth import Knob

_COLUMNS = ("workload", "default", "tuned", "times as fast", "of the roof", "trials", "failed", "")
_FILE_WIDTH = 200  # columns of the table if stdout is not a terminal


class Display(Live):
    """A live panel on stderr; silent if stderr is not a terminal.

    It is drawn only when a trial ends, so that a kernel that is timed has the machine to itself.

    Attributes
    ----------
    progress
        The last progress of the workload that is being tuned; None before its first trial.
    workloads
        How many there are.

    Parameters
    ----------
    workloads
        How many there are.
    quiet
        Whether to say nothing if stderr is not a terminal; else a line tells of each workload.
    """

    def __init__(self, workloads: int, *, quiet: bool = False) -> None:
        self.workloads = workloads
        self._quiet = quiet
        self._done = 0
        self._name = ""
        self._roof: float | None = None
        self._begun = time.monotonic()
        self.progress: Progress | None = None
        console = Console(stderr=True, quiet=not sys.stderr.isatty())
        super().__init__(console=console, auto_refresh=False, transient=True)

    def begin(self, name: str, roof: float | None) -> None:
        """Begin with a workload: its default is measured, or it is tuned."""
        self._name = name
        self._roof = roof
        self.progress = None
        self._begun = time.monotonic()

    def end(self, outcome: Outcome) -> None:
        """Count a workload that is done."""
        self._done += 1
        self.progress = None
        if self.console.quiet and not self._quiet and self.workloads > 1:
            line = f"{self._done}/{self.workloads} {outcome.name}: {_gain(outcome)}"
            print(line, file=sys.stderr, flush=True)

    def __call__(self, progress: Progress) -> None:
        """Show the session's progress."""
        self.progress = progress
        self.update(self.panel(progress), refresh=True)

    def panel(self, progress: Progress) -> Table:
        """Draw a session's progress."""
        moved = access_pattern(progress.workload).bytes_moved()
        panel = Table.grid(padding=(0, 2))
        done = f"{self._done} of {self.workloads} done"
        panel.add_row("workload", f"{self._name}  {progress.workload}  ({done})")
        bar = ProgressBar(total=progress.total, completed=progress.done, width=40)
        panel.add_row(progress.phase, bar, f"{progress.done}/{progress.total}")
        if progress.resumed:
            panel.add_row("taken over", f"{progress.resumed} trials of an earlier run")
        panel.add_row("default", rate(progress.default, moved, self._roof))
        gain = f"  {times(progress.default, progress.best)}" if progress.best else ""
        panel.add_row("best", rate(progress.best, moved, self._roof) + gain)
        if progress.failed:
            panel.add_row("failed", f"{progress.failed}; the first: {progress.failure}")
        panel.add_row("time left", self._left(progress))
        return panel

    def _left(self, progress: Progress) -> str:
        done = progress.done - progress.resumed  # resumed trials took no time
        if progress.phase != "trials" or done <= 0:
            return "a few seconds"
        seconds = (time.monotonic() - self._begun) / done * (progress.total - progress.done)
        return f"{seconds // 60:.0f}:{seconds % 60:02.0f} for this workload"


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print the table of a session on stdout."""
    table = Table(box=None, pad_edge=False)
    for header in _COLUMNS:
        justify: JustifyMethod = "left" if header in ("workload", "") else "right"
        table.add_column(header, justify=justify, overflow="fold")
    for outcome in outcomes:
        table.add_row(outcome.name, *_cells(outcome))
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    console.print(table)


def _cells(outcome: Outcome) -> list[str]:
    record = outcome.record
    if record is None:
        note = f"failed: {outcome.error}" if outcome.error else outcome.passed_over
        return [duration(outcome.default_seconds), *["-"] * 5, note]
    moved = access_pattern(record.workload).bytes_moved()
    roof = outcome.roof_bytes_per_second
    share = moved / record.seconds / roof if roof else None
    return [
        duration(record.default_seconds),
        duration(record.seconds),
        times(record.default_seconds, record.seconds),
        "-" if share is None else f"{share:.0%}",
        str(record.trials),
        str(record.failed),
        "; ".join(_notes(outcome, record)),
    ]


def _gain(outcome: Outcome) -> str:
    """What became of a workload, in a few words."""
    if outcome.record is None:
        return outcome.error or outcome.passed_over
    gain = times(outcome.record.default_seconds, outcome.record.seconds)
    return "; ".join([gain, *_notes(outcome, outcome.record)])


def print_knobs(knobs: Sequence[Knob]) -> None:
    """Print what the knobs were worth for a workload, on stdout."""
    table = Table(box=None, pad_edge=False)
    for header in ("knob", "default", "best other", "best without", "best with", "times as fast"):
        table.add_column(header, justify="left" if header == "knob" else "right")
    for knob in knobs:
        without, with_it = duration(knob.seconds_without), duration(knob.seconds)
        gain = times(knob.seconds_without, knob.seconds)
        table.add_row(knob.name, str(knob.default), str(knob.value), without, with_it, gain)
    Console(markup=False, highlight=False).print(table)


def _notes(outcome: Outcome, record: Record) -> list[str]:
    notes = [] if outcome.fresh else ["tuned before"]
    if record.unsure:
        notes.append(f"unsure: {record.unsure}")
    elif record.default_won:
        notes.append("the default won")
    if outcome.resumed:
        notes.append(f"{outcome.resumed} trials taken over from an earlier run")
    return notes


def interruption(outcomes: Sequence[Outcome], workloads: int, progress: Progress | None) -> str:
    """Say what an interrupted session leaves, and how to go on.

    Parameters
    ----------
    outcomes
        The outcomes of the workloads that were done.
    workloads
        How many were to be tuned.
    progress
        The progress of the unfinished workload; None if it had no trial yet.

    Returns
    -------
    str
        One line.
    """
    done = sum(outcome.record is not None for outcome in outcomes)
    kept = f"{done} of {workloads} workloads have a record"
    if progress is not None and progress.done:
        kept += f", and {progress.done} of {progress.total} trials of {progress.workload} are kept"
    return f"interrupted: {kept}; the same command goes on from there"


def rate(seconds: float | None, moved: int, roof: float | None) -> str:
    """A time with its bandwidth, and the bandwidth's share of the roof."""
    if not seconds:
        return "-"
    share = f", {moved / seconds / roof:.0%} of the roof" if roof else ""
    return f"{duration(seconds)}  {moved / seconds / 1e9:.1f} GB/s{share}"


def times(default: float | None, seconds: float | None) -> str:
    """How many times as fast as the default."""
    return f"{default / seconds:.2f}x" if default and seconds else "-"


def duration(seconds: float | None) -> str:
    """Seconds with three digits, in the unit that fits."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
