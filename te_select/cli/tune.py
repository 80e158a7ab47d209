"""``te-select tune``."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from te_select import kinds
from te_select.backends.imports import without_torch
from te_select.cli import INTERRUPTED
from te_select.cli.console import (
    FAILED,
    JsonFlag,
    UsageError,
    print_json,
)
from te_select.cli.flags import with_groups
from te_select.cli.models import ModelFlags
from te_select.cli.paths import check_plot
from te_select.cli.sources import SuiteFlags, entries_of
from te_select.cli.workloads import WorkloadsFlags
from te_select.errors import SelectError, TuningError
from te_select.records.folders import FAMILY, user_folder
from te_select.records.snapshot import RECORDS

if TYPE_CHECKING:
    from te_select.bench.suite import Entry
    from te_select.tuning.display import Display
    from te_select.tuning.record import Options, Outcome, Record

LibraryFile = Annotated[Path | None, typer.Option(help="Tune all workloads of a library.")]
WhereFile = Annotated[
    str | None, typer.Option(help="Tune te_select.where: a JSON of its stats().kernels, or a name.")
]
Logs = Annotated[
    Path | None,
    typer.Option(
        "--tuning-logs", help="The folder to write; default: your own, which compile reads."
    ),
]
Targets = Annotated[
    str, typer.Option("--target", help="As for compile; a list of CPUs to tune for each of them.")
]
Runner = Annotated[
    str,
    typer.Option(help="local, or rpc://HOST:PORT/KEY for a fleet; {target} in it is the target."),
]
Every = Annotated[
    bool, typer.Option("--all", help="Tune workloads whose default is near the roof, too.")
]
Minutes = Annotated[
    float | None, typer.Option(min=0.0, help="The most that the session takes, shared by all.")
]
Plot = Annotated[
    Path | None, typer.Option(help="Draw what each knob was worth, by matplotlib: PNG, SVG or PDF.")
]


@dataclass(frozen=True)
class TrialFlags:
    """The flags of how configs are tried, which `Options` takes."""

    trials: Annotated[int, typer.Option(min=1, help="Configs to measure per workload.")] = 64
    timeout: Annotated[
        float, typer.Option(min=0.1, max=86400, help="Seconds that a config may take.")
    ] = 30.0
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Configs to build at once; default one per CPU."),
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, max=(1 << 30) - 1, help="Same seed, same configs.")
    ] = 0
    force: Annotated[
        bool, typer.Option("--force", help="Tune workloads that have a record, too.")
    ] = False
    keep_trials: Annotated[
        bool, typer.Option("--keep-trials", help="Keep every trial beside the records.")
    ] = False
    density: Annotated[
        float, typer.Option(min=0, max=100, help="Percent of cond that is true as it is timed.")
    ] = 50.0
    block: Annotated[int, typer.Option(min=1, help="Elements of cond that are drawn together.")] = 1
    cond_file: Annotated[
        str, typer.Option(help="A .npy of booleans: the cond that it is timed with.")
    ] = ""


@with_groups
def tune_command(  # noqa: PLR0913, PLR0917 - one per flag
    flags: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    how: TrialFlags,
    library: LibraryFile = None,
    where: WhereFile = None,
    target: Targets = "native",
    tuning_logs: Logs = None,
    runner: Runner = "local",
    every: Every = False,
    minutes: Minutes = None,
    plot: Plot = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure configs of workloads and record the best of each.

    First it measures what there is to gain: a workload whose default is near the machine's roof is
    passed over. The one with the most to gain is tuned first. If interrupted, it keeps what was
    measured, and the same command goes on from there. A workload that has a record is skipped. Run
    it on an idle machine: if other programs use the cores, the outcome is recorded as unsure, and
    the next run tries again. --target cuda needs an NVIDIA GPU.

    Example: te-select tune --cond 1,1,1024,1024 --then 4,12,1024,1024 --else "" --trials 64

    Example: te-select tune --model m.onnx --size batch=1:64 --minutes 10 --plot build/knobs.png

    Example: te-select tune --target znver4,znver5 --runner "rpc://tracker:9190/{target}" --suite
    default

    Example: te-select tune --where seen.json
    """
    wanted = entries_of(flags, suite, model, of_bench=False, library=library, where=where)

    from te_select.tuning.display import Display, interruption  # noqa: PLC0415 - imports rich
    from te_select.tuning.record import Options  # noqa: PLC0415

    targets = _targets(target, runner)
    check_plot(plot)
    options = Options(**vars(how))
    logs = tuning_logs or user_folder()
    place = logs if where is None else logs / FAMILY
    outcomes: list[Outcome] = []
    display = Display(len(wanted) * len(targets), quiet=as_json)
    interrupted, end = False, None
    seconds = math.inf if minutes is None else 60 * minutes
    try:
        _tune_all(wanted, targets, logs, options, display, outcomes, where, every, seconds)
    except KeyboardInterrupt:
        interrupted = True
    except SelectError as error:
        if not outcomes:
            raise
        end = error
    if as_json:
        print_json(_document(outcomes, place, interrupted, end))
    else:
        rest = interruption(outcomes, display.workloads, display.progress) if interrupted else ""
        _print(outcomes, place, rest, where, is_own=tuning_logs is None)
    if plot is not None:
        _draw(plot, outcomes, quiet=as_json)
    if end is not None and not as_json:
        raise end
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if end is not None or any(outcome.error for outcome in outcomes):
        raise typer.Exit(FAILED)


