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
        ``"default"``, or the record that the config comes from.
    why
        The reason for that, in one line; empty where the caller has chosen the config.
    func
        The scheduled function.
    short_rows
        Another one for rows that are not long, where a name decides how long they are.
    small
        Another one for calls that move few bytes, where names decide how many.
    """

    workload: Workload
    config: Any
    origin: str
    why: str
    func: tirx.PrimFunc
    short_rows: tirx.PrimFunc | None = None
    small: tirx.PrimFunc | None = None

    @property
    def functions(self) -> tuple[tirx.PrimFunc, ...]:
        """All that there are."""
        return tuple(f for f in (self.func, self.short_rows, self.small) if f is not None)


def symbol(i: int) -> str:
    """The name of the ``i``-th kernel inside a library."""
    return f"te_select_kernel_{i}"
