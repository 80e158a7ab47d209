"""``te-select tune``."""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from te_select.base import interrupts, kinds
from te_select.cli import console
from te_select.cli.entries import OtherFlags, SuiteFlags, entries_of
from te_select.cli.flags import Json, Profile, of_flag, parse_pairs
from te_select.cli.models import ModelFlags
from te_select.cli.paths import check_plot
from te_select.cli.workloads import WorkloadsFlags
from te_select.errors import SelectError
from te_select.operator.broadcast import printable
from te_select.records.fields import OF_OUTCOMES
from te_select.records.folders import FAMILY, SESSIONS, user_folder

if TYPE_CHECKING:
    from te_select.bench.suite import Entry
    from te_select.tuning.agenda import Outcome
    from te_select.tuning.options import Options
    from te_select.tuning.show import Display


@dataclass
class OldFlags(OtherFlags):
    """Workloads of these sources, and of old records."""

    again: Annotated[bool, Option("--again", help="Records of other versions.")] = False


@dataclass
class PlaceFlags:
    """The machine to tune on, and what builds for it."""

    title = "The machine"
    target: Annotated[str, Option(help="As for compile, or a list of CPUs.")] = "native"
    runner: Annotated[
        str, Option(help="local, or rpc://HOST:PORT/KEY; {target} in it is the target.")
    ] = "local"
    tuning_logs: Annotated[Path | None, Option(help="The folder to write; default: your own.")] = (
        None
    )
    profile: Profile = True


@dataclass
class ChoiceFlags:
    """How long to tune, and what may be passed over."""

    title = "How long"
    effort: Annotated[str, Option(help="full, or quick: 3 seconds a workload.")] = "full"
    trials: Annotated[int | None, Option(help="Configs a workload; full: 64.")] = None
    patient: Annotated[
        bool, Option("--patient", help="Go on when nothing untried promises 1 %.")
    ] = False
    fix: Annotated[list[str] | None, Option(help="Hold a knob: unroll=4; repeatable.")] = None
    every: Annotated[bool, Option("--all", help="Tune what is near the roof, too.")] = False
    minutes: Annotated[float | None, Option(min=0.0, help="The most, for all; 0: nothing.")] = None

    def seconds(self, options: Options, workloads: int) -> float:
        """The most that a session of so many workloads may take."""
        of_effort = options.usual.seconds * workloads
        return of_effort if self.minutes is None else 60 * self.minutes


@dataclass
class TrialFlags:
    """How trials are proposed and measured."""

    title = "Trials"
    timeout: Annotated[float, Option(help="Seconds that a config may take.")] = 30.0
    seed: Annotated[int, Option(help="Same seed, same configs.")] = 0
    force: Annotated[bool, Option("--force", help="Tune what has a record, too.")] = False
    accept_unsure: Annotated[
        bool, Option("--accept-unsure", help="Keep what has won beside busy programs, too.")
    ] = False


@dataclass
class MaskFlags:
    """The cond that configs are timed with."""

    title = "Cond"
    density: Annotated[float, Option(help="Percent of cond that is true.")] = 50.0
    block: Annotated[int, Option(help="Elements of cond that are drawn together.")] = 1


Plot = Annotated[Path | None, Option(help="Draw trials and knobs: PNG, SVG or PDF.")]


