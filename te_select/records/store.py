"""Writes logs: under a lock, all files of a target together or none.

The files belong together, since records name their workloads by line number. So the texts of all
go into one pending file first, which appears at once; whoever finds one, reads it in their place,
and the next writer finishes the work. A process that is killed at any moment leaves either the old
logs or the new ones.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from te_select.errors import ArtifactError, TuningError
from te_select.records import log
from te_select.records.log import Damage, Entry
from te_select.runtime import files

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
    except OSError as error:
        raise TuningError(
            f"{folder} cannot be written: {error.strerror or error}; expected a folder of yours"
        ) from error
    try:
        yield
    finally:
        lock.release()


def put(folder: Path, entries: Sequence[Entry]) -> None:
    """Put records into a target's logs, each in the place of those of its access pattern.

    Parameters
    ----------
    folder
        The folder of the target; made if it is missing.
    entries
        The records.

    Raises
    ------
    TuningError
        If it cannot be written, or holds files that are no logs.
    """
    new = {entry.key: entry for entry in entries}
    with locked(folder):
        found = log.read(folder)
        kept = {entry.key: entry for entry in _best(found)}
        _write(folder, [*{**kept, **new}.values()], found.damaged)


def keep(folder: Path, keys: Iterable[str]) -> int:
    """Keep the best record of these access patterns only, and set damaged lines aside.

    Returns
    -------
    int
        How many records have gone.
    """
    wanted = set(keys)
    with locked(folder):
        found = log.read(folder)
        kept = [entry for entry in _best(found) if entry.key in wanted]
        _write(folder, kept, found.damaged)
    return len(found.entries) - len(kept)


def _best(found: log.Log) -> list[Entry]:
    """The fastest record of each access pattern, in the order of the log."""
    keys = dict.fromkeys(entry.key for entry in found.entries)
    return [entry for entry in map(found.best, keys) if entry is not None]


def _write(folder: Path, entries: Sequence[Entry], damaged: Sequence[Damage]) -> None:
    if damaged:
        _set_aside(folder, damaged)
    workloads = {line: i for i, line in enumerate(dict.fromkeys(e.workload for e in entries))}
    records = [f"[{workloads[entry.workload]},{entry.body}]" for entry in entries]
    sessions = [json.dumps(dict(entry.session)) for entry in entries if entry.session]
    texts = {
        name: "".join(f"{line}\n" for line in lines)
        for name, lines in (
            (log.WORKLOADS, list(workloads)),
            (log.RECORDS, records),
            (log.SESSIONS, sessions),
        )
    }
    try:
        files.replace(folder / log.PENDING, json.dumps(texts).encode())
        for name, text in texts.items():
            files.replace(folder / name, text.encode())
        (folder / log.PENDING).unlink()
    except (ArtifactError, OSError) as error:
        raise TuningError(f"{folder} cannot be written: {error}") from error


def _set_aside(folder: Path, damaged: Sequence[Damage]) -> None:
    """Keep what is dropped: somebody may be able to mend it."""
    try:
        with (folder / ASIDE).open("a") as file:
            for each in damaged:
                file.write(f"{each.file} line {each.line}: {each.reason}\n{each.text}\n")
    except OSError as error:
        raise TuningError(f"{folder / ASIDE} cannot be written: {error.strerror}") from error