def _targets(text: str, runner: str) -> list[tuple[str, str]]:
    """The targets, each with its runner; CPUs may be listed, GPUs and JSON have own commas."""
    from te_select.tuning.runners import parse_runner  # noqa: PLC0415 - kept off --help

    names = [name.strip() for name in text.split(",")]
    # A device's own list has the device once: device:one,two. JSON has commas as well.
    of_device = names[0].partition(":")[0] in kinds.KINDS and not all(":" in n for n in names)
    is_one = text.startswith("{") or of_device
    found = []
    for target in [text] if is_one else dict.fromkeys(names):
        try:
            parse_runner(own := runner.replace("{target}", target))
        except TuningError as error:
            raise UsageError(str(error)) from error
        found.append((target, own))
    return found


def _draw(path: Path, outcomes: Sequence[Outcome], *, quiet: bool) -> None:
    from te_select.tuning import worth  # noqa: PLC0415 - kept off --help

    knobs = {outcome.name: outcome.knobs for outcome in outcomes if outcome.knobs}
    if knobs:
        worth.plot(path, knobs)
    if not quiet:
        nothing = "nothing to draw: no workload is done, or its trials were not kept"
        print(f"written: {path}" if knobs else nothing)


def _print(
    outcomes: Sequence[Outcome], logs: Path, rest: str, where: str | None, *, is_own: bool
) -> None:
    """Print what was found, the file that holds the records, and what is left to do."""
    from te_select.tuning.display import print_knobs, print_outcomes  # noqa: PLC0415 - imports rich

    if outcomes:
        print_outcomes(outcomes)
    if len(outcomes) == 1 and outcomes[0].knobs:
        print_knobs(outcomes[0].knobs)
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    unsure = [record for record in records if record.unsure]
    if len(records) > len(unsure):
        flag = "" if is_own else f" --tuning-logs {shlex.quote(str(logs))}"
        print(f"recorded in {logs / records[0].name.partition('/')[0] / RECORDS}")
        if where is None:
            print(f"te-select compile{flag} ... -o LIBRARY uses them")
        elif is_own:
            print("te-select where build uses them")
    if unsure:
        print(
            f"{len(unsure)} of {len(records)} not used, and no earlier record replaced: unsure "
            f"because {unsure[0].unsure}\nthe same command tries them again"
        )
    if rest:
        print(rest)


def _tune_all(  # noqa: PLR0913, PLR0917
    wanted: Sequence[Entry],
    targets: Sequence[tuple[str, str]],
    logs: Path,
    options: Options,
    display: Display,
    outcomes: list[Outcome],
    where: str | None,
    every: bool,
    seconds: float,
) -> None:
    from te_select.tuning.runners import LOCAL, open_measurer  # noqa: PLC0415 - kept off --help

    with contextlib.ExitStack() as stack:
        measurer = None
        if all(runner == LOCAL for _, runner in targets):
            measurer = stack.enter_context(open_measurer(LOCAL, options.jobs, options.timeout))
            measurer.launch()  # its processes import TVM while this one does
        with without_torch():
            from te_select.tuning.agenda import Agenda, Job  # noqa: PLC0415 - imports tvm
            from te_select.tuning.family import FamilySession  # noqa: PLC0415 - as above
            from te_select.tuning.session import Session  # noqa: PLC0415 - as above
        opened = Session if where is None else FamilySession
        sessions = [
            stack.enter_context(opened(target, logs, runner, options, measurer))
            for target, runner in targets
        ]
        stack.enter_context(display)
        several = len(sessions) > 1
        jobs = [
            Job(
                f"{entry.name} on {session.folder.name}" if several else entry.name,
                session,
                session.task(entry.workload, entry.ranges),
            )
            for entry in wanted
            for session in sessions
        ]
        agenda = Agenda(jobs, every=every, seconds=seconds)
        for outcome in agenda.run(lambda job: display.begin(job.name, job.roof), display):
            outcomes.append(outcome)
            display.end(outcome)


def _document(
    outcomes: Sequence[Outcome], logs: Path, interrupted: bool, end: SelectError | None
) -> dict[str, Any]:
    return {
        "tuning_logs": str(logs),
        "interrupted": interrupted,
        "busy_cores": _busy(outcomes),
        "error": None if end is None else str(end),
        "workloads": [
            vars(outcome)
            | {
                "record": outcome.record and _record(outcome.record),
                "knobs": [vars(knob) | {"gain": knob.gain} for knob in outcome.knobs],
            }
            for outcome in outcomes
        ],
    }


def _busy(outcomes: Sequence[Outcome]) -> float:
    """The most cores that other programs used while a workload was measured now."""
    fresh = (outcome.record for outcome in outcomes if outcome.record and outcome.fresh)
    return max((record.busy_cores or 0.0 for record in fresh), default=0.0)


def _record(record: Record) -> dict[str, Any]:
    changed = {"workload": record.workload.to_json(), "default_won": record.default_won}
    return {**vars(record), **changed}
