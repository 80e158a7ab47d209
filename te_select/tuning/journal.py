"""The journal of an unfinished session: every trial on disk the moment it is known.

A session that is stopped, however it is stopped, goes on from here. When a workload is done, its
record takes the journal's place.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.errors import TuningError

FOLDER = "trials"  # beside the records of the same target
_LONGEST_NAME = 200
ConfigKey = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Trial:
    """A measured config.

    Parameters
    ----------
    config
        The knobs.
    seconds
        Median seconds of a call; None where it failed.
    failure
        Why it failed, in one line.
    """

    config: Mapping[str, int | bool]
    seconds: float | None
    failure: str | None = None


def config_key(config: Mapping[str, Any]) -> ConfigKey:
    """What tells configs apart."""
    return tuple(sorted((name, int(value)) for name, value in config.items()))


class Journal:
    """The trials of one workload on one target.

    Parameters
    ----------
    folder
        The folder of the target's records.
    record
        The name of the record that is to come of it.
    versions
        Of what builds the kernels; trials of others do not count.
    """

    def __init__(self, folder: Path, record: str, versions: Mapping[str, str]) -> None:
        if len(record) > _LONGEST_NAME:
            record = f"{record[:_LONGEST_NAME]}-{hashlib.sha256(record.encode()).hexdigest()[:10]}"
        self.folder = folder / FOLDER
        self.path = self.folder / f"{record}.jsonl"
        self._versions = dict(versions)

    def read(self) -> dict[ConfigKey, Trial]:
        """The trials of earlier sessions; a line that was cut short is no trial."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TuningError(f"{self.path} cannot be read: {error.strerror or error}") from error
        trials = {}
        for line in data.splitlines():
            try:
                fields = json.loads(line)
                versions = fields.pop("versions")
                trial = Trial(**fields)
                key = config_key(trial.config)
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
            if versions == self._versions:
                trials[key] = trial
        return trials

    def append(self, trial: Trial) -> None:
        """Write a trial; when this returns, it is on the disk.

        Raises
        ------
        TuningError
            If it cannot be written.
        """
        line = json.dumps({**trial.__dict__, "versions": self._versions}).encode()
        try:
            with self.path.open("ab") as file:
                # A line that was cut short must not take this one with it.
                file.write(b"\n" + line + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be written: {error.strerror or error}"
            ) from error

    def remove(self) -> None:
        """Forget the trials; their outcome has been recorded."""
        self.path.unlink(missing_ok=True)
