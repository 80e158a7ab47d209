"""``te-select cache``: info, clear."""

import datetime
from typing import Annotated

import typer

from te_select.cli.console import show
from te_select.cli.flags import Json, Verbs
from te_select.runtime.artifact import cache

_SHOWN = 20  # entries, unless all are wanted

All = Annotated[bool, typer.Option("--all", help=f"List all entries, not the newest {_SHOWN}.")]

cache_app = Verbs(
    help="The folder of kernels that were built when they were needed.\n\n"
    f"It is the user's cache folder, or {cache.FOLDER}. {cache.SIZE} limits it, in MiB; what was "
    "used least recently goes first."
)


@cache_app.verb("info")
def info_command(show_all: All = False, as_json: Json = False) -> None:
    """Show where the cache lies and what it holds, last used first.

    Example: te-select cache info --json
    """
    found = cache.entries()
    listed = found if show_all or as_json else found[:_SHOWN]
    document = {
        "folder": cache.folder(),
        "bytes": sum(entry.size for entry in found),
        "limit": cache.limit(),
        "problem": cache.problem(),
        "entries": [
            {"name": entry.path.name, "bytes": entry.size, "used": _time(entry.used)}
            for entry in listed
        ],
    }
    show(document, as_json)
    if len(listed) < len(found):
        print(f"{len(found) - len(listed)} more; --all lists them")


@cache_app.verb("clear")
def clear_command(as_json: Json = False) -> None:
    """Remove all entries; programs that run keep what they have loaded.

    Example: te-select cache clear
    """
    removed = cache.clear()
    size = sum(entry.size for entry in removed)
    show({"folder": cache.folder(), "removed": len(removed), "bytes": size}, as_json)


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
