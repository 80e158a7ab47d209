"""The record of a workload: what a session found, as Python has it and as the logs keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from te_select.operator.workload import Workload
from te_select.records.log import Entry


@dataclass(frozen=True)
class Record:
    """What tuning a workload has found.

    Parameters
    ----------
    config
        The knobs.
    seconds
        Its median seconds for a call.
    default_seconds
        Median seconds of the default config, measured in turns with it.
    trials, failed
        How many configs were measured, the default among them, and how many of them failed.
    name
        ``<target>/<record>``, as `Kernel.origin` has it.
    workload
        The workload that was measured, with int dims.
    busy_cores
        How many cores other programs used meanwhile, beyond those to spare; of several machines of
        a fleet, on the busiest. None in older records of fleets.
    spread
        How far the rounds of the last comparison lay apart: the middle half of them, as a share of
        the median. None in records that do not say.
    unsure
        Why the outcome cannot be trusted; empty if it can. Then `config` is the default's, no
        compilation uses the record, and the workload is tuned again next time.
    cond
        Which cond it was timed with; empty for the usual one, random with half of it true.
    sizes
        The sizes of named dims for which it is the best, ``batch=1:64``; empty for a representative
        size.
    """

    config: Mapping[str, int | bool]
    seconds: float
    default_seconds: float
    trials: int
    failed: int
    name: str
    workload: Workload
    busy_cores: float | None = None
    spread: float | None = None
    unsure: str = ""
    cond: str = ""
    sizes: str = ""

    @property
    def default_won(self) -> bool:
        """Whether no config was faster than the default, which is then what is recorded."""
        return self.seconds == self.default_seconds

    @property
    def gain(self) -> float:
        """Its speed-up over the default."""
        return self.default_seconds / self.seconds


_TEXTS = ("unsure", "cond", "sizes")
_NUMBERS = ("seconds", "default_seconds", "trials", "failed", "busy_cores", "spread")


def said(record: Record) -> dict[str, Any]:
    """What the logs keep of a record, beside its workload."""
    texts = {name: text for name in _TEXTS if (text := getattr(record, name))}
    return {name: getattr(record, name) for name in ("config", *_NUMBERS)} | texts


def recorded(entry: Entry, target: str) -> Record:
    """The record of an entry in the folder of a target."""
    kept = {n: entry.session[n] for n in ("config", *_NUMBERS, *_TEXTS) if n in entry.session}
    return Record(name=f"{target}/{entry.key}", workload=entry.workload, **kept)
