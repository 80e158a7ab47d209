"""Variants: the functions of one kernel, and which calls each is for."""

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
        What it is called, a part of its symbol; empty for the function of all other calls, which
        comes last.
    config
        The config to apply, a ``Config`` of the schedule.
    applies
        Given the sizes of the named dims and the flags of a call, both as TIR expressions by their
        names: whether the call is one of its calls. The first variant that applies is taken.
    """

    name: str
    config: Any
    applies: Condition | None = None
