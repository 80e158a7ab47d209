"""Checks the fields of a tuning file's JSON, which people may edit.

Every function raises a ValueError that says what is wrong, in one line.
"""

from __future__ import annotations

import json
import math
from typing import Any

from te_select.operator.broadcast import shown

_LARGEST = (1 << 63) - 1


def parse(text: str | bytes) -> Any:
    """Parse JSON; NaN and Infinity are refused."""
    return json.loads(text, parse_constant=_refuse)


def check_seconds(name: str, value: Any) -> None:
    """Check a time."""
    if type(value) is not float or not 0 < value < math.inf:
        raise ValueError(f"{name} is {shown(value)}; expected a positive float")


def check_share(name: str, value: Any) -> None:
    """Check a share, or a number of cores."""
    if value is not None and (type(value) is not float or not 0 <= value < math.inf):
        raise ValueError(f"{name} is {shown(value)}; expected a float of 0 or more, or null")


def check_count(name: str, value: Any) -> None:
    """Check a number of trials, or another count that fits a machine's int."""
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is {shown(value)}; expected an int of 0 to {_LARGEST}")


def check_text(name: str, value: Any) -> None:
    """Check a string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {shown(value)}; expected a string")


def check_config(value: Any) -> None:
    """Check knobs and their values, of any schedule."""
    if not isinstance(value, dict) or not all(type(knob) in (int, bool) for knob in value.values()):
        raise ValueError(f"config is {shown(value)}; expected an object of ints and booleans")


def check_arguments(value: Any) -> None:
    """Check the operands of a record: TVM crashes on some malformed ones."""
    if not isinstance(value, list):
        raise ValueError(f"arguments are {shown(value)}; expected a list")
    for argument in value:
        match argument:
            case ["TENSOR", str(), list(shape)]:
                for extent in shape:
                    check_count(f"an extent of argument {shown(argument)}", extent)
            case _:
                raise ValueError(
                    f"argument {shown(argument)} is malformed; expected [TENSOR, dtype, shape]"
                )


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
