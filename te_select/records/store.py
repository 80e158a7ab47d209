"""Writes records, under a lock: the files of a target one after another, each whole or not at all.

The records' own file is the last one. So a process that is killed at any moment leaves the old
records or the new ones. MetaSchedule's files are made of them, and the next write makes them anew.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from te_select.errors import ArtifactError, TuningError, caught
from te_select.records import doubt, folders, log, metaschedule
from te_select.records.fields import Damage
from te_select.records.folders import RECORDS, SESSIONS
from te_select.records.log import Record
from te_select.runtime.artifact import atomic

LOCK = ".lock"


@contextlib.contextmanager
def locked(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Make the folder if it is missing, and hold one of its locks.

    Raises
    ------
    TuningError
        If the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / name)
        lock.acquire()
    except caught(OSError, ValueError, NotImplementedError) as error:
        raise TuningError(
            f"{folder} cannot be written: {getattr(error, 'strerror', None) or error}; expected a "
            "folder of yours"
        ) from error
    try:
        yield
    finally:
        lock.release()


def put(
    folder: Path,
    entries: Sequence[Record],
    wanted: Callable[[Record, Record], bool] = doubt.may_replace,
) -> list[Record]:
    """Put records into a target's folder; each replaces those of its name (`Record.identity`).

    Parameters
    ----------
    folder
        The folder of the target; made if it is missing.
    entries
        The records, one for each name.
    wanted
        ``wanted(new, old)``: whether the new record may replace the old one.

    Returns
    -------
    list of Record
        The records that were put.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with _opened(folder) as found:
        old = {entry.identity: entry for entry in found.entries}
        new = [e for e in entries if e.identity not in old or wanted(e, old[e.identity])]
        _write(folder, [*(old | {e.identity: e for e in new}).values()], found.damaged)
    return new


def drop(folder: Path, useless: Sequence[Record]) -> None:
    """Drop records and all damaged lines; what others have put since the caller looked is kept.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with _opened(folder) as found:
        kept = [entry for entry in found.entries if entry not in useless]
        if len(kept) < len(found.entries) or found.damaged:
            _write(folder, kept)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[log.Log]:
    """What a folder holds, which nobody else writes meanwhile."""
    with locked(folder):
        yield log.parse(folder, folders.read(folder / SESSIONS))


def _write(folder: Path, entries: Sequence[Record], damaged: Sequence[Damage] = ()) -> None:
    """Replace the records by these; lines that are damaged stay, as somebody may repair them."""
    lines = [json.dumps(entry.session).encode() for entry in entries]
    text = b"".join(line + b"\n" for line in (*lines, *(each.text for each in damaged)))
    try:
        # MetaSchedule's records name lines of workloads: there are none while these may move.
        of_metaschedule = [(RECORDS, b""), *metaschedule.files(entries).items()]
        for name, data in (*of_metaschedule, (SESSIONS, text)):
            atomic.replace(folder / name, data)
    except caught(ArtifactError) as error:
        raise TuningError(f"{folder} cannot be written: {error}") from error
