"""A workload with the schedule that was chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from te_select.operator.workload import Workload
from te_select.schedules.variant import Variant


@dataclass(frozen=True)
class Scheduled:
    """A workload with the schedule chosen for it.

    Parameters
    ----------
    workload
        The workload.
    config
        The schedule's knobs: a ``Config`` of the machine's schedule.
    origin
        ``"default"``, or the record from which the config comes.
    why
        The reason for that, in one line; empty if the caller has chosen the config.
    functions
        The scheduled function of each variant, in the order of the variants.
    """

    workload: Workload
    config: Any
    origin: str
    why: str
    functions: Mapping[Variant, tirx.PrimFunc]

    @property
    def func(self) -> tirx.PrimFunc:
        """The function for all calls that have no variant of their own."""
        return next(func for variant, func in self.functions.items() if variant.applies is None)


def symbol(i: int) -> str:
    """The name of the ``i``-th kernel inside a library."""
    return f"te_select_kernel_{i}"
