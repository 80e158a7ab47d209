"""The journal of an unfinished session: every trial on disk the moment it is known.

However a session is stopped, the next one goes on from here. When a workload is done, its record
replaces the journal. The trials also tell what each knob was worth.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.errors import TuningError, warn
from te_select.records import fields, folders
from te_select.runtime.artifact import atomic

FOLDER, KEPT = "trials", "all_trials"  # beside the records of the same target
_LONGEST_NAME = 200  # bytes; file systems take 255. Longer names are cut, and end in a digest
_CUT = 120
ConfigKey = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Trial:
    """A measured config: its knobs, and median seconds of a call or why it failed, in one line."""

    config: Mapping[str, int | bool]
    seconds: float | None
    failure: str | None = None


@dataclass(frozen=True)
class Knob:
    """What a knob was worth; one whose best times are alike was not worth trying.

    Parameters
    ----------
    name
        The knob.
    default, value
        The default's value, and that of the fastest config that has another one.
    seconds_without, seconds
        The fastest config with the default's value, and with another value.
    """

    name: str
    default: int | bool
    value: int | bool
    seconds_without: float
    seconds: float

    @property
    def gain(self) -> float:
        """How many times as fast the best config with another value is."""
        return self.seconds_without / self.seconds


def knobs_of(trials: Sequence[Trial]) -> list[Knob]:
    """What the knobs of which more than one value ran were worth, the most first.

    The trials are those of one workload, the default's first.
    """
    timed = [(trial.seconds, trial.config) for trial in trials if trial.seconds is not None]
    found = []
    for name, default in trials[0].config.items() if trials else ():
        with_it = [pair for pair in timed if pair[1].get(name, default) != default]
        without = [pair[0] for pair in timed if pair not in with_it]
        if with_it and without:
            seconds, config = min(with_it, key=lambda pair: pair[0])
            found.append(Knob(name, default, config[name], min(without), seconds))
    return sorted(found, key=lambda knob: -knob.gain)


def config_key(config: Mapping[str, Any]) -> ConfigKey:
    """A key that differs for different configs."""
    return tuple(sorted((name, int(value)) for name, value in config.items()))


class Journal:
    """The trials of one workload on one target.

    Parameters
    ----------
    folder
        The folder of the target's records.
    record
        The name of the record that the session will write.
    versions
        The versions of the packages that build kernels. Trials of other versions are ignored.
    """

    def __init__(self, folder: Path, record: str, versions: Mapping[str, str]) -> None:
        if len(record) > _LONGEST_NAME:
            record = f"{record[:_CUT]}-{hashlib.sha256(record.encode()).hexdigest()}"
        self.folder = folder / FOLDER
        self.path = self.folder / f"{record}.jsonl"
        self._kept = folder / KEPT / self.path.name
        self._versions = dict(versions)
        self.own: set[ConfigKey] = set()  # configs that this process has measured

    def read(self) -> dict[ConfigKey, Trial]:
        """The trials of earlier sessions; the last of each config.

        Warns
        -----
        RuntimeWarning
            For every line that is not a trial, such as a line that was cut short.
        """
        return {config_key(trial.config): trial for trial in self._read(self.path)}

    def kept(self) -> list[Trial]:
        """The trials of sessions that are done, as far as they were kept; warns as `read`."""
        return list(self._read(self._kept))

    def append(self, trial: Trial) -> None:
        """Write a trial; when this returns, it is on the disk.

        Raises
        ------
        TuningError
            If it cannot be written.
        """
        self.own.add(config_key(trial.config))
        line = json.dumps({**vars(trial), "versions": self._versions}).encode()
        with self._explained():
            new = not self.path.exists()
            with open(self.path, "ab", opener=_not_a_link) as file:
                # If the last line was cut short, the new one must not be joined to it.
                file.write(b"\n" + line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if new:
                with contextlib.suppress(OSError):  # some systems cannot sync folders
                    atomic.sync_folder(self.folder)

    def close(self, *, keep: bool = False) -> None:
        """End the journal as the outcome was recorded; ``keep`` its trials, or forget them."""
        with self._explained():
            if keep and (data := folders.read(self.path)):
                self._kept.parent.mkdir(exist_ok=True)
                # A session that was killed here has left its trials in both files.
                lines = dict.fromkeys([*folders.read(self._kept).splitlines(), *data.splitlines()])
                atomic.replace(self._kept, b"".join(line + b"\n" for line in lines if line))
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> Iterator[Trial]:
        for number, line in enumerate(folders.read(path).splitlines(), 1):
            if not line:
                continue
            try:
                trial = dict(fields.parse(line))
                if trial.pop("versions") == self._versions:
                    told = {k: v for k, v in trial.items() if v is not None or k == "config"}
                    fields.check(told)
                    yield Trial(**trial)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                warn(f"{path} line {number} is left out: {error}")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be written: {error.strerror or error}"
            ) from error


def _not_a_link(path: str, flags: int) -> int:
    """Open a file; no link is followed, and no pipe is waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
