"""Checks the fields of a tuning file's JSON, which people may edit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from te_select.operator.broadcast import shown

_TEXTS = (
    "record", "workload", "machine", "command", "unsure", "digest", "cond", "sizes",
    "workload_hash", "target", "tvm", "failure",
)  # fmt: skip
_FORMS: Mapping[tuple[str, ...], tuple[Callable[[Any], bool], str]] = {
    ("trials", "failed"): (
        lambda v: type(v) in (int, float) and 0 <= v < math.inf,
        "a number of 0 or more",
    ),
    ("busy_cores", "spread"): (
        lambda v: v is None or (type(v) is float and 0 <= v < math.inf),
        "a float of 0 or more, or null",
    ),
    ("default_seconds", "seconds"): (
        lambda v: type(v) is float and 0 < v < math.inf,
        "a positive float",
    ),
    ("config",): (
        lambda v: isinstance(v, dict) and all(type(knob) in (int, bool) for knob in v.values()),
        "an object of ints and booleans",
    ),
    _TEXTS: (lambda v: isinstance(v, str), "a string"),
}
"""By fields that some code reads: whether a value has their form, and what to expect instead."""


def parse(text: str | bytes) -> Any:
    """Parse JSON; NaN and Infinity are refused."""
    return json.loads(text, parse_constant=_refuse)


def check(fields: Mapping[str, Any]) -> None:
    """Check those fields of an object that have a form in `_FORMS`; any of them may be missing.

    Raises a ValueError that says what is wrong, in one line.
    """
    for names, (fits, expected) in _FORMS.items():
        for name in fields.keys() & names:
            if not fits(fields[name]):
                raise ValueError(f"{name} is {shown(fields[name])}; expected {expected}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
