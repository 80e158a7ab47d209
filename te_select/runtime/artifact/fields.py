"""Fields of JSON objects that others have written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def typed(data: Mapping[str, Any], key: str, kind: type) -> Any:
    """The field of an object; TypeError if it is of another type, or missing."""
    value = data.get(key)
    if not isinstance(value, kind):
        raise TypeError(f"{key} is {value!r}, expected a {kind.__name__}")
    return value


def check_strings(values: Iterable[Any], key: str) -> None:
    """Check that values are strings of one line; TypeError if not."""
    for value in values:
        if not isinstance(value, str) or not value.isprintable():
            raise TypeError(f"{key} holds {value!r}, expected strings of one line")
