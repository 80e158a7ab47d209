"""Works on whole folders of logs: list, import, export, prune."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from te_select.errors import TuningError
from te_select.records import doubt, folders, log, metaschedule, store
from te_select.records.log import Entry


class Listed(NamedTuple):
    """The records of a target's folder, and a line for each damaged line or file."""

    target: str
    entries: tuple[Entry, ...]
    complaints: tuple[str, ...]


class Merged(NamedTuple):
    """The names of records that were copied, of those that were kept, and why others were not."""

    taken: tuple[str, ...]
    kept: tuple[str, ...]
    refused: tuple[str, ...]


def contents(logs: Path, target: str = "*", only: str = "*") -> Iterator[Listed]:
    """Read all records of a folder of logs, of damaged ones as well.

    ``target`` and ``only`` are globs over the names of targets and records. Raises TuningError if
    there is no such folder.
    """
    folders.check(logs)
    for folder in folders.of_targets(logs):
        if not fnmatch.fnmatchcase(folder.name, target):
            continue
        try:
            found = log.read(folder)
        except TuningError as error:
            yield Listed(folder.name, (), (str(error),))
            continue
        chosen = [entry for entry in found.entries if fnmatch.fnmatchcase(entry.key, only)]
        yield Listed(folder.name, tuple(chosen), tuple(found.complaints()))


def merge(
    source: Path, destination: Path, target: str = "*", only: str = "*", *, better: bool = False
) -> Merged:
    """Copy records that are new or faster into another folder of logs.

    MetaSchedule replays every record first. A record that does not fit its workload is not copied.

    Parameters
    ----------
    source, destination
        Folders of logs; the destination is made if it is missing.
    target, only
        Globs over the names of targets and records.
    better
        Whether to leave out records that are unsure, or no better than the default config.

    Raises
    ------
    TuningError
        If the source is missing or holds no records, or the destination cannot be written.
    """
    taken: list[str] = []
    kept: list[str] = []
    refused: list[str] = []
    for name, entries, complaints in contents(source, target, only):
        refused += complaints
        fastest: dict[object, Entry] = {}
        for entry in sorted(entries, key=lambda each: each.seconds):
            if better and not _beats_default(entry):
                continue
            if (problem := _problem(entry)) is not None:
                refused.append(f"{name}/{entry.key}: {problem}")
            else:
                fastest.setdefault(entry.name, entry)
        ordered = [entry for entry in entries if fastest.get(entry.name) is entry]
        put = store.put(destination / name, ordered, doubt.is_better) if ordered else []
        for entry in ordered:
            (taken if entry in put else kept).append(f"{name}/{entry.key}")
    if not taken and not kept and not refused and not better:
        raise TuningError(
            f"{source} holds no record of target {target!r} and name {only!r}; expected "
            f"TARGET/{folders.RECORDS} with records that match"
        )
    return Merged(tuple(taken), tuple(kept), tuple(refused))


def prune(logs: Path, target: str = "*") -> list[str]:
    """Drop records that no compilation uses: slower ones of a pattern, unsure and unusable ones.

    Damaged lines are moved to ``damaged.txt`` in their folder. ``target`` is a glob over the names
    of targets.

    Returns
    -------
    list of str
        One line for each record and each damaged line that was dropped, and for each file that is
        not a log.

    Raises
    ------
    TuningError
        If there is no such folder, or it cannot be written.
    """
    gone: list[str] = []
    for name, entries, complaints in contents(logs, target):
        gone += complaints
        told = [(e, f"it is unsure: {e.unsure}" if e.unsure else _problem(e)) for e in entries]
        useless = [entry for entry, why in told if why]
        gone += [f"{name}/{entry.key}: {why}" for entry, why in told if why]
        dropped = store.drop(logs / name, useless) if entries else []
        if slower := [entry for entry in dropped if entry not in useless]:
            gone.append(f"{name}: slower records: {len(slower)}")
    return gone


def _beats_default(entry: Entry) -> bool:
    """Whether a session has found a config that is faster than the default."""
    return not entry.unsure and entry.session.get("default_seconds", 0.0) > entry.seconds


def _problem(entry: Entry) -> str | None:
    """Why a record cannot be used here; None if it can."""
    return doubt.misfit(entry) or (metaschedule.problem(entry) if entry.body else None)
