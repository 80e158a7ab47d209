"""``te-select cache``: info, clear."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from te_select.cli.console import JsonFlag, print_fields, print_json, print_table
from te_select.runtime.artifact import cache

_SHOWN = 20  # entries, unless all are wanted

All = Annotated[bool, typer.Option("--all", help=f"List all entries, not the newest {_SHOWN}.")]

cache_app = typer.Typer(
    help="The folder of kernels that were built when they were needed.\n\n"
    f"It is the user's cache folder, or {cache.FOLDER}. {cache.SIZE} limits it, in MiB; what was "
    "used least recently goes first.\n\n"
    "Example: te-select cache info",
    rich_markup_mode=None,
)


@cache_app.command("info")
def info_command(show_all: All = False, as_json: JsonFlag = False) -> None:
    """Show where the cache lies and what it holds, last used first.

    Example: te-select cache info --json
    """
    found = cache.entries()
    size = sum(entry.size for entry in found)
    document = {
        "folder": str(cache.folder()),
        "bytes": size,
        "limit": cache.limit(),
        "problem": cache.problem(),
        "entries": [
            {"name": entry.path.name, "bytes": entry.size, "used": _time(entry.used)}
            for entry in found
        ],
    }
    if as_json:
        print_json(document)
        return
    print_fields(
        {
            "folder": document["folder"],
            "size": f"{size / (1 << 20):.1f} MiB of {cache.limit() >> 20} MiB",
            "entries": len(found),
            **({"problem": document["problem"]} if document["problem"] else {}),
        }
    )
    if not found:
        return
    shown = found if show_all else found[:_SHOWN]
    rows = [[e.path.name, f"{e.size / 1024:.0f}", _time(e.used)] for e in shown]
    print_table(("entry", "KiB", "last used"), rows)
    if len(shown) < len(found):
        print(f"{len(found) - len(shown)} more; --all lists them")


@cache_app.command("clear")
def clear_command(as_json: JsonFlag = False) -> None:
    """Remove all entries; programs that run keep what they have loaded.

    Example: te-select cache clear
    """
    removed = cache.clear()
    size = sum(entry.size for entry in removed)
    if as_json:
        print_json({"folder": str(cache.folder()), "removed": len(removed), "bytes": size})
    else:
        print(f"{cache.folder()}: {len(removed)} removed, {size / 1024:.0f} KiB")


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
