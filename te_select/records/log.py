"""Reads the records of a target: plain JSON, line by line, so that a bad line costs only that line.

A record's own line has its access pattern and every knob, as annotations of its trace. So no TVM
object is made: a compilation, which reads records, should take only a tenth of a second.

MetaSchedule's records name their workloads by the numbers of lines. People and git move lines, so a
session says which workload its record is of, by the hash at the begin of the workload's line.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from te_select import kinds
from te_select.errors import TuningError, caught, warn
from te_select.operator.access import AccessPattern
from te_select.operator.broadcast import shown
from te_select.records import fields, folders
from te_select.records.folders import FILES, RECORDS, SESSIONS, WORKLOADS
from te_select.schedules.annotations import KNOB, PATTERN

_DIGITS = 16
_HEADER = 8  # bytes before the graph of a workload: the graph's size, little-endian
_INDEXED = re.compile(r"\[(\d+),(.*)\]", re.DOTALL)
_MOST_WARNINGS = 5  # for one log; one deleted line may make hundreds of records unusable
_UNREADABLE = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
Session = Mapping[str, Any]
Parsed = TypeVar("Parsed")


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
        The line of its workload.
    body
        Its own line, without the number of the workload; empty if it is unsure: MetaSchedule's
        files hold only what may be used.
    session
        How it was found, as far as that was kept; empty if nothing was kept.
    edited
        Whether it was changed by hand since it was written.
    """

    key: str
    knobs: Mapping[str, int]
    seconds: float
    target: str
    tvm: str
    workload: str
    body: str
    session: Session
    edited: bool = False

    @property
    def unsure(self) -> str:
        """Why its session does not trust what it found; empty if it does."""
        return str(self.session.get("unsure", ""))

    @property
    def sized_names(self) -> frozenset[str]:
        """The names of the dims for whose ranges of sizes it is; empty if it is for one size."""
        ranges = str(self.session.get("sizes", "")).split()
        return frozenset(each.partition("=")[0] for each in ranges)

    @property
    def name(self) -> tuple[str, frozenset[str]]:
        """What no other record of a log is for."""
        return self.key, self.sized_names

    @property
    def pattern(self) -> AccessPattern:
        """The access pattern it was measured for."""
        return AccessPattern.from_key(self.key)

    @property
    def kind(self) -> str | None:
        """The kind of machine it was measured on; None if te_select knows no such kind."""
        found = kinds.of_tvm(str(json.loads(self.target).get("kind")))
        return None if found is None else found.name


@dataclass(frozen=True)
class Damage:
    """A line that cannot be used: its file, its number from 1, what is wrong, and its text."""

    file: str
    line: int
    reason: str
    text: str


@dataclass(frozen=True)
class Log:
    """The records of one target.

    Parameters
    ----------
    folder
        Where they lie.
    entries
        The usable records, in the order of their lines. One workload may have several.
    damaged
        The lines that are not usable.
    workloads
        The usable lines of workloads; one that no record names is harmless.
    """

    folder: Path
    entries: tuple[Entry, ...]
    damaged: tuple[Damage, ...] = ()
    workloads: tuple[str, ...] = ()

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
        """Warn of each damaged line, or of the first few if there are many."""
        complaints = self.complaints()
        said = complaints[:_MOST_WARNINGS]
        if more := len(complaints) - len(said):
            said.append(
                f"{self.folder}: {more} more lines are left out; te-select logs list names them"
            )
        for complaint in said:
            warn(complaint)


def read(folder: Path) -> Log:
    """Read the records of a target, or return what was read before if no file has changed since.

    Parameters
    ----------
    folder
        The folder of the target; one without files is a log without records.

    Raises
    ------
    TuningError
        If a file cannot be read, or has lines of which none is usable.
    """
    return _read(folder, tuple(_stamp(folder / name) for name in FILES))


@functools.lru_cache(maxsize=64)
def _read(folder: Path, _stamps: tuple[object, ...]) -> Log:
    return parse(folder, {name: folders.read(folder / name) for name in reversed(FILES)})


