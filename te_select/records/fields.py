"""Reads the lines of a tuning file, which people may edit, and checks their fields."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from te_select.errors import caught
from te_select.operator.broadcast import shown

Parsed = TypeVar("Parsed")
# What the line of a record says in any case.
OF_RECORDS = (
    "workload", "target", "config", "seconds", "default_seconds", "trials", "failed", "versions",
)  # fmt: skip
# What it says of the outcome.
OF_OUTCOMES = (
    "config", "seconds", "default_seconds", "trials", "failed", "busy_cores", "spread", "unsure",
    "accepted", "cond", "sizes",
)  # fmt: skip
_TEXTS = (
    "record", "machine", "command", "unsure", "accepted", "digest", "cond", "sizes", "failure",
    "effort", "fixed",
)  # fmt: skip
# What a file raises that people may have edited.
UNREADABLE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip


class Damage(NamedTuple):
    """A line that cannot be used: its number from 1, what is wrong, and its text."""

    line: int
    reason: str
    text: bytes


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


_Form = tuple[Callable[[Any], bool], str]

_SHARE: _Form = (
    lambda value: value is None or (type(value) is float and _is_number(value)),
    "a float of 0 or more, or null",
)
_TIME: _Form = (
    lambda value: type(value) is float and 1e-38 < value < 1e38,  # noqa: PLR2004 - as in TVM
    "a float between 1e-38 and 1e38",
)

# By fields that some code reads: whether a value has their form, and what to expect instead.
_FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(("trials", "failed"), (_is_number, "a number of 0 or more")),
    **dict.fromkeys(("busy_cores", "spread"), _SHARE),
    **dict.fromkeys(("default_seconds", "seconds"), _TIME),
    "config": (
        lambda value: (
            isinstance(value, dict) and all(type(knob) in (int, bool) for knob in value.values())
        ),
        "an object of ints and booleans",
    ),
    "target": (
        lambda value: isinstance(value, str) and isinstance(json.loads(value), dict),
        "the text of an object",
    ),
    **dict.fromkeys(_TEXTS, (lambda value: isinstance(value, str), "a string")),
}


def lines(data: bytes, parsed: Callable[[Any], Parsed]) -> tuple[list[Parsed], list[Damage]]:
    """What is made of the usable lines of a file, and the others."""
    found, damaged = [], []
    for number, raw in enumerate(data.split(b"\n"), 1):
        try:
            found += [parsed(json.loads(raw.decode()))] if raw.strip() else []
        except caught(*UNREADABLE) as error:
            reason = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
            damaged.append(Damage(number, " ".join(reason.split())[:200], raw))
    return found, damaged


def check(fields: Mapping[str, Any]) -> None:
    """Check those fields of an object that have a form in `_FORMS`; any of them may be missing.

    Raises a ValueError that says what is wrong, in one line.
    """
    for name in fields.keys() & _FORMS.keys():
        fits, expected = _FORMS[name]
        if not fits(fields[name]):
            raise ValueError(f"{name} is {shown(fields[name])}; expected {expected}")
