"""The record of a workload: what a session found, as Python has it and as the logs keep it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.records import log


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


_TEXTS = ("unsure", "cond", "sizes")
_KEPT = ("default_seconds", "trials", "failed", "busy_cores", "spread", *_TEXTS)
"""The fields that a session keeps, but for empty texts; older ones may lack the last five."""


def said(record: Record) -> dict[str, Any]:
    """What a record's session keeps of it."""
    told = {"workload": str(record.workload), "config": dict(record.config)}
    kept = {name: getattr(record, name) for name in _KEPT}
    return told | {name: value for name, value in kept.items() if value or name not in _TEXTS}


def recorded(folder: Path, sized: Workload, tvm: str, names: Collection[str] = ()) -> Record | None:
    """The record of a workload in a target's folder, if that TVM wrote it.

    Parameters
    ----------
    folder
        The folder of the target.
    sized
        The workload, of int dims.
    tvm
        The version of TVM.
    names
        The names of the dims that have ranges of sizes.

    Returns
    -------
    Record or None
        None if there is no record, or the logs do not say how it was found.

    Warns
    -----
    RuntimeWarning
        For every damaged line, which is left out.
    """
    found = log.read(folder)
    found.warn()
    key = access_pattern(sized).key
    name = key, frozenset(names)
    own = [entry for entry in found.entries if entry.name == name and entry.tvm == tvm]
    best = min(own, key=lambda entry: (bool(entry.unsure), entry.seconds), default=None)
    if best is None or not {"config", *_KEPT[:3]} <= set(best.session):
        return None
    kept = {name: best.session[name] for name in _KEPT if name in best.session}
    config = dict(best.session["config"])
    return Record(config, best.seconds, name=f"{folder.name}/{key}", workload=sized, **kept)
