"""The journal of an unfinished session: every trial on disk the moment it is known.

However a session is stopped, the next one goes on from here. When a workload is done, its record
replaces the journal.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.errors import TuningError, warn
from te_select.operator.broadcast import shown
from te_select.records import fields
from te_select.records.snapshot import contents
from te_select.runtime.artifact import atomic

FOLDER, KEPT = "trials", "all_trials"  # beside the records of the same target
_LONGEST_NAME = 200  # bytes; file systems take 255. Longer names are cut, and end in a digest
_CUT = 120
ConfigKey = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Trial:
    """A measured config.

    Parameters
    ----------
    config
        The knobs.
    seconds
        Median seconds of a call; None if it failed.
    failure
        Why it failed, in one line.
    """

    config: Mapping[str, int | bool]
    seconds: float | None
    failure: str | None = None


def config_key(config: Mapping[str, Any]) -> ConfigKey:
    """A key that differs for different configs."""
    return tuple(sorted((name, int(value)) for name, value in config.items()))


def _parse(line: bytes) -> tuple[Trial, Any]:
    """A trial, and the versions it was measured with."""
    read = fields.parse(line)
    if not isinstance(read, dict) or set(read) != {"config", "seconds", "failure", "versions"}:
        raise ValueError("expected an object of config, seconds, failure and versions")
    fields.check("config", read["config"], "config")
    if read["seconds"] is not None:
        fields.check("seconds", read["seconds"], "seconds")
    if not isinstance(read["failure"], str | None):
        raise ValueError(f"failure is {shown(read['failure'])}; expected a string or null")
    versions = read.pop("versions")
    return Trial(**read), versions


def _not_a_link(path: str, flags: int) -> int:
    """Open a file; no link is followed, and no pipe is waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


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
        """The trials of earlier sessions.

        Warns
        -----
        RuntimeWarning
            For every line that is not a trial, such as a line that was cut short.
        """
        return {config_key(trial.config): trial for trial in self._read(self.path)}

    def kept(self) -> list[Trial]:
        """The trials of sessions that are done, as far as they were kept; warns as `read`."""
        return list(self._read(self._kept))

    def _read(self, path: Path) -> Iterator[Trial]:
        for number, line in enumerate((contents(path) or b"").splitlines(), 1):
            if not line:
                continue
            try:
                trial, versions = _parse(line)
            except (ValueError, RecursionError) as error:
                warn(f"{path} line {number} is left out: {error}")
                continue
            if versions == self._versions:
                yield trial

    def append(self, trial: Trial) -> None:
        """Write a trial; when this returns, it is on the disk.

        Raises
        ------
        TuningError
            If it cannot be written.
        """
        self.own.add(config_key(trial.config))
        line = json.dumps({**trial.__dict__, "versions": self._versions}).encode()
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
        """End the journal, as the outcome has been recorded; keep the trials, or forget them.

        Parameters
        ----------
        keep
            Whether to add the trials to the file of this record in the folder `KEPT`.
        """
        with self._explained():
            data = contents(self.path) if keep else None
            if data:
                self._kept.parent.mkdir(exist_ok=True)
                # A session that was killed here has left its trials in both files.
                before = (contents(self._kept) or b"").splitlines()
                lines = dict.fromkeys([*before, *data.splitlines()])
                atomic.replace(self._kept, b"".join(line + b"\n" for line in lines if line))
            self.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be written: {error.strerror or error}"
            ) from error
