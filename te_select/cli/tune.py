"""``te-select tune``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from te_select import kinds
from te_select.backends.imports import without_torch
from te_select.cli import INTERRUPTED
from te_select.cli.console import (
    FAILED,
    JsonFlag,
    TargetOption,
    UsageError,
    print_json,
)
from te_select.cli.flags import with_groups
from te_select.cli.models import ModelFlags
from te_select.cli.sources import SuiteFlags, entries_of
from te_select.cli.workloads import WorkloadsFlags
from te_select.errors import SelectError, TuningError
from te_select.operator.workload import Workload
from te_select.records.folders import FAMILY, user_folder
from te_select.records.snapshot import RECORDS

if TYPE_CHECKING:
    from te_select.bench.suite import Entry
    from te_select.tuning.display import Display, Outcome
    from te_select.tuning.record import Options, Record

LibraryFile = Annotated[Path | None, typer.Option(help="Tune all workloads of a library.")]
WhereFile = Annotated[str | None, typer.Option(help="Tune te_select.where: its stats().kernels.")]
Logs = Annotated[
    Path | None,
    typer.Option(
        "--tuning-logs", help="The folder to write; default: your own, which compile reads."
    ),
]
KeepTrials = Annotated[
    bool, typer.Option("--keep-trials", help="Keep every trial beside the records.")
]
Trials = Annotated[int, typer.Option(min=1, help="Configs to measure per workload.")]
Runner = Annotated[str, typer.Option(help="local, or rpc://HOST:PORT/KEY for a fleet.")]
Timeout = Annotated[float, typer.Option(min=0.1, max=86400, help="Seconds that a config may take.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Configs to build at once; default one per CPU.")
]
Seed = Annotated[int, typer.Option(min=0, max=(1 << 30) - 1, help="Same seed, same configs.")]
Force = Annotated[bool, typer.Option("--force", help="Tune workloads that have a record, too.")]


@with_groups
def tune_command(  # noqa: PLR0913, PLR0917 - one per flag
    flags: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    library: LibraryFile = None,
    where: WhereFile = None,
    target: TargetOption = "native",
    tuning_logs: Logs = None,
    trials: Trials = 64,
    runner: Runner = "local",
    timeout: Timeout = 30.0,
    jobs: Jobs = None,
    seed: Seed = 0,
    force: Force = False,
    keep_trials: KeepTrials = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure configs of workloads and record the best of each.

    If interrupted, it keeps what was measured, and the same command goes on from there. A workload
    that has a record is skipped. Run it on an idle machine: if other programs use the cores, the
    outcome is recorded as unsure, and the next run tries again. --target cuda needs an NVIDIA GPU.

    Example: te-select tune --cond 1,1,1024,1024 --then 4,12,1024,1024 --else "" --trials 64

    Example: te-select tune --suite default --only "attention-*" --tuning-logs build/logs

    Example: te-select tune --where seen.json
    """
    wanted = entries_of(flags, suite, model, of_bench=False, library=library, where=where)

    from te_select.tuning.display import Display, interruption  # noqa: PLC0415 - imports rich
    from te_select.tuning.record import Options  # noqa: PLC0415

    _check(runner)
    options = Options(trials, timeout, jobs, seed, force, keep_trials)
    logs = tuning_logs or user_folder()
    place = logs if where is None else logs / FAMILY
    outcomes: list[Outcome] = []
    display = Display(len(wanted))
    interrupted, end = False, None
    try:
        _tune_all(wanted, target, logs, runner, options, display, outcomes, where)
    except KeyboardInterrupt:
        interrupted = True
    except SelectError as error:
        if not outcomes:
            raise
        end = error
    if as_json:
        print_json(_document(outcomes, place, interrupted, end))
    else:
        rest = interruption(outcomes, len(wanted), display.progress) if interrupted else ""
        _print(outcomes, place, rest, where, is_own=tuning_logs is None)
        if end is not None:
            raise end
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if end is not None or any(outcome.record is None for outcome in outcomes):
        raise typer.Exit(FAILED)


def _check(runner: str) -> None:
    """Refuse a runner that is not valid."""
    from te_select.tuning.runners import parse_runner  # noqa: PLC0415 - kept off --help

    try:
        parse_runner(runner)
    except TuningError as error:
        raise UsageError(str(error)) from error


def _print(
    outcomes: Sequence[Outcome], logs: Path, rest: str, where: str | None, *, is_own: bool
) -> None:
    """Print what was found, the file that holds the records, and what is left to do."""
    from te_select.tuning.display import print_outcomes  # noqa: PLC0415 - imports rich

    if outcomes:
        print_outcomes(outcomes)
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
            f"{len(unsure)} of {len(records)} recorded, not used: unsure because "
            f"{unsure[0].unsure}\nthe same command tries them again"
        )
    if rest:
        print(rest)


def _tune_all(
    wanted: Sequence[Entry],
    target: str,
    tuning_logs: Path,
    runner: str,
    options: Options,
    display: Display,
    outcomes: list[Outcome],
    where: str | None,
) -> None:
    from te_select.tuning.display import Outcome  # noqa: PLC0415 - imports rich
    from te_select.tuning.record import UntunableError  # noqa: PLC0415

    with without_torch():
        from te_select.tuning.family import FamilySession  # noqa: PLC0415 - imports tvm
        from te_select.tuning.session import Session  # noqa: PLC0415 - imports tvm
    opened = Session if where is None else FamilySession
    with opened(target, tuning_logs, runner, options) as session, display:
        for entry in wanted:
            workload = entry.workload
            found = None if options.force else session.find(workload)
            fresh = found is None
            measured_here = fresh and runner == "local"
            roof = _roof(workload, session.target.kind) if measured_here else None
            display.begin(roof)
            try:
                record = found or session.tune(workload, display)
                resumed = display.progress.resumed if display.progress else 0
                outcomes.append(Outcome(entry.name, record, None, fresh, roof, resumed))
            except UntunableError as error:
                outcomes.append(Outcome(entry.name, None, str(error)))
            display.progress = None


def _roof(workload: Workload, kind: str) -> float | None:
    """The roof of this machine, in bytes per second; None if it cannot be measured."""
    from te_select.operator.access import access_pattern  # noqa: PLC0415
    from te_select.records.sizes import representative  # noqa: PLC0415

    bandwidth = kinds.load(kinds.kind(kind).roof)
    found: float | None = bandwidth(access_pattern(representative(workload)).bytes_moved())
    return found


def _document(
    outcomes: Sequence[Outcome], logs: Path, interrupted: bool, end: SelectError | None
) -> dict[str, Any]:
    return {
        "tuning_logs": str(logs),
        "interrupted": interrupted,
        "busy_cores": _busy(outcomes),
        "error": None if end is None else str(end),
        "workloads": [
            vars(outcome) | {"record": outcome.record and _record(outcome.record)}
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
