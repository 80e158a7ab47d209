"""A workload with the schedule that was chosen for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from te_select.workload import Workload


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
        ``"default"``.
    func
        The scheduled function.
    """

    workload: Workload
    config: Any
    origin: str
    func: tirx.PrimFunc


def symbol(i: int) -> str:
    """The name of the ``i``-th kernel inside a library."""
    return f"te_select_kernel_{i}"
