"""``te-select logs``: list, best, export, import, prune."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from te_select.cli.console import (
    FAILED,
    JsonFlag,
    LogsOption,
    TargetOption,
    print_fields,
    print_json,
    print_line,
    print_table,
    tuning_logs,
)
from te_select.cli.flags import with_groups
from te_select.cli.paths import check_folder
from te_select.cli.workloads import WorkloadsFlags, gather
from te_select.operator.broadcast import count_of, printable

if TYPE_CHECKING:
    from te_select.records.log import Entry

Targets = Annotated[str, typer.Option(help="A glob: only these targets.")]
Only = Annotated[str, typer.Option(help="A glob: only records with these names.")]
Written = Annotated[
    Path | None, typer.Option("--tuning-logs", help="The folder to change; default: your own.")
]
Read = Annotated[
    Path | None,
    typer.Option("--tuning-logs", help="The folder to read; default: your own and the shipped."),
]
Copied = Annotated[
    Path | None,
    typer.Option("--tuning-logs", help="The folder to read; default: your own, else the shipped."),
]
Better = Annotated[
    bool, typer.Option("--better", help="Only records that are better than the default config.")
]
From = Annotated[Path, typer.Argument(help="A folder of logs.")]
To = Annotated[Path, typer.Argument(help="A folder of logs; made if it is missing.")]

logs_app = typer.Typer(
    help="Show and move the records that tuning has written.\n\n"
    "Example: te-select logs list --tuning-logs tuning_logs",
    rich_markup_mode=None,
)


@logs_app.command("list")
def list_command(
    logs: Read = None, target: Targets = "*", only: Only = "*", as_json: JsonFlag = False
) -> None:
    """List records, with their times and the machines they come from.

    Example: te-select logs list --tuning-logs tuning_logs --only "w4_*"
    """
    from te_select.records.doubt import misfit  # noqa: PLC0415 - imports tvm
    from te_select.records.manage import contents  # noqa: PLC0415 - imports tvm

    of_folder = {folder: list(contents(folder, target, only)) for folder in _folders(logs)}
    listed = [each for one in of_folder.values() for each in one]
    rows = {
        folder: [_row(each.target, entry) for each in one for entry in each.entries]
        for folder, one in of_folder.items()
    }
    complaints = [line for each in listed for line in each.complaints]
    complaints += [
        f"{each.target}/{entry.key} cannot be used: {problem}; tune it again"
        for each in listed
        for entry in each.entries
        if (problem := misfit(entry)) is not None
    ]
    if as_json:
        records = [{**row, "folder": folder} for folder, own in rows.items() for row in own]
        print_json({"records": records, "damaged": complaints})
    for folder, own in () if as_json else rows.items():
        print(f"{folder}: {count_of(len(own), 'record')}")
        if own:
            print_table(_HEADERS, [[_cell(key, row[key]) for key in _COLUMNS] for row in own])
    _report(complaints, as_json)


@logs_app.command("best")
@with_groups
def best_command(
    flags: WorkloadsFlags,
    target: TargetOption = "native",
    logs: LogsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show which record a workload would be compiled with, and why.

    Example: te-select logs best --cond 4,1,1,512 --then 4,12,512,512 --else "" --target native
    """
    wanted = gather(flags.given)
    check_folder("--tuning-logs", logs, "none")
    from te_select.backends import schedule_of  # noqa: PLC0415
    from te_select.backends.targets import resolve  # noqa: PLC0415
    from te_select.operator.access import access_pattern  # noqa: PLC0415
    from te_select.records.lookup import find  # noqa: PLC0415 - imports tvm

    resolved = resolve(target)
    default_config = schedule_of(resolved.kind).default_config
    document = []
    for each, level in itertools.product(wanted, resolved.levels):
        found = find(each, level, tuning_logs(logs))
        config = found.config or default_config(access_pattern(each), level.tvm)
        document.append(
            {
                "workload": str(each),
                "target": level.name,
                "origin": found.origin,
                "why": found.why,
                "config": vars(config),
            }
        )
    if as_json:
        print_json(document)
        return
    for fields in document:
        print_fields(fields)


