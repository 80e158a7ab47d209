"""Reads the logs of a target: plain JSON, line by line, so that one bad line costs that line only.

What `te_select.compile` needs stands in the annotations of a record's trace: the access pattern and
every knob. No TVM object is made, since compiling is to take a tenth of a second.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from te_select import kinds
from te_select.errors import TuningError
from te_select.operator.access import AccessPattern
from te_select.operator.broadcast import shown
from te_select.records import fields
from te_select.schedules.annotations import KNOB, PATTERN

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
SESSIONS, PENDING = "sessions.json", ".pending.json"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_INDEXED = re.compile(r"\[(\d+),(.*)\]", re.DOTALL)
_VERSION = re.compile(rb'"tvm_version":\s*"([^"]*)"')


@dataclass(frozen=True)
class Entry:
    """One record of a log.

    Parameters
    ----------
    key
        `AccessPattern.key` of the workload; the record's name.
    knobs
        The config, as ints.
    seconds
        Its measured time for one call.
    target
        The TVM target as JSON text, keys sorted.
    tvm
        The TVM version that wrote it.
    workload
        Its line of `WORKLOADS`.
    body
        Its line of `RECORDS`, without the number of the workload.
    session
        What `SESSIONS` says of it; empty where nothing.
    """

    key: str
    knobs: Mapping[str, int]
    seconds: float
    target: str
    tvm: str
    workload: str
    body: str
    session: Mapping[str, Any]

    @property
    def pattern(self) -> AccessPattern:
        """The access pattern it was measured for."""
        return AccessPattern.from_key(self.key)

    @property
    def kind(self) -> str | None:
        """The kind of machine it was measured on; None where te_select knows no such kind."""
        found = kinds.of_tvm(str(json.loads(self.target).get("kind")))
        return None if found is None else found.name


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
class Log:
    """The logs of one target.

    Parameters
    ----------
    folder
        Where they lie.
    entries
        The usable records, in the order of their workloads; one workload may have several.
    damaged
        The lines that are not usable.
    """

    folder: Path
    entries: tuple[Entry, ...]
    damaged: tuple[Damage, ...]

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


def folder_name(target: str) -> str:
    """The folder of a target's logs: the name of its records, or a hash where that is JSON."""
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
        return sorted(path.parent for path in logs.glob(f"*/{RECORDS}"))
    except OSError as error:
        raise TuningError(f"{logs} cannot be read: {error.strerror or error}") from error


