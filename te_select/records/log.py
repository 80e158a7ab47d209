"""Reads the logs of a target: plain JSON, line by line, so that a bad line costs only that line.

`te_select.compile` needs the access pattern and every knob. Both are annotations of a record's
trace. No TVM object is made, because a compilation should take only a tenth of a second.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from te_select.errors import TuningError, caught, warn
from te_select.operator.broadcast import shown
from te_select.records import snapshot, workload_line
from te_select.records.entry import Entry, Session, read_record, read_session
from te_select.records.snapshot import (
    PENDING,
    RECORDS,
    SESSIONS,
    WORKLOADS,
    Damage,
    Snapshot,
)

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_MOST_WARNINGS = 5  # for one log; one deleted line may make hundreds of records unusable
_UNREADABLE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Log:
    """The logs of one target.

    Parameters
    ----------
    folder
        Where they lie.
    entries
        The usable records, in the order of their lines. One workload may have several.
    damaged
        The lines that are not usable.
    unused
        Workloads and sessions that belong to no usable record. They are not damaged, but the next
        write leaves them out of the files.
    """

    folder: Path
    entries: tuple[Entry, ...]
    damaged: tuple[Damage, ...]
    unused: tuple[Damage, ...]

    def best(self, key: str) -> Entry | None:
        """The fastest record of an access pattern."""
        found = [entry for entry in self.entries if entry.key == key]
        return min(found, key=lambda entry: entry.seconds, default=None)

    def complaints(self) -> list[str]:
        """One line for each damaged line."""
        return [
            f"{self.folder / each.file} line {each.line} is left out: {each.reason}"
            for each in self.damaged
        ]

    def warn(self) -> None:
        """Warn of each damaged line, or of the first few if there are many.

        Warns
        -----
        RuntimeWarning
            With what is wrong.
        """
        complaints = self.complaints()
        said = complaints[:_MOST_WARNINGS]
        if more := len(complaints) - len(said):
            said.append(
                f"{self.folder}: {more} more lines are left out; te-select logs list names them"
            )
        for complaint in said:
            warn(complaint)


def folder_name(target: str) -> str:
    """The folder of a target's logs: the target's name in records, or a hash if that is JSON."""
    if _PLAIN_NAME.fullmatch(target):
        return target
    return f"target-{hashlib.sha256(target.encode()).hexdigest()[:10]}"


def target_folders(logs: Path) -> list[Path]:
    """The folders in ``logs`` that hold records, sorted.

    Raises
    ------
    TuningError
        If there is no such folder, or it cannot be read.
    """
    try:
        files = [*logs.glob(f"*/{RECORDS}"), *logs.glob(f"*/{PENDING}")]
        return sorted({path.parent for path in files})
    except caught(OSError) as error:
        raise TuningError(f"{logs} cannot be read: {error.strerror or error}") from error


def check_folder(logs: Path) -> None:
    """Raise TuningError if ``logs`` is not a folder."""
    try:
        if logs.is_dir():
            return
        problem = "is not a folder" if logs.exists() else "is missing"
    except caught(OSError, ValueError) as error:  # a name too long, or with a null character
        raise TuningError(f"tuning_logs {shown(str(logs))} is no path: {error}") from error
    else:
        raise TuningError(f"{logs} {problem}; expected a folder that te-select tune has written")


def read(folder: Path) -> Log:
    """Read the logs of a target, or return what was read before if no file has changed since.

    Parameters
    ----------
    folder
        The folder of the target; one without files is a log without records.

    Returns
    -------
    Log
        The usable records and the damaged lines.

    Raises
    ------
    TuningError
        If a file cannot be read, or none of its lines is usable.
    """
    return _read(folder, snapshot.stamps(folder))


@functools.lru_cache(maxsize=64)
def _read(folder: Path, _stamps: tuple[object, ...]) -> Log:
    return parse(folder, snapshot.take(folder))


def parse(folder: Path, taken: Snapshot) -> Log:
    """Read the logs of a target from the bytes of its files.

    Parameters
    ----------
    folder
        Where they lie.
    taken
        The bytes.

    Returns
    -------
    Log
        As `read`.

    Raises
    ------
    TuningError
        If a file has lines, but none of them is usable.
    """
    damaged = list(taken.damage)
    lines = partial(_lines, folder, taken, damaged)
    workloads = lines(WORKLOADS, workload_line.read)
    sessions = lines(SESSIONS, read_session)
    by_number = {number: workload for number, (_, workload) in workloads.items()}
    known: dict[str, list[Session]] = {}
    for _, session in sessions.values():
        known.setdefault(session["record"], []).append(session)
    records = lines(RECORDS, lambda text: read_record(text, by_number, known))
    entries = tuple(entry for _, entry in records.values())
    used = {id(part) for entry in entries for part in (entry.workload, entry.session)}
    unused = [
        Damage(WORKLOADS, number + 1, "no usable record names it", text)
        for number, (text, _) in workloads.items()
        if id(text) not in used
    ]
    others = {entry.key for entry in entries if not entry.session}
    for number, (text, session) in sessions.items():
        if id(session) in used:
            continue
        alone = Damage(SESSIONS, number + 1, f"no usable record is its {session['record']}", text)
        (damaged if session["record"] in others else unused).append(alone)
    return Log(folder, entries, tuple(damaged), tuple(unused))


def _lines(
    folder: Path,
    taken: Snapshot,
    damaged: list[Damage],
    name: str,
    parse_line: Callable[[str], Parsed],
) -> dict[int, tuple[str, Parsed]]:
    """The usable lines of a file by their indices from 0; the others are added to ``damaged``."""
    usable: dict[int, tuple[str, Parsed]] = {}
    wrong = []
    for index, raw in enumerate(taken.data[name].split(b"\n")):
        if not raw.strip():
            continue
        try:
            text = raw.decode().strip()
            usable[index] = text, parse_line(text)
        except caught(*_UNREADABLE) as error:
            reason = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
            text = raw.decode(errors="backslashreplace")
            wrong.append(Damage(name, index + 1, " ".join(reason.split())[:200], text))
    if wrong and not usable and name != SESSIONS:  # records are usable without their sessions
        raise TuningError(
            f"{folder / name} holds no usable line (line {wrong[0].line}: {wrong[0].reason}); "
            "expected what te-select tune writes"
        )
    damaged += wrong
    return usable