@logs_app.command("export")
def export_command(
    to: To,
    logs: Copied = None,
    target: Targets = "*",
    only: Only = "*",
    better: Better = False,
    as_json: JsonFlag = False,
) -> None:
    """Copy records that are new or faster to another folder.

    Example: te-select logs export build/logs --only "w4_*"
    """
    _merge(_folders(logs)[0], to, target, only, as_json, better=better)


@logs_app.command("import")
def import_command(
    source: From,
    logs: Written = None,
    target: Targets = "*",
    only: Only = "*",
    as_json: JsonFlag = False,
) -> None:
    """Take over records from another folder that are new or faster.

    A record that cannot be used here, such as one of another TVM, is refused.

    Example: te-select logs import build/logs
    """
    check_folder("the source", str(source))
    _merge(source, logs or _own(), target, only, as_json)


@logs_app.command("prune")
def prune_command(logs: Written = None, target: Targets = "*", as_json: JsonFlag = False) -> None:
    """Drop records that no compilation uses, and damaged lines.

    Example: te-select logs prune --tuning-logs tuning_logs
    """
    if logs is not None:
        check_folder("--tuning-logs", str(logs))
    from te_select.records.manage import prune  # noqa: PLC0415 - imports tvm

    gone = prune(logs or _own(), target)
    if as_json:
        print_json({"dropped": gone})
    else:
        for line in gone or ["nothing to drop"]:
            print_line(line)


_HEADERS = ("target", "record", "time", "default", "gain", "trials", "busy", "spread", "machine")
_COLUMNS = (
    "target", "record", "microseconds", "default_microseconds", "gain", "trials", "busy_cores",
    "spread", "machine",
)  # fmt: skip


_SAID = ("workload", "trials", "failed", "machine", "command", "cond", "sizes")


def _row(target: str, entry: Entry) -> dict[str, Any]:
    said = entry.session
    default = said.get("default_seconds")
    return {
        "target": target,
        "record": entry.key,
        "microseconds": _microseconds(entry.seconds),
        "default_microseconds": None if default is None else _microseconds(default),
        "config": dict(entry.knobs),
        "gain": _gain(entry, default),
        "unsure": entry.unsure,
        "edited": entry.edited,
        "busy_cores": _rounded(said.get("busy_cores")),
        "spread": _rounded(said.get("spread")),
        "tvm": entry.tvm,
        **{name: said.get(name) for name in _SAID},
    }


def _gain(entry: Entry, default: float | None) -> str | None:
    """What tuning was worth, or why nobody knows."""
    if entry.edited:
        return "edited by hand"
    if entry.unsure:
        return "unsure"
    if default is None:
        return None
    return "default won" if entry.seconds == default else f"{default / entry.seconds:.2f}x"


def _cell(name: str, value: Any) -> str:
    if value is None or "microseconds" not in name:
        return "-" if value is None else str(value)
    return f"{value:.4g} us" if value < 1000 else f"{value / 1000:.4g} ms"  # noqa: PLR2004


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _microseconds(seconds: float) -> float:
    return float(f"{seconds * 1e6:.4g}")


def _own() -> Path:
    from te_select.records.folders import user_folder  # noqa: PLC0415 - only where it is needed

    return user_folder()


def _folders(logs: Path | None) -> list[Path]:
    if logs is not None:
        check_folder("--tuning-logs", str(logs))
        return [logs]
    from te_select.records.folders import default_folders  # noqa: PLC0415 - only where it is needed

    return default_folders()


def _merge(
    source: Path, destination: Path, target: str, only: str, as_json: bool, *, better: bool = False
) -> None:
    from te_select.records.manage import merge  # noqa: PLC0415 - imports tvm

    merged = merge(source, destination, target, only, better=better)
    if as_json:
        print_json(merged._asdict())
    else:
        print(
            f"{count_of(len(merged.taken), 'record')} copied to {destination}, {len(merged.kept)} "
            f"as fast there before, {len(merged.refused)} refused"
        )
    _report(merged.refused, as_json)


def _report(complaints: Any, as_json: bool) -> None:
    """Say on stderr what cannot be used, and exit with 1 if there is anything."""
    if not as_json:
        for line in complaints:
            print(f"te-select: {printable(line)}", file=sys.stderr)
    if complaints:
        raise typer.Exit(FAILED)
