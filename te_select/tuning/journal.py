"""The journal of sessions: every trial on disk the moment it is known.

However a session is stopped, the next one goes on from here, until a line says that it is done. The
trials also tell what each knob was worth.
"""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from te_select.base import atomic
from te_select.errors import TuningError, warn
from te_select.records import fields, folders

FOLDER = "trials"  # beside the records of the same target
_LONGEST_NAME = 200  # bytes; file systems take 255. Longer names are cut, and end in a digest
_CUT = 120
ConfigKey = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Trial:
    """A measured config: its knobs, and median seconds of a call or why it failed, in one line."""

    config: Mapping[str, int | bool]
    seconds: float | None
    failure: str | None = None


DONE = Trial({}, None)  # ends a session


@dataclass(frozen=True)
class Knob:
    """Sensitivity of a knob: the best times with the default's value, and with another.

    Parameters
    ----------
    name
        The knob.
    default, value
        The default's value, and that of the fastest config that has another one.
    seconds_without, seconds
        The fastest config with the default's value, and with another value.
    tried
        The values that were tried, each with the seconds of its fastest config; None if all failed.
    """

    name: str
    default: int | bool
    value: int | bool
    seconds_without: float
    seconds: float
    tried: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """Speed-up of the best config with another value."""
        return self.seconds_without / self.seconds


def knobs_of(trials: Sequence[Trial]) -> list[Knob]:
    """What the knobs of which more than one value ran were worth, the most first.

    The trials are those of one workload, the default's first.
    """
    found = []
    for name, default in trials[0].config.items() if trials else ():
        best: dict[int | bool, float] = {}
        for trial in trials:
            value = trial.config.get(name, default)
            best[value] = min(best.get(value, math.inf), trial.seconds or math.inf)
        tried = {
            json.dumps(value): each if each < math.inf else None for value, each in best.items()
        }
        without = best.pop(default)
        value = min(best, key=best.__getitem__, default=default)
        if max(without, best.get(value, math.inf)) < math.inf:
            found.append(Knob(name, default, value, without, best[value], tried))
    return sorted(found, key=lambda knob: -knob.gain)


def config_key(config: Mapping[str, Any]) -> ConfigKey:
    """A key that differs for different configs."""
    return tuple(sorted((name, int(value)) for name, value in config.items()))


class Journal:
    """The trials of one workload on one target, session after session.

    Parameters
    ----------
    folder
        The folder of the target's records.
    record
        The name of the record that the session will write.
    versions
        What the trials depend on besides: the versions of the packages that build kernels, and the
        conditions of the timing. Lines of others are passed over.
    """

    def __init__(self, folder: Path, record: str, versions: Mapping[str, str]) -> None:
        if len(record) > _LONGEST_NAME:
            record = f"{record[:_CUT]}-{hashlib.sha256(record.encode()).hexdigest()}"
        self.folder = folder / FOLDER
        self.path = self.folder / f"{record}.jsonl"
        self._versions = versions
        self.own: set[ConfigKey] = set()  # configs that this process has measured
        self.forgotten = 0  # trials of an earlier session that are of no use any more

    def read(self) -> dict[ConfigKey, Trial]:
        """The trials of the session that is not done; the last of each config.

        Warns
        -----
        RuntimeWarning
            For every line that is not a trial, such as a line that was cut short.
        """
        return {config_key(trial.config): trial for trial in self._sessions()[-1]}

    def of_last_session(self) -> list[Trial]:
        """The trials of the last session that is done; warns as `read`."""
        sessions = self._sessions()
        return sessions[-2] if len(sessions) > 1 else []

    def append(self, trial: Trial) -> None:
        """Write a trial; when this returns, it is on the disk.

        Raises
        ------
        TuningError
            If it cannot be written.
        """
        self.own.add(config_key(trial.config))
        line = json.dumps({**vars(trial), "versions": self._versions}).encode()
        try:
            new = not self.path.exists()
            with open(self.path, "ab", opener=_not_a_link) as file:
                # If the last line was cut short, the new one must not be joined to it.
                file.write(b"\n" + line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if new:
                with contextlib.suppress(OSError):  # some systems cannot sync folders
                    atomic.sync_folder(self.folder)
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be written: {error.strerror or error}"
            ) from error

    def close(self) -> None:
        """End a session: the outcome was recorded, and the next one begins anew."""
        self.append(DONE)

    def _sessions(self) -> list[list[Trial]]:
        """The trials of each session; the last one is not done."""
        found: list[list[Trial]] = [[]]
        lines, damaged = fields.lines(folders.read(self.path), self._parsed)
        for trial in lines:
            if trial == DONE:
                found.append([])
            elif trial:
                found[-1].append(trial)
        for each in damaged:
            warn(f"{self.path} line {each.line} is left out: {each.reason}")
        return found

    def _parsed(self, said: dict[str, Any]) -> Trial | None:
        """A line's trial, or `DONE`; None if it is of other versions."""
        if said.pop("versions") != self._versions:
            return None
        fields.check({k: v for k, v in said.items() if v is not None or k == "config"})
        return Trial(**said)


def _not_a_link(path: str, flags: int) -> int:
    """Open a file; no link is followed, and no pipe is waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
