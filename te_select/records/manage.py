"""Works on whole folders of logs: list, import, export, prune."""

import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from te_select.errors import TuningError
from te_select.records import doubt, folders, log, writer
from te_select.records.log import Record


class Listed(NamedTuple):
    """The records of a target's folder, and a line for each damaged line or file."""

    target: str
    entries: Sequence[Record]
    complaints: Sequence[str]


class Merged(NamedTuple):
    """What became of records, by their names.

    Parameters
    ----------
    taken, accepted
        Those that were copied, and which of them are unsure and accepted.
    kept
        Those that the destination has already, as fast.
    refused, left_out
        Those that cannot be used here, and those that are no better, with the reason.
    """

    taken: list[str]
    accepted: list[str]
    kept: list[str]
    refused: list[str]
    left_out: list[str]


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
            yield Listed(folder.name, (), [str(error)])
            continue
        chosen = [entry for entry in found.entries if fnmatch.fnmatchcase(entry.key, only)]
        yield Listed(folder.name, chosen, found.complaints())


def merge(
    source: Path, destination: Path, target: str = "*", only: str = "*", *, better: bool = False
) -> Merged:
    """Copy records that are new or faster into another folder of logs.

    A record that cannot be used here is not copied.

    Parameters
    ----------
    source, destination
        Folders of logs; the destination is made if it is missing.
    target, only
        Globs over the names of targets and records.
    better
        Whether to leave out records that are unsure, accepted or not, or no better than the default
        config.

    Raises
    ------
    TuningError
        If the source is missing or holds no records, or the destination cannot be written.
    """
    merged = Merged([], [], [], [], [])
    for name, entries, complaints in contents(source, target, only):
        merged.refused.extend(complaints)
        usable = []
        for entry in entries:
            if better and (why := _no_better(entry)):
                merged.left_out.append(f"{name}/{entry.key}: {why}")
            elif problem := doubt.misfit(entry):
                merged.refused.append(f"{name}/{entry.key}: {problem}")
            else:
                usable.append(entry)
        put = writer.put(destination / name, usable, doubt.is_better) if usable else []
        for entry in usable:
            (merged.taken if entry in put else merged.kept).append(f"{name}/{entry.key}")
            if entry in put and entry.accepted:
                merged.accepted.append(f"{name}/{entry.key}: {entry.accepted}")
    if not any(merged) and not better:
        raise TuningError(
            f"{source} holds no record of target {target!r} and name {only!r}; expected "
            f"TARGET/{folders.SESSIONS} with records that match"
        )
    return merged


def _no_better(entry: Record) -> str:
    """Why a record is not surely better than the default config; empty if it is."""
    if entry.unsure:
        return f"unsure: {entry.unsure}"
    if entry.accepted:
        return f"unsure, and accepted: {entry.accepted}"
    return "" if entry.gain > 1 else "the default won"


def prune(logs: Path, target: str = "*") -> list[str]:
    """Drop records that no compilation uses: unsure and unusable ones.

    Damaged lines are dropped as well. ``target`` is a glob over the names of targets.

    Returns
    -------
    list of str
        One line for each record and each damaged line that was dropped, and for each file that is
        not a log and was left as it is.

    Raises
    ------
    TuningError
        If there is no such folder, or it cannot be written.
    """
    gone: list[str] = []
    for name, entries, complaints in contents(logs, target):
        gone += [each if entries else f"{each}; left as it is" for each in complaints]
        useless = []
        for entry in entries:
            if why := doubt.unusable(entry):
                useless.append(entry)
                gone.append(f"{name}/{entry.key}: {why}")
        if entries:
            writer.drop(logs / name, useless)
    return gone
