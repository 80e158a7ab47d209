"""Checks the fields of a tuning file's JSON, which people may edit.

Every function raises a ValueError that says what is wrong, in one line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from te_select.operator.broadcast import shown

_LARGEST = (1 << 63) - 1
_FORMS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "seconds": (lambda v: type(v) is float and 0 < v < math.inf, "a positive float"),
    "share": (
        lambda v: v is None or (type(v) is float and 0 <= v < math.inf),
        "a float of 0 or more, or null",
    ),
    "count": (lambda v: type(v) is int and 0 <= v <= _LARGEST, f"an int of 0 to {_LARGEST}"),
    "text": (lambda v: isinstance(v, str), "a string"),
    "config": (
        lambda v: isinstance(v, dict) and all(type(knob) in (int, bool) for knob in v.values()),
        "an object of ints and booleans",
    ),
}
"""By a field's form: whether a value has it, and what to expect instead."""


def parse(text: str | bytes) -> Any:
    """Parse JSON; NaN and Infinity are refused."""
    return json.loads(text, parse_constant=_refuse)


def check(name: str, value: Any, form: str) -> None:
    """Check a field.

    Parameters
    ----------
    name, value
        The field.
    form
        ``"seconds"``, ``"share"`` (also a number of cores), ``"count"`` (of trials, or of something
        else that fits a machine's int), ``"text"``, or ``"config"``: the knobs of any schedule.
    """
    fits, expected = _FORMS[form]
    if not fits(value):
        raise ValueError(f"{name} is {shown(value)}; expected {expected}")


def check_arguments(value: Any) -> None:
    """Check the operands of a record: TVM crashes on some malformed ones."""
    if not isinstance(value, list):
        raise ValueError(f"arguments are {shown(value)}; expected a list")
    for argument in value:
        match argument:
            case ["TENSOR", str(), list(shape)]:
                for extent in shape:
                    check(f"an extent of argument {shown(argument)}", extent, "count")
            case _:
                raise ValueError(
                    f"argument {shown(argument)} is malformed; expected [TENSOR, dtype, shape]"
                )


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
