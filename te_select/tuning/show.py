"""What a session shows: its progress on a terminal, the report at the end, and a picture."""

from __future__ import annotations

import itertools
import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Column

from te_select.operator.access import access_pattern
from te_select.operator.broadcast import count_of

if TYPE_CHECKING:
    from te_select.tuning.agenda import Job, Outcome
    from te_select.tuning.journal import Knob
    from te_select.tuning.trials import Progress

_NAME, _WIDTH = 30, 80  # columns of the report: of a workload's name, and of all


class Display(Bar):
    """A progress bar on stderr, or a line for each workload if stderr is not a terminal.

    It is drawn only when a trial ends, so that a kernel that is timed has the machine to itself.

    Parameters
    ----------
    workloads
        How many there are.
    quiet
        Whether to say nothing if stderr is not a terminal.
    """

    def __init__(self, workloads: int, *, quiet: bool = False) -> None:
        self.workloads = workloads
        self._quiet = quiet
        self._name = ""
        self.outcomes: list[Outcome] = []  # of the workloads that are done
        self.progress: Progress | None = None  # of the workload that is being tuned
        console = Console(stderr=True, quiet=not sys.stderr.isatty())
        line = TextColumn("{task.description}", table_column=Column(no_wrap=True))
        columns = (MofNCompleteColumn(), BarColumn(20), TimeRemainingColumn(), line)
        super().__init__(*columns, console=console, auto_refresh=False, transient=True)
        self._bar = self.add_task("", total=None)

    def begin(self, job: Job) -> None:
        """Begin with a workload: its default is measured, or it is tuned."""
        self.progress = None
        self._name = f"{len(self.outcomes) + 1}/{self.workloads} {job.name}"
        self.reset(self._bar, description=self._name)

    def end(self, outcome: Outcome) -> None:
        """Keep the outcome of a workload that is done."""
        self.outcomes.append(outcome)
        self.progress = None
        if self.console.quiet and not self._quiet and self.workloads > 1:
            told = "; ".join(filter(None, (_gain(outcome), *_notes(outcome))))
            line = f"{len(self.outcomes)}/{self.workloads} {outcome.name}: {told}"
            print(line, file=sys.stderr, flush=True)

    def __call__(self, progress: Progress) -> None:
        """Show the session's progress."""
        self.progress = progress
        self.update(
            self._bar,
            description=f"{told(progress)}; {self._name}",
            completed=progress.done,
            total=progress.total,
            refresh=True,
        )


def told(progress: Progress) -> str:
    """A workload's progress in words."""
    parts = [f"default {duration(progress.default)}", f"best {duration(progress.best)}"]
    if progress.default and progress.best:
        parts[-1] += f" ({progress.default / progress.best:.2f}x)"
    if progress.resumed:
        parts.append(f"{count_of(progress.resumed, 'trial')} taken over")
    if progress.failed:
        parts.append(f"{progress.failed} failed, the first: {progress.failure}")
    return "; ".join([*parts, *(["finals"] if progress.phase == "finalists" else [])])


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines of a session's report: first what was gained, then a line for each workload."""
    records = [outcome.record for outcome in outcomes if outcome.record]
    gains = [record.gain for record in records if not record.default_won]
    first = f"{len(gains)} of {len(outcomes)} workloads faster than the default"
    if gains:
        first += f": {max(gains):.2f}x at most"
    held = {record.session.get("fixed") for record in records}
    yield ", ".join([first, *(f"with {knobs} held" for knobs in held if knobs)])
    heads = f"{'default':>9} {'tuned':>9} {'gain':>7} {'% roof':>7} {'trials':>6}"
    yield f"{'workload':{_NAME}} {heads}"
    for outcome in outcomes:
        record, roof, name = outcome.record, outcome.roof_bytes_per_second, outcome.name
        if len(name) > _NAME:
            yield name
            name = ""
        default = outcome.default_seconds
        seconds, share, trials = None, "-", "-"
        if record:
            default = record.default_seconds
            seconds = record.seconds
            trials = str(record.trials)
            if roof:
                share = f"{access_pattern(record.workload).bytes_moved() / seconds / roof:.0%}"
        cells = f"{duration(default):>9} {duration(seconds):>9} {_gain(outcome) or '-':>7}"
        yield f"{name:{_NAME}} {cells} {share:>7} {trials:>6}"
        for note in _notes(outcome):
            yield from _wrapped(note)


def report_of_knobs(knobs: Sequence[Knob]) -> Iterator[str]:
    """The lines of what the knobs were worth for a workload."""
    yield f"{'knob':18} {'default -> other':>24} {'without':>9} {'with':>9} {'gain':>7}"
    for knob in knobs:
        change = f"{knob.default} -> {knob.value}"
        seconds = f"{duration(knob.seconds_without):>9} {duration(knob.seconds):>9}"
        yield f"{knob.name:18} {change:>24} {seconds} {knob.gain:>6.2f}x"
        tried = (
            f"{value}: {'failed' if best is None else duration(best)}"
            for value, best in knob.tried.items()
        )
        yield from _wrapped(f"tried {', '.join(tried)}")


