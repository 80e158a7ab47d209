"""Works on whole folders of logs: list, import, export, prune."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from te_select.errors import TuningError
from te_select.records import log, metaschedule, snapshot, store
from te_select.records.entry import Entry
from te_select.records.fit import misfit


@dataclass(frozen=True)
class Listed:
    """A target's logs, or why they cannot be read.

    Parameters
    ----------
    target
        The name of the folder.
    entries
        Its records.
    complaints
        One line for each damaged line or file.
    """

    target: str
    entries: tuple[Entry, ...]
    complaints: tuple[str, ...]


def contents(logs: Path, target: str = "*", only: str = "*") -> Iterator[Listed]:
    """Read all logs of a folder, damaged ones too.

    Parameters
    ----------
    logs
        The folder.
    target, only
        Globs over the names of targets and records.

    Yields
    ------
    Listed
        Target by target.

    Raises
    ------
    TuningError
        If there is no such folder.
    """
    log.check_folder(logs)
    for folder in log.target_folders(logs):
        if not fnmatch.fnmatchcase(folder.name, target):
            continue
        try:
            found = log.read(folder)
        except TuningError as error:
            yield Listed(folder.name, (), (str(error),))
            continue
        chosen = [entry for entry in found.entries if fnmatch.fnmatchcase(entry.key, only)]
        yield Listed(folder.name, tuple(chosen), tuple(found.complaints()))


@dataclass(frozen=True)
class Merged:
    """What became of the records of another folder.

    Parameters
    ----------
    taken, kept
        Names of the records that were copied, and of the faster ones that were kept.
    refused
        The reason for every record or line that cannot be used.
    """

    taken: tuple[str, ...]
    kept: tuple[str, ...]
    refused: tuple[str, ...]


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

    Returns
    -------
    Merged
        What became of each record.

    Raises
    ------
    TuningError
        If the source is missing or holds no records, or the destination cannot be written.
    """
    taken: list[str] = []
    kept: list[str] = []
    refused: list[str] = []
    for listed in contents(source, target, only):
        refused += listed.complaints
        fastest: dict[object, Entry] = {}
        for entry in listed.entries:
            if better and not _beats_default(entry):
                continue
            if (problem := _problem(entry)) is not None:
                refused.append(f"{listed.target}/{entry.key}: {problem}")
            elif entry.name not in fastest or entry.seconds < fastest[entry.name].seconds:
                fastest[entry.name] = entry
        if fastest:
            put = store.put(destination / listed.target, [*fastest.values()], _is_better)
            taken += [f"{listed.target}/{entry.key}" for entry in put]
            kept += [f"{listed.target}/{e.key}" for e in fastest.values() if e not in put]
    if not taken and not kept and not refused and not better:
        raise TuningError(
            f"{source} holds no record of target {target!r} and name {only!r}; expected "
            f"TARGET/{snapshot.RECORDS} with records that match"
        )
    return Merged(tuple(taken), tuple(kept), tuple(refused))


def prune(logs: Path, target: str = "*") -> list[str]:
    """Drop records that no compilation uses: slower ones of a pattern, unsure and unusable ones.

    Damaged lines are moved to ``damaged.txt`` in their folder.

    Parameters
    ----------
    logs
        The folder.
    target
        A glob over the names of targets.

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
    for listed in contents(logs, target):
        gone += listed.complaints
        problems = [
            (entry, f"it is unsure: {entry.unsure}" if entry.unsure else _problem(entry))
            for entry in listed.entries
        ]
        useless = [entry for entry, problem in problems if problem is not None]
        gone += [f"{listed.target}/{entry.key}: {why}" for entry, why in problems if why]
        if not listed.entries:
            continue
        dropped = store.drop(logs / listed.target, useless)
        if slower := [entry for entry in dropped if entry not in useless]:
            gone.append(f"{listed.target}: {len(slower)} slower records")
    return gone


def _is_better(new: Entry, old: Entry) -> bool:
    """Whether a record may replace another: it is faster, or the other cannot be used."""
    if new.tvm != old.tvm:
        return True
    if bool(new.unsure) != bool(old.unsure):
        return not new.unsure
    return new.seconds < old.seconds


def _beats_default(entry: Entry) -> bool:
    """Whether a session has found a config that is faster than the default."""
    return not entry.unsure and entry.session.get("default_seconds", 0.0) > entry.seconds


def _problem(entry: Entry) -> str | None:
    """Why a record cannot be used here; None if it can."""
    return misfit(entry) or metaschedule.problem(entry)
