"""``te-select cache``: info, clear."""

import datetime

from te_select.base import cache
from te_select.cli.console import show
from te_select.cli.flags import Json, Verbs

cache_app = Verbs(
    help="The folder of kernels that were built when they were needed.\n\n"
    f"It is the user's cache folder, or {cache.FOLDER}. {cache.SIZE} limits it, in MiB; what was "
    "used least recently goes first."
)


@cache_app.verb("info")
def info_command(as_json: Json = False) -> None:
    """Show where the cache lies and what it holds, last used first.

    Example: te-select cache info --json
    """
    found = cache.entries()
    show(
        {
            "folder": cache.folder(),
            "bytes": sum(about.st_size for about in found.values()),
            "limit": cache.limit(),
            "problem": cache.problem(),
            "entries": [
                {"name": path.name, "bytes": about.st_size, "used": _time(about.st_mtime)}
                for path, about in found.items()
            ],
        },
        as_json,
    )


@cache_app.verb("clear")
def clear_command(as_json: Json = False) -> None:
    """Remove all entries; programs that run keep what they have loaded.

    Example: te-select cache clear
    """
    removed = cache.clear()
    size = sum(about.st_size for about in removed.values())
    show({"folder": cache.folder(), "removed": len(removed), "bytes": size}, as_json)


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
