"""Reads the records of a target: plain JSON, line by line, so that a bad line costs only that line.

A line says all of a record: the workload, the target, the config, its time, and how it was found.
So no TVM object is made: a compilation, which reads records, should take only a tenth of a second.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from te_select.base import kinds
from te_select.errors import TuningError, suppress, warn
from te_select.operator.access import AccessPattern, access_pattern
from te_select.operator.workload import Workload
from te_select.records import fields, folders
from te_select.records.fields import Damage
from te_select.records.folders import SESSIONS

if TYPE_CHECKING:
    from te_select.backends.targets import ResolvedTarget

_DIGITS = 16


@dataclass(frozen=True)
class Record:
    """What tuning a workload has found: a line of a log.

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
    accepted
        Why the outcome is unsure, if the user has accepted that. Then compilations use the record.
    cond
        Which cond it was timed with; empty for the usual one, random with half of it true.
    sizes
        The sizes of named dims for which it is the best, ``batch=1:64``; empty for a representative
        size.
    target
        The TVM target as JSON text, keys sorted.
    tvm
        The TVM version by which it was found.
    session
        The whole line: these, and how it was found.
    edited
        Whether it was changed by hand since it was written.
    """

    config: Mapping[str, int | bool]
    seconds: float
    default_seconds: float
    trials: int
    failed: int
    name: str = field(compare=False)  # a folder may be moved
    workload: Workload
    busy_cores: float | None = None
    spread: float | None = None
    unsure: str = ""
    accepted: str = ""
    cond: str = ""
    sizes: str = ""
    target: str = ""
    tvm: str = ""
    session: Mapping[str, Any] = field(default_factory=dict, repr=False)
    edited: bool = False

    @functools.cached_property
    def pattern(self) -> AccessPattern:
        """The access pattern it was measured for."""
        return access_pattern(self.workload)

    @property
    def key(self) -> str:
        """The record's name."""
        return self.pattern.key

    @property
    def default_won(self) -> bool:
        """Whether no config was faster than the default, which is then what is recorded."""
        return self.seconds == self.default_seconds

    @property
    def gain(self) -> float:
        """Its speed-up over the default."""
        return self.default_seconds / self.seconds

    @property
    def sized_names(self) -> frozenset[str]:
        """The names of the dims for whose ranges of sizes it is; empty if it is for one size."""
        return frozenset(each.partition("=")[0] for each in self.sizes.split())

    @property
    def identity(self) -> tuple[str, frozenset[str]]:
        """What no other record of a log is for."""
        return self.key, self.sized_names

    @property
    def kind(self) -> str | None:
        """The kind of machine it was measured on; None if te_select knows no such kind."""
        found = kinds.of_tvm(str(json.loads(self.target).get("kind")))
        return found.name if found else None


@dataclass(frozen=True)
class Log:
    """The records of one target.

    Parameters
    ----------
    folder
        Where they lie.
    entries
        The usable records, in the order of their lines; of those of one name the last.
    damaged
        The lines that are not usable.
    """

    folder: Path
    entries: tuple[Record, ...]
    damaged: tuple[Damage, ...] = ()

    def complaints(self) -> list[str]:
        """One line for each damaged line."""
        return [
            f"{self.folder / SESSIONS} line {each.line} is left out: {each.reason}"
            for each in self.damaged
        ]

    def warn(self) -> None:
        """Warn of damaged lines: how many there are, and the first of them."""
        if complaints := self.complaints():
            first, *others = complaints
            more = f"; so are {len(others)} more" if others else ""
            warn(f"{first}{more} (te-select logs list)")


def make(workload: Workload, target: ResolvedTarget, found: Mapping[str, Any]) -> Record:
    """Make the record of a workload of int dims; ``found`` has its config, time and the rest."""
    session = {
        "record": access_pattern(workload).key,
        "workload": workload.to_json(),
        "target": json.dumps(json.loads(str(target.tvm)), sort_keys=True),
        **found,
    }
    line = json.loads(json.dumps(session | {"digest": _digest(session)}))
    return _record(folders.of_target(target.records), line)


def read(folder: Path) -> Log:
    """Read the records of a target, or return what was read before if the file has not changed.

    Parameters
    ----------
    folder
        The folder of the target; one without files is a log without records.

    Raises
    ------
    TuningError
        If the file cannot be read, or has lines of which none is usable.
    """
    stamp = None
    with suppress(OSError, ValueError):
        found = (folder / SESSIONS).stat()
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
    return _read(folder, stamp)


@functools.lru_cache(maxsize=64)
def _read(folder: Path, _stamp: object) -> Log:
    data = folders.read(folder / SESSIONS)
    entries, damaged = fields.lines(data, functools.partial(_record, folder.name))
    if damaged and not entries:
        raise TuningError(
            f"{folder / SESSIONS} holds no usable line (line {damaged[0].line}: "
            f"{damaged[0].reason}); expected what te-select tune writes"
        )
    last = {entry.identity: entry for entry in entries}
    return Log(folder, tuple(last.values()), tuple(damaged))


def _record(place: str, session: Any) -> Record:
    if not isinstance(session, dict):
        raise ValueError("expected an object")
    if isinstance(session.get("workload"), str):
        raise ValueError("it is of te-select 0.2; tune its workload again")
    if missing := [name for name in fields.OF_RECORDS if name not in session]:
        raise ValueError(f"it does not say {', '.join(missing)}; tune it again")
    fields.check(session)
    workload = Workload.from_json(session["workload"])
    if workload.dim_names:
        raise ValueError(f"its workload has the named dims {', '.join(workload.dim_names)}")
    rest = {name: value for name, value in session.items() if name != "digest"}
    edited = session.get("digest") != _digest(rest)
    return Record(
        name=f"{place}/{access_pattern(workload).key}",
        workload=workload,
        target=session["target"],
        tvm=session["versions"]["tvm"],
        session=session,
        edited=edited,
        **{name: session[name] for name in fields.OF_OUTCOMES if name in session},
    )


def _digest(session: Mapping[str, Any]) -> str:
    """What a line says of its other fields, so that a later change is seen."""
    return hashlib.sha256(json.dumps(session, sort_keys=True).encode()).hexdigest()[:_DIGITS]