def check_folder(logs: Path) -> None:
    """Raise TuningError if ``logs`` is not a folder."""
    try:
        if logs.is_dir():
            return
        problem = "is not a folder" if logs.exists() else "is missing"
    except (OSError, ValueError) as error:  # a name too long, or with a null character
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
        If a file cannot be read, or has lines and not one that is usable.
    """
    stamps = tuple(_stamp(folder / name) for name in (PENDING, WORKLOADS, RECORDS, SESSIONS))
    return _read(folder, stamps)


@functools.lru_cache(maxsize=64)
def _read(folder: Path, _stamps: tuple[object, ...]) -> Log:
    texts = pending(folder) or {}
    damaged: list[Damage] = []
    workloads = _parse(folder, WORKLOADS, texts, _parse_workload, damaged)
    sessions = _parse(folder, SESSIONS, texts, _parse_session, damaged)
    by_name = {str(session["record"]): session for session in sessions.values()}

    def parse_record(text: str) -> Entry:
        match = _INDEXED.fullmatch(text)
        if match is None:
            raise ValueError("expected [workload, [trace, seconds, target, arguments]]")
        index = int(match[1])
        if index not in workloads:
            raise ValueError(f"{WORKLOADS} has no usable line {index + 1}, its workload")
        workload, tvm = workloads[index]
        return _entry(match[2], workload, tvm, by_name)

    entries = _parse(folder, RECORDS, texts, parse_record, damaged)
    return Log(folder, tuple(entries.values()), tuple(damaged))


def pending(folder: Path) -> dict[str, str] | None:
    """The files of a write that was cut short: all of them, or None where there was none."""
    data = _bytes(folder / PENDING)
    if not data and not (folder / PENDING).exists():
        return None
    try:
        texts = json.loads(data)
        complete = set(texts) == {WORKLOADS, RECORDS, SESSIONS}
        for text in texts.values():
            text.encode()
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise TuningError(f"{folder / PENDING} cannot be read: {error}; remove it") from error
    if not complete:
        raise TuningError(f"{folder / PENDING} is not what te-select writes; remove it")
    return dict(texts)


def _parse(
    folder: Path, name: str, texts: Mapping[str, str], parse: Any, damaged: list[Damage]
) -> dict[int, Any]:
    """Parse the lines of a file, by their indices from 0."""
    data = texts[name].encode() if name in texts else _bytes(folder / name)
    lines = data.split(b"\n")
    parsed: dict[int, Any] = {}
    wrong = []
    for index, raw in enumerate(lines):
        if not raw.strip():
            continue
        try:
            parsed[index] = parse(raw.decode())
        except (
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            OverflowError,
            RecursionError,
        ) as error:
            reason = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
            text = raw.decode(errors="backslashreplace")
            wrong.append(Damage(name, index + 1, " ".join(reason.split())[:200], text))
    if wrong and not parsed and name != SESSIONS:  # without that one, records serve all the same
        raise TuningError(
            f"{folder / name} holds no usable line (line {wrong[0].line}: {wrong[0].reason}); "
            "expected what te-select tune writes"
        )
    damaged += wrong
    return parsed


def _parse_workload(text: str) -> tuple[str, str]:
    """A line and the TVM version that wrote it."""
    line = json.loads(text)
    digest, encoded = line
    if not (isinstance(digest, str) and digest.lstrip("-").isdigit()):
        raise ValueError("expected [hash, base64]")
    match = _VERSION.search(base64.b64decode(encoded, validate=True))
    if match is None:
        raise ValueError("no TVM version is in it")
    return text, match[1].decode()


def _parse_session(text: str) -> dict[str, Any]:
    session = fields.parse(text)
    if not isinstance(session, dict) or not isinstance(session.get("record"), str):
        raise ValueError("expected an object with the name of a record")
    for name, check in _SESSION.items():
        if name in session:
            check(session[name])
    return session


_SESSION: Mapping[str, Callable[[Any], None]] = {
    "config": fields.check_config,
    "default_seconds": partial(fields.check_seconds, "default_seconds"),
    **{name: partial(fields.check_count, name) for name in ("trials", "failed")},
    **{name: partial(fields.check_text, name) for name in ("workload", "machine", "command")},
}
"""What checks each field that somebody reads; all of them may be missing."""


def _entry(body: str, workload: str, tvm: str, sessions: Mapping[str, dict[str, Any]]) -> Entry:
    trace, seconds, target, arguments = fields.parse(body)
    fields.check_arguments(arguments)
    notes = {
        attributes[0]: inputs[1] for kind, inputs, attributes, _ in trace[0] if kind == "Annotate"
    }
    if odd := [name for name in notes if not isinstance(name, str)]:
        raise ValueError(f"the name of an annotation is {shown(odd[0])}; expected a string")
    if PATTERN not in notes:
        raise ValueError("it has no access pattern: it is not of te_select's schedules")
    key = json.loads(notes[PATTERN])
    if AccessPattern.from_key(key).key != key:
        raise ValueError(f"access pattern {key!r} is malformed")
    knobs = {name[len(KNOB) :]: value for name, value in notes.items() if name.startswith(KNOB)}
    if not all(type(value) is int for value in knobs.values()):
        raise ValueError(f"knobs {knobs} are not ints")
    mean = sum(seconds) / len(seconds) if seconds else 0.0
    if not 0 < mean < float("inf"):
        raise ValueError(f"seconds {seconds} are not positive")
    if not isinstance(target, dict):
        raise ValueError(f"target {target!r} is not an object")
    canonical = json.dumps(target, sort_keys=True)
    return Entry(key, knobs, mean, canonical, tvm, workload, body, sessions.get(key, {}))


def _bytes(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TuningError(f"{path} is not a regular file; expected a tuning log")
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise TuningError(f"{path} cannot be read: {error.strerror or error}") from error


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
