"""What a kernel tells the host half that decides how its calls run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from te_select.operator.access import AccessPattern


@dataclass(frozen=True)
class Decisions:
    """Knobs that the host half follows at each call, and a fact; -1 leaves a knob to the machine.

    Parameters
    ----------
    bytes_per_thread
        Bytes read and written for each thread; 0 for a kernel without a parallel loop.
    stream_from
        The kernel stores past the cache if the output has at least this many bytes; 0 for never.
    skip
        Whether to look at cond first, and not to read what is not selected.
    backwards
        Whether to walk backwards if out lies just ahead of an input.
    reads_cond_once
        Whether every element of cond is read only once: cond moves along every loop.
    """

    bytes_per_thread: int = 0
    stream_from: int = 0
    skip: int = 0
    backwards: int = 0
    reads_cond_once: bool = True

    @classmethod
    def of(cls, pattern: AccessPattern, config: Mapping[str, Any]) -> Decisions:
        """Those of a kernel, by its access pattern and its config as a manifest has it."""
        reads_cond_once = all("c" in loop.movers for loop in pattern.loops)
        told: Mapping[str, Any] = {**config, "reads_cond_once": reads_cond_once}
        knobs: dict[str, Any] = {each.name: int(told.get(each.name, 0)) for each in fields(cls)}
        return cls(**knobs)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The same as ``decide.h`` has them, in that order."""
        return tuple(map(int, astuple(self)))