def parse(folder: Path, data: Mapping[str, bytes]) -> Log:
    """Read the records of a target from the bytes of its files; raises as `read`."""
    damaged: list[Damage] = []

    def lines(name: str, parsed: Callable[[str], Parsed]) -> dict[int, Parsed]:
        return _lines(folder / name, data[name], damaged, parsed)

    workloads = lines(WORKLOADS, _Workload.read)
    by_hash = {each.hash: each for each in workloads.values()}
    sessions: dict[str, list[Session]] = {}
    for session in lines(SESSIONS, _session).values():
        sessions.setdefault(session["record"], []).append(session)

    def record(text: str) -> Entry:
        return _record(text, workloads, by_hash, sessions)

    entries = [*lines(RECORDS, record).values()]
    used = {id(entry.session) for entry in entries}
    unused = (each for own in sessions.values() for each in own if id(each) not in used)
    entries += [_unsure(each) for each in unused if each.get("unsure") and "target" in each]
    usable = tuple(each.text for each in workloads.values())
    return Log(folder, tuple(entries), tuple(damaged), usable)


def digest(body: str) -> str:
    """What a session says of its record's line, so that a later change is seen."""
    return hashlib.sha256(body.encode()).hexdigest()[:_DIGITS]


def _stamp(path: Path) -> object:
    """A value that changes when a file does, found without reading it."""
    try:
        found = path.stat()
    except caught(OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _lines(
    path: Path, data: bytes, damaged: list[Damage], parsed: Callable[[str], Parsed]
) -> dict[int, Parsed]:
    """The usable lines of a file by their indices from 0; the others are added to ``damaged``."""
    usable: dict[int, Parsed] = {}
    wrong = []
    for index, raw in enumerate(data.split(b"\n")):
        if not raw.strip():
            continue
        try:
            usable[index] = parsed(raw.decode().strip())
        except caught(*_UNREADABLE) as error:
            reason = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
            text = raw.decode(errors="backslashreplace")
            wrong.append(Damage(path.name, index + 1, " ".join(reason.split())[:200], text))
    if wrong and not usable and path.name != SESSIONS:  # records are usable without their sessions
        raise TuningError(
            f"{path} holds no usable line (line {wrong[0].line}: {wrong[0].reason}); "
            "expected what te-select tune writes"
        )
    damaged += wrong
    return usable


@dataclass(frozen=True)
class _Workload:
    """A workload's line, as TVM writes it: a hash, and the IR as a graph in JSON."""

    text: str
    hash: str
    tvm: str

    @classmethod
    def read(cls, text: str) -> _Workload:
        found, encoded = json.loads(text)
        if not (isinstance(found, str) and found.lstrip("-").isdigit()):
            raise ValueError("expected [hash, base64]")
        data = base64.b64decode(encoded, validate=True)
        if int.from_bytes(data[:_HEADER], "little") != len(data) - _HEADER:
            raise ValueError("it is cut short, or longer than it says")
        return cls(text, found, str(json.loads(data[_HEADER:])["metadata"]["tvm_version"]))


def _session(text: str) -> Session:
    session = fields.parse(text)
    if not isinstance(session, dict) or "record" not in session:
        raise ValueError("expected an object with the name of a record")
    fields.check(session)
    if "target" in session:
        _unsure(session)
    return session


def _unsure(session: Session) -> Entry:
    """The entry of an outcome that is unsure, of which only the session is kept."""
    key, seconds, target = session["record"], session["seconds"], session["target"]
    knobs = {name: int(value) for name, value in session["config"].items()}
    AccessPattern.from_key(key)
    if not isinstance(json.loads(target), dict):
        raise ValueError(f"target {target} is not an object")
    return Entry(key, knobs, seconds, target, session["tvm"], "", "", session)


def _record(
    text: str,
    workloads: Mapping[int, _Workload],
    by_hash: Mapping[str, _Workload],
    sessions: Mapping[str, list[Session]],
) -> Entry:
    """Read a line of the records."""
    match = _INDEXED.fullmatch(text)
    if match is None:
        raise ValueError("expected [workload, [trace, seconds, target, arguments]]")
    index, body = int(match[1]), match[2]
    trace, seconds, target, _ = fields.parse(body)
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
    own = sessions.get(key, [])
    fitting = [session for session in own if session.get("config", knobs) == knobs]
    as_found = [session for session in fitting if session.get("digest", "") in ("", digest(body))]
    session = (as_found or fitting or [{}])[-1]
    workload = workloads.get(index)
    wanted = session.get("workload_hash")
    if workload is None or wanted not in (None, workload.hash):
        workload = by_hash.get(wanted or "")
    if workload is None:
        raise ValueError(f"line {index + 1} of the workloads, which it names, is not its own")
    return Entry(
        key,
        knobs,
        mean,
        json.dumps(target, sort_keys=True),
        workload.tvm,
        workload.text,
        body,
        session,
        edited=bool(own and not as_found),
    )