def tune_command(  # noqa: PLR0913, PLR0917 - one for each group
    given: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    other: OldFlags,
    place: PlaceFlags,
    choice: ChoiceFlags,
    how: TrialFlags,
    mask: MaskFlags,
    plot: Plot = None,
    as_json: Json = False,
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

    Example: te-select tune --again
    """
    wanted = _wanted(given, suite, model, other)

    from te_select.tuning import show  # noqa: PLC0415 - imports rich
    from te_select.tuning.options import Options  # noqa: PLC0415 - kept off --help

    targets = _targets(place.target, place.runner)
    check_plot(plot)
    fixed = parse_pairs("--fix", choice.fix, "unroll=4 or rows=true", json.loads)
    options = Options(
        choice.trials, choice.effort, patient=choice.patient, fixed=fixed, **vars(how), **vars(mask)
    )
    _check_fixed(fixed, targets)
    logs = place.tuning_logs or user_folder()
    count = len(wanted) * len(targets)
    seconds = choice.seconds(options, count)
    if not as_json:
        _begin(count, seconds, options, place)
    display = show.Display(count, quiet=as_json)
    outcomes = display.outcomes
    interrupted, end = False, None
    try:
        _tune_all(wanted, targets, logs, options, display, other, choice, seconds)
    except KeyboardInterrupt:
        interrupted = True
    except SelectError as error:
        if not outcomes:
            raise
        end = error
    if as_json:
        console.show(_document(outcomes, logs, interrupted, end), as_json)
    else:
        rest = show.interruption(outcomes, count, display.progress) if interrupted else ""
        _print(outcomes, wanted, logs, rest, is_own=place.tuning_logs is None)
    if plot:
        drawn = [outcome for outcome in outcomes if outcome.knobs]
        if drawn:
            show.plot(plot, drawn)
        if not as_json:
            print(f"drawn in {plot}" if drawn else "nothing to draw: no workload is done")
    if end and not as_json:
        raise end
    if interrupted:
        raise Exit(interrupts.CODE)
    if end or any(outcome.error for outcome in outcomes):
        raise Exit(console.FAILED)


def _check_fixed(fixed: Mapping[str, Any], targets: Sequence[tuple[str, str]]) -> None:
    """Refuse knobs that a target lacks before anything is measured."""
    if not fixed:
        return
    from te_select.backends.targets import resolve  # noqa: PLC0415 - imports tvm
    from te_select.tuning.space import check_fixed  # noqa: PLC0415 - as above

    for target, _ in targets:
        kind = resolve(target).kind
        with of_flag("--fix"):
            check_fixed(kind, fixed)


def _begin(workloads: int, seconds: float, options: Options, place: PlaceFlags) -> None:
    """Say in the first second what to expect, and measure the profile if it is needed."""
    from te_select.tuning import options as module  # noqa: PLC0415 - kept off --help

    if place.runner != module.LOCAL:
        return
    if line := module.outlook(workloads, seconds, accept=options.accept_unsure):
        print(line, flush=True)
    if place.profile and place.target == "native" and (line := module.measure_profile()):
        print(line)


def _wanted(
    given: WorkloadsFlags, suite: SuiteFlags, model: ModelFlags, other: OldFlags
) -> list[Entry]:
    """The workloads that the flags name; none for those of old records."""
    if not other.again:
        return entries_of(given, suite, model, other)
    if given.given or suite != SuiteFlags() or model.model or other != OldFlags(again=True):
        raise console.UsageError(
            "--again is for the records that are there; leave the workloads out"
        )
    return []


def _targets(text: str, runner: str) -> list[tuple[str, str]]:
    """The targets, each with its runner; CPUs may be listed, GPUs and JSON have own commas."""
    from te_select.tuning.options import parse_runner  # noqa: PLC0415 - kept off --help

    names = [name.strip() for name in text.split(",")]
    # A device's own list has the device once: device:one,two. JSON has commas as well.
    of_device = names[0].partition(":")[0] in kinds.KINDS and not all(":" in n for n in names)
    is_one = text.startswith("{") or of_device
    targets = [text] if is_one else dict.fromkeys(names)
    found = {target: runner.replace("{target}", target) for target in targets}
    with of_flag("--runner"):
        for each in found.values():
            parse_runner(each)
    return list(found.items())


def _print(
    outcomes: Sequence[Outcome], wanted: Sequence[Entry], logs: Path, rest: str, *, is_own: bool
) -> None:
    """Print what was found, the folder that holds the records, and what is left to do."""
    from te_select.tuning.show import report, report_of_knobs  # noqa: PLC0415 - imports rich

    for line in report(outcomes) if outcomes else ():
        print(printable(line))
    if len(outcomes) == 1 and outcomes[0].knobs:
        print(*report_of_knobs(outcomes[0].knobs), sep="\n")
    records = [outcome.record for outcome in outcomes if outcome.record]
    unsure = [record for record in records if record.unsure]
    if len(records) > len(unsure):
        folder = records[0].name.partition("/")[0]
        for of_where in sorted({entry.of_where for entry in wanted} or {False}):
            print(f"recorded in {(logs / FAMILY if of_where else logs) / folder / SESSIONS}")
            if not of_where:
                flag = "" if is_own else f" --tuning-logs {shlex.quote(str(logs))}"
                print(f"te-select compile{flag} ... -o LIBRARY uses them")
            elif is_own:
                print("te-select where build uses them")
    if unsure:
        print(
            f"unsure: {len(unsure)} of {len(records)}, which will not be used; earlier records are "
            "kept\non idle cores and with more time, the same command tries them again"
        )
    if rest or not outcomes:
        print(rest or "nothing to tune")


def _tune_all(
    wanted: Sequence[Entry],
    targets: Sequence[tuple[str, str]],
    logs: Path,
    options: Options,
    display: Display,
    other: OldFlags,
    choice: ChoiceFlags,
    seconds: float,
) -> None:
    from te_select.tuning.options import LOCAL, open_measurer  # noqa: PLC0415 - kept off --help

    with contextlib.ExitStack() as stack:
        measurer = None
        if all(runner == LOCAL for _, runner in targets):
            jobs = 1 if other.again else None  # a record has one build at a time
            measurer = stack.enter_context(open_measurer(LOCAL, jobs, options.timeout))
            measurer.launch()  # its processes import TVM while this one does
        from te_select.tuning.agenda import Agenda, Job, take_over  # noqa: PLC0415 - imports tvm
        from te_select.tuning.session import FamilySession, Session  # noqa: PLC0415 - as above

        sessions = {}
        for of_where in {entry.of_where for entry in wanted} or {False}:
            session_of = FamilySession if of_where else Session
            for target, runner in targets:
                session = session_of(target, logs, runner, options, measurer)
                sessions[of_where, target] = stack.enter_context(session)
        stack.enter_context(display)
        todo = []
        for entry, (target, _) in itertools.product(wanted, targets):
            session = sessions[entry.of_where, target]
            name = f"{entry.name} on {session.folder.name}" if len(targets) > 1 else entry.name
            todo.append(Job(name, session, session.task(entry.workload, entry.ranges, entry.mask)))
        again = choice.minutes is not None
        agenda = Agenda(todo, every=choice.every, seconds=seconds, again=again)
        old = sessions.values() if other.again else ()
        found = [take_over(session, display.begin, display) for session in old]
        for outcome in itertools.chain(agenda.run(display.begin, display), *found):
            display.end(outcome)


def _document(
    outcomes: Sequence[Outcome], logs: Path, interrupted: bool, end: SelectError | None
) -> dict[str, Any]:
    busy = [each.record.busy_cores or 0.0 for each in outcomes if each.record and each.fresh]
    workloads = []
    for outcome in outcomes:
        knobs = [vars(knob) | {"gain": knob.gain} for knob in outcome.knobs]
        workloads.append(vars(outcome) | {"knobs": knobs})
        if record := outcome.record:
            more = {"workload": record.workload.to_json(), "default_won": record.default_won}
            told = {name: getattr(record, name) for name in (*OF_OUTCOMES, "name")}
            workloads[-1]["record"] = told | more
    return {
        "tuning_logs": logs,
        "interrupted": interrupted,
        "busy_cores": max(busy, default=0.0),
        "error": str(end) if end else None,
        "workloads": workloads,
    }
