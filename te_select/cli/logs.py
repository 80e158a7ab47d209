"""``te-select logs``: list, best, export, import, prune."""

import itertools
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from te_select.cli.console import FAILED, show
from te_select.cli.entries import OtherFlags, SuiteFlags, entries_of
from te_select.cli.flags import Json, Logs, RequireRecord, Target, Verbs, of_flag, parse_required
from te_select.cli.models import ModelFlags
from te_select.cli.workloads import WorkloadsFlags, source_of
from te_select.records import folders, required
from te_select.records.log import Record

Targets = Annotated[str, Option(help="A glob: only these targets.")]
Only = Annotated[str, Option(help="A glob: only records with these names.")]
Folder = Annotated[Path | None, Option("--tuning-logs", help="A folder; default: your own.")]
Better = Annotated[
    bool, Option("--better", help="Only records that are better than the default config.")
]
From = Annotated[Path, Argument(exists=True, file_okay=False, help="A folder of logs.")]
To = Annotated[Path, Argument(help="A folder of logs, made for the first record.")]

logs_app = Verbs(help="Show and move the records that tuning has written.")


@logs_app.verb("list")
def list_command(
    logs: Folder = None, target: Targets = "*", only: Only = "*", as_json: Json = False
) -> None:
    """List records, with their times and the machines they come from.

    Without a folder these are your own and the shipped ones.

    Example: te-select logs list --tuning-logs tuning_logs --only "w4_*"
    """
    from te_select.records.doubt import misfit  # noqa: PLC0415 - imports tvm
    from te_select.records.manage import contents  # noqa: PLC0415 - imports tvm

    records = []
    tables: dict[str, Any] = {}
    complaints: list[str] = []
    for folder in _folders(logs):
        table = tables[str(folder)] = []
        for name, entries, damage in contents(folder, target, only):
            complaints += damage
            for entry in entries:
                row = _row(name, entry)
                records.append({**row, "folder": folder})
                table.append({key: row[key] for key in _COLUMNS})
                if why := misfit(entry):
                    complaints.append(f"{name}/{entry.key} cannot be used: {why}; tune it again")
    listed = {"records": records} if as_json else tables
    damaged = {"damaged": complaints} if complaints or as_json else {}
    show({**listed, **damaged}, as_json)
    if complaints:
        raise Exit(FAILED)


@logs_app.verb("best")
def best_command(
    given: WorkloadsFlags,
    suite: SuiteFlags,
    model: ModelFlags,
    other: OtherFlags,
    target: Target = "native",
    logs: Logs = None,
    require_record: RequireRecord = None,
    as_json: Json = False,
) -> None:
    """Show which record a workload would be compiled with, and why.

    With --require-record it fails if there is none, and names the command that makes it.

    Example: te-select logs best --cond 4,1,1,512 --then 4,12,512,512 --else "" --target native
    """
    wanted = entries_of(given, suite, model, other)
    from te_select.backends import schedule_of  # noqa: PLC0415
    from te_select.backends.targets import resolve  # noqa: PLC0415
    from te_select.operator.access import access_pattern  # noqa: PLC0415
    from te_select.records.lookup import find  # noqa: PLC0415 - imports tvm

    resolved = resolve(target)
    workloads = [entry.workload for entry in wanted if not entry.of_where]
    needed = parse_required(require_record)
    required.check(needed, logs, None)
    with required.named_by(source_of(given, model.model, model.size)):
        required.require(needed, workloads, resolved.levels, logs)
    default_config = schedule_of(resolved.kind).default_config
    document = []
    for each, level in itertools.product(wanted, resolved.levels):
        workload = each.workload
        found = find(workload, level, logs, folders.FAMILY if each.of_where else "")
        config = found.config or default_config(access_pattern(workload), level.tvm)
        said = {
            "workload": each.name if each.of_where else str(workload),
            "target": level.name,
            "origin": found.origin,
            "why": found.why,
            "config": vars(config),
        }
        document.append(said)
    show(document, as_json)


@logs_app.verb("export")
def export_command(
    to: To,
    logs: Folder = None,
    target: Targets = "*",
    only: Only = "*",
    better: Better = False,
    as_json: Json = False,
) -> None:
    """Copy records that are new or faster to another folder.

    They are your own if no folder is given; the shipped ones if you have none.

    Example: te-select logs export build/logs --only "w4_*"
    """
    _merge(_folders(logs)[0], to, target, only, as_json, better=better)


@logs_app.verb("import")
def import_command(
    source: From,
    logs: Folder = None,
    target: Targets = "*",
    only: Only = "*",
    as_json: Json = False,
) -> None:
    """Take over records from another folder that are new or faster.

    A record that cannot be used here, such as one of another TVM, is refused.

    Example: te-select logs import build/logs
    """
    _merge(source, logs or folders.user_folder(), target, only, as_json)


@logs_app.verb("prune")
def prune_command(logs: Folder = None, target: Targets = "*", as_json: Json = False) -> None:
    """Drop records that no compilation uses, and damaged lines.

    Example: te-select logs prune --tuning-logs tuning_logs
    """
    from te_select.records.manage import prune  # noqa: PLC0415 - imports tvm

    place = _checked(logs) if logs else folders.user_folder()
    show({"dropped": prune(place, target) if place.is_dir() else []}, as_json)


_COLUMNS = ("target", "record", "shapes", "microseconds", "outcome", "machine")  # in 80 columns
_TOLD = ("unsure", "accepted", "edited", "busy_cores", "spread", "tvm")
_SAID = ("workload", "trials", "failed", "machine", "command", "cond", "sizes")


def _row(target: str, entry: Record) -> dict[str, Any]:
    return {
        "target": target,
        "record": entry.key,
        "shapes": str(entry.workload),
        "microseconds": 1e6 * entry.seconds,
        "default_microseconds": 1e6 * entry.default_seconds,
        "config": entry.config,
        "gain": None if entry.unsure or entry.edited else entry.gain,
        "outcome": _outcome(entry),
        **{name: getattr(entry, name) for name in _TOLD},
        **{name: entry.session.get(name) for name in _SAID},
    }


def _outcome(entry: Record) -> str:
    """What tuning was worth, or why nobody knows, in words."""
    if entry.unsure:
        return "unsure"
    if entry.edited:
        return "edited by hand"
    found = "default won" if entry.default_won else f"{entry.gain:.2f}x"
    return f"{found}, accepted" if entry.accepted else found


def _checked(logs: Path) -> Path:
    with of_flag("--tuning-logs"):
        folders.check(logs)
    return logs


def _folders(logs: Path | None) -> list[Path]:
    return [_checked(logs)] if logs else folders.default_folders()


def _merge(
    source: Path, destination: Path, target: str, only: str, as_json: bool, *, better: bool = False
) -> None:
    from te_select.records.manage import merge  # noqa: PLC0415 - imports tvm

    merged = merge(source, destination, target, only, better=better)
    show({"to": destination, **merged._asdict()}, as_json)
    if merged.refused:
        raise Exit(FAILED)
