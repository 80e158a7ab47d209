"""Writes records, under a lock: the files of a target one after another, each whole or not at all.

A record's workload and session are on the disk before the record, and those of the records that it
replaces go with the next write. So a process that is killed at any moment leaves the old records or
the new ones, and lines of workloads or sessions that no record names, which are harmless.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from te_select.errors import ArtifactError, TuningError, caught
from te_select.records import doubt, folders, log
from te_select.records.folders import FILES, RECORDS, SESSIONS, WORKLOADS
from te_select.records.log import Damage, Entry
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
    wanted: Callable[[Entry, Entry], bool] = doubt.may_replace,
) -> list[Entry]:
    """Put records into a target's folder; each replaces those of its name (`Entry.name`).

    Parameters
    ----------
    folder
        The folder of the target; made if it is missing.
    entries
        The records, one for each name.
    wanted
        ``wanted(new, old)``: whether the new record may replace the old one. It is asked about
        every old record of the name.

    Returns
    -------
    list of Entry
        The records that were put.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with _opened(folder) as found:
        new = {
            entry.name: entry
            for entry in entries
            if all(wanted(entry, old) for old in found.entries if old.name == entry.name)
        }
        lines: dict[object, Entry] = {
            old.name if old.name in new else number: old for number, old in enumerate(found.entries)
        }
        _write(folder, found, [*(lines | new).values()])
    return [*new.values()]


def drop(folder: Path, useless: Sequence[Entry]) -> list[Entry]:
    """Drop records, and of the rest keep only the fastest of each name.

    Damaged lines are set aside. Records that others have put since the caller looked are kept.

    Returns
    -------
    list of Entry
        The records that were dropped.

    Raises
    ------
    TuningError
        If the folder cannot be written, or holds files that are not logs.
    """
    with _opened(folder) as found:
        fastest: dict[object, Entry] = {}
        for entry in sorted(found.entries, key=lambda each: each.seconds):
            if entry not in useless:
                fastest.setdefault(entry.name, entry)
        kept = [entry for entry in found.entries if fastest.get(entry.name) is entry]
        if len(kept) < len(found.entries) or found.damaged:
            _write(folder, found, kept)
    return [entry for entry in found.entries if not any(entry is each for each in kept)]


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[log.Log]:
    """What a folder holds, which nobody else writes meanwhile."""
    with locked(folder):
        yield log.parse(folder, {name: folders.read(folder / name) for name in FILES})


def _write(folder: Path, found: log.Log, entries: Sequence[Entry]) -> None:
    """Replace the records by these, and set aside the lines that are damaged."""
    replayed = [entry for entry in entries if entry.body]
    workloads = list(dict.fromkeys((*found.workloads, *(entry.workload for entry in replayed))))
    number = {line: i for i, line in enumerate(workloads)}
    # Until the records are replaced, the old ones need their sessions.
    told = [entry for entry in found.entries if entry.body] + [*entries]
    sessions = dict.fromkeys(json.dumps(dict(entry.session)) for entry in told if entry.session)
    lines = {
        WORKLOADS: workloads,
        SESSIONS: [*sessions],
        RECORDS: [f"[{number[entry.workload]},{entry.body}]" for entry in replayed],
    }
    try:
        if found.damaged:
            _set_aside(folder, found.damaged)
        for name in FILES:
            atomic.replace(folder / name, "".join(f"{line}\n" for line in lines[name]).encode())
    except caught(ArtifactError) as error:
        raise TuningError(f"{folder} cannot be written: {error}") from error


def _set_aside(folder: Path, lines: Sequence[Damage]) -> None:
    """Keep the lines that are left out: somebody may be able to repair them."""
    path = folder / ASIDE
    before = folders.read(path)
    there = set(before.split(b"\n"))
    new = [
        f"{each.file} line {each.line}: {each.reason}\n{each.text}\n".encode()
        for each in lines
        if each.text.encode() not in there  # it is if an earlier write was cut short
    ]
    atomic.replace(path, before + b"".join(new))
