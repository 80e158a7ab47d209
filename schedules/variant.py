"""Variants: the functions of one kernel, and the calls that each is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Expression: TypeAlias = Any  # of TIR; TVM has no one class for them
Condition: TypeAlias = Callable[[Mapping[str, Expression], Mapping[str, Expression]], Expression]


@dataclass(frozen=True)
class Variant:
    """One function of a kernel.

    Parameters
    ----------
    name
        Its name, a part of its symbol. It is empty for the last one, the function of all other
        calls.
    config
        The config to apply, a ``Config`` of the schedule.
    applies
        Takes the sizes of the named dims and the flags of a call, both as TIR expressions by name.
        Returns whether the variant is for this call. The first variant that applies is taken.
    leaf
        What walks the innermost run of elements, in the words of docs/schedules.md.
    """

    name: str
    config: Any
    applies: Condition | None = None
    leaf: str = ""
