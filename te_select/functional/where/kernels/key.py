"""The names of the family's entries in the cache."""

from __future__ import annotations

from te_select.functional import build_key

WHOLE = "all"
_PREFIX = "where"


def entry(part: str) -> str:
    """The file name of a part that is built here, for this CPU."""
    return f"{_PREFIX}-{part}-{build_key.digest()}.so"


def holds(name: str, part: str) -> bool:
    """Whether an entry of whatever digest holds a part."""
    return name.startswith((f"{_PREFIX}-{part}-", f"{_PREFIX}-{WHOLE}-"))