def _wrapped(text: str) -> list[str]:
    """The lines of a note, indented."""
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def plot(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Draw how each workload's best time fell with the trials, and what each knob was worth.

    The rows of both halves are the workloads. At the left a row is filled up to what its trials had
    gained so far; the numbers are the most of it, and what the finals have confirmed.

    Parameters
    ----------
    path
        The picture to write; its suffix decides the format.
    outcomes
        The workloads whose knobs are known.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second

    names = list(dict.fromkeys(knob.name for each in outcomes for knob in each.knobs))
    size = (6 + 1.3 * len(names), max(4, 2.2 + 0.55 * len(outcomes)))
    figure = Figure(figsize=size, layout="constrained")
    widths = 5, 1.3 * max(1, len(names))
    trials, worth = figure.subplots(1, 2, sharey=True, width_ratios=widths)
    trials.locator_params(axis="x", integer=True)
    trials.set(title="Best so far, and the gain in the finals\n(hatched: unsure)", xlabel="trials")
    worth.set(title="What each knob is worth\n(1 = the default's value; hatched: unsure)")
    hatched: dict[str, Any] = {"facecolor": "none", "hatch": "//", "edgecolor": "lightgray"}
    for row, outcome in enumerate(outcomes):
        unsure = is_unsure(outcome)
        if outcome.seconds and outcome.seconds[0]:
            timed = (math.inf if each is None else each for each in outcome.seconds)
            best = [outcome.seconds[0] / each for each in itertools.accumulate(timed, min)]
            most = max(best[-1] - 1, 0.1)
            bottom = row + 0.45
            tops = [bottom - 0.9 * (gain - 1) / most for gain in best]
            steps = range(1, len(best) + 1)
            filled = hatched if unsure else {"facecolor": "C0", "alpha": 0.4}
            trials.fill_between(steps, bottom, tops, step="post", **filled)
            found = outcome.record.gain if outcome.record else 1.0
            said = f"{best[-1]:.2f}, finals {found:.2f}"
            trials.text(1, row, said, va="center", fontsize=8)
        for knob in outcome.knobs:
            column = names.index(knob.name)
            look = hatched
            if not unsure:
                alpha = min(1.0, abs(math.log(knob.gain)) + 0.1)
                color = "C2" if knob.gain > 1 else "C3"
                look = {"facecolor": color, "alpha": alpha, "edgecolor": "lightgray"}
            worth.bar(column, 1, 1, row - 0.5, **look)
            text = f"{knob.default} -> {knob.value}:\n{knob.gain:.2f}"
            worth.text(column, row, text, ha="center", va="center", fontsize=9)
    worth.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=9)
    labels = [outcome.name for outcome in outcomes]
    trials.set_yticks(range(len(outcomes)), labels, parse_math=False, fontsize=9)
    trials.margins(y=0)
    worth.margins(0)
    trials.set_ylim(len(outcomes) - 0.5, -0.5)
    figure.savefig(path)


def is_unsure(outcome: Outcome) -> bool:
    """Whether a workload's outcome cannot be trusted, accepted or not."""
    return bool(outcome.record and (outcome.record.unsure or outcome.record.accepted))


def interruption(outcomes: Sequence[Outcome], workloads: int, progress: Progress | None) -> str:
    """Say what an interrupted session leaves, and how to go on, in one line.

    ``progress`` is that of the unfinished workload; None if it had no trial yet.
    """
    done = sum(outcome.record is not None for outcome in outcomes)
    kept = f"{done} of {workloads} workloads have a record"
    if progress and progress.done:
        kept += f", and {progress.done} of {progress.total} trials of {progress.workload} are kept"
        kept += " if the default's time stays the same within a tenth"
    return f"interrupted: {kept}; the same command goes on from there"


def duration(seconds: float | None) -> str:
    """Seconds with three digits, in the unit that fits."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _gain(outcome: Outcome) -> str:
    return f"{outcome.record.gain:.2f}x" if outcome.record else ""


def _notes(outcome: Outcome) -> list[str]:
    notes = [f"failed: {outcome.error}" if outcome.error else outcome.passed_over]
    if record := outcome.record:
        if not outcome.fresh:
            notes.append("tuned before")
        if record.unsure:
            notes.append(f"unsure: {record.unsure}")
        elif record.accepted:
            notes.append(f"unsure, and accepted: {record.accepted}")
        elif record.default_won:
            notes.append("the default won")
    if outcome.resumed:
        notes.append(f"{count_of(outcome.resumed, 'trial')} taken over from an earlier run")
    if outcome.forgotten:
        notes.append(
            f"0 of {count_of(outcome.forgotten, 'trial')} taken over: the default's time has "
            "changed by more than a tenth"
        )
    if outcome.ended_early:
        why = outcome.late or "nothing untried is predicted to be faster"
        if not any(why in note for note in notes):
            notes.append(f"ended early: {why}")
    return [note for note in notes if note]
