"""The files of a target's logs at one moment, with the write that was cut short, if there was one.

A write replaces three files, one after another. So it first writes a pending file. It holds the new
texts of all three, and digests of the files that they replace. A reader that finds a pending file
uses it instead of the files, if each file is still the old one or already the new one. If somebody
has changed a file since by an edit, a copy or a checkout, the pending file is reported and ignored.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.errors import ArtifactError, TuningError, caught
from te_select.runtime.artifact import files

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
SESSIONS, PENDING = "sessions.json", ".pending.json"
FILES = (WORKLOADS, RECORDS, SESSIONS)
_TRIES, _PAUSE = 200, 0.01  # seconds; a write takes some ms, more if the disk is slow to sync


@dataclass(frozen=True)
class Damage:
    """A line that cannot be used.

    Parameters
    ----------
    file
        The name of the file.
    line
        Its number, from 1.
    reason
        What is wrong with it.
    text
        The line.
    """

    file: str
    line: int
    reason: str
    text: str


@dataclass(frozen=True)
class Snapshot:
    """The logs of a target at one moment.

    Parameters
    ----------
    data
        The valid bytes of each file; empty if the file is missing.
    digests
        Digests of the bytes on disk, which differ from ``data`` if a write was cut short.
    damage
        The pending file that is ignored, if there is one.
    """

    data: Mapping[str, bytes]
    digests: Mapping[str, str]
    damage: tuple[Damage, ...]


def take(folder: Path) -> Snapshot:
    """Read the files of a target at one moment, even while somebody writes them.

    Raises
    ------
    TuningError
        If a file cannot be read, or they change all the time.
    """
    for _ in range(_TRIES):
        before = stamps(folder)
        waiting = contents(folder / PENDING)
        data = {name: contents(folder / name) or b"" for name in FILES}
        if stamps(folder) == before:
            return _judged(data, waiting)
        time.sleep(_PAUSE)
    raise TuningError(f"{folder} cannot be read: its files change all the time; try again")


def stamps(folder: Path) -> tuple[object, ...]:
    """Values that change when the files change, found without reading them."""
    return tuple(_stamp(folder / name) for name in (PENDING, *FILES))


def pending(texts: Mapping[str, str], digests: Mapping[str, str]) -> bytes:
    """Make a pending file: the new texts of all files, and the digests of the old ones."""
    return json.dumps({"replaces": dict(digests), "texts": dict(texts)}).encode()


def _judged(data: Mapping[str, bytes], waiting: bytes | None) -> Snapshot:
    """Read a pending file, and decide whether it is valid."""
    digests = {name: _digest(held) for name, held in data.items()}
    if waiting is None:
        return Snapshot(data, digests, ())
    try:
        replaces, new = _parse(waiting)
    except caught(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        reason = "it is not what te-select writes"
    else:
        if all(digests[name] in (replaces[name], _digest(new[name])) for name in FILES):
            return Snapshot(new, digests, ())
        reason = "the logs are not those that it was to replace: they were changed since"
    text = waiting.decode(errors="backslashreplace")
    return Snapshot(data, digests, (Damage(PENDING, 1, reason, text),))


def _parse(waiting: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The digests and the new bytes of all files."""
    read = json.loads(waiting)
    return (
        {name: read["replaces"][name] for name in FILES},
        {name: read["texts"][name].encode() for name in FILES},
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def contents(path: Path) -> bytes | None:
    """The bytes of a file, or None if it is missing.

    Raises
    ------
    TuningError
        If it cannot be read, or is not a regular file (reading a pipe would wait).
    """
    try:
        return files.read(path, "a tuning log")
    except ArtifactError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise TuningError(str(error)) from error


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except caught(OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
