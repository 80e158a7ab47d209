"""Writes logs: under a lock, all files of a target together or none.

The files belong together, because records name their workloads by line number. So all texts first
go into one pending file, which appears whole (`te_select.records.snapshot`). If a write was cut
short, the next writer finishes it. A process that is killed at any moment leaves either the old
logs or the new ones.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from te_select.errors import ArtifactError, TuningError, caught
from te_select.records import log, snapshot
from te_select.records.entry import Entry
from te_select.records.snapshot import Damage, Snapshot
from te_select.runtime.artifact import atomic

LOCK, ASIDE = ".lock", "damaged.txt"


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
    entries: Sequence[Entry],
    wanted: Callable[[Entry, Entry], bool] = lambda new, old: True,
) -> list[Entry]:
    """Put records into a target's logs; each replaces those of its name (`Entry.name`).

    Parameters
    ----------
    folder
        The folder of the target; made if it is missing.
    entries
        The records, one for each access pattern.
    wanted
        ``wanted(new, old)``: whether the new record may replace the old one. It is asked about
        every old record of the access pattern.

    Returns
    -------
    list of Entry
        The records that were put.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with locked(folder):
        taken = snapshot.take(folder)
        found = log.parse(folder, taken)
        new = {
            entry.name: entry
            for entry in entries
            if all(wanted(entry, old) for old in found.entries if old.name == entry.name)
        }
        lines: dict[object, Entry] = {
            old.name if old.name in new else number: old for number, old in enumerate(found.entries)
        }
        _write(folder, taken, [*(lines | new).values()], found)
    return [*new.values()]


def drop(folder: Path, useless: Sequence[Entry]) -> list[Entry]:
    """Drop records, and of the rest keep only the fastest of each access pattern.

    Damaged lines are set aside. Records that others have put since the caller looked are kept.

    Parameters
    ----------
    folder
        The folder of the target.
    useless
        The records to drop.

    Returns
    -------
    list of Entry
        The records that were dropped.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with locked(folder):
        taken = snapshot.take(folder)
        found = log.parse(folder, taken)
        fastest: dict[object, int] = {}
        for i, entry in sorted(enumerate(found.entries), key=lambda each: each[1].seconds):
            if entry not in useless:
                fastest.setdefault(entry.name, i)
        kept = sorted(fastest.values())
        if len(kept) < len(found.entries) or found.damaged:
            _write(folder, taken, [found.entries[i] for i in kept], found)
    return [entry for i, entry in enumerate(found.entries) if i not in kept]


def _write(folder: Path, taken: Snapshot, entries: Sequence[Entry], found: log.Log) -> None:
    """Replace the logs by these records, and set aside the lines that are left out."""
    if left_out := (*found.damaged, *found.unused):
        _set_aside(folder, left_out)
    workloads = {line: i for i, line in enumerate(dict.fromkeys(e.workload for e in entries))}
    records = [f"[{workloads[entry.workload]},{entry.body}]" for entry in entries]
    sessions = dict.fromkeys(json.dumps(dict(e.session)) for e in entries if e.session)
    texts = {
        name: "".join(f"{line}\n" for line in lines)
        for name, lines in (
            (snapshot.WORKLOADS, list(workloads)),
            (snapshot.RECORDS, records),
            (snapshot.SESSIONS, list(sessions)),
        )
    }
    try:
        atomic.replace(folder / snapshot.PENDING, snapshot.pending(texts, taken.digests))
        for name, text in texts.items():
            atomic.replace(folder / name, text.encode())
        (folder / snapshot.PENDING).unlink()
    except caught(ArtifactError, OSError) as error:
        raise TuningError(f"{folder} cannot be written: {error}") from error


def _set_aside(folder: Path, lines: Sequence[Damage]) -> None:
    """Keep the lines that are left out: somebody may be able to repair them."""
    path = folder / ASIDE
    before = snapshot.contents(path) or b""
    there = set(before.split(b"\n"))
    new = [
        f"{each.file} line {each.line}: {each.reason}\n{each.text}\n".encode()
        for each in lines
        if each.text.encode() not in there  # it is if an earlier write was cut short
    ]
    try:
        atomic.replace(path, before + b"".join(new))
    except ArtifactError as error:
        raise TuningError(str(error)) from error
