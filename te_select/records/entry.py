"""What the lines of a log say: a record with its workload and its session."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from te_select import kinds
from te_select.operator.access import AccessPattern
from te_select.operator.broadcast import shown
from te_select.records import fields
from te_select.records.workload_line import WorkloadLine
from te_select.schedules.annotations import KNOB, PATTERN

_DIGITS = 16
_INDEXED = re.compile(r"\[(\d+),(.*)\]", re.DOTALL)
Session = Mapping[str, Any]


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
        Its own line, without the number of the workload.
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


def read_record(
    text: str,
    workloads: Mapping[int, WorkloadLine],
    sessions: Mapping[str, Sequence[Session]],
) -> Entry:
    """Read a line of the records.

    Parameters
    ----------
    text
        The line.
    workloads
        The usable lines of the workloads, by their indices from 0.
    sessions
        The sessions that are known, by the names of their records.

    Returns
    -------
    Entry
        The record.

    Raises
    ------
    ValueError, TypeError, KeyError, IndexError
        If it is not a record of te_select, or the workload that it names is not its own.
    """
    match = _INDEXED.fullmatch(text)
    if match is None:
        raise ValueError("expected [workload, [trace, seconds, target, arguments]]")
    index, body = int(match[1]), match[2]
    trace, seconds, target, arguments = fields.parse(body)
    fields.check_arguments(arguments)
    notes = _annotations(trace)
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
    if index not in workloads:
        raise ValueError(f"line {index + 1} of the workloads, which it names, is not usable")
    workload = workloads[index]
    _check_pair(key, arguments, workload, index)
    own_sessions = sessions.get(key, ())
    fitting = [session for session in own_sessions if session.get("config", knobs) == knobs]
    as_found = [session for session in fitting if session.get("digest", "") in ("", digest(body))]
    return Entry(
        key,
        knobs,
        mean,
        json.dumps(target, sort_keys=True),
        workload.tvm,
        workload.text,
        body,
        (as_found or fitting or [{}])[-1],
        edited=bool(own_sessions and not as_found),
    )


def digest(body: str) -> str:
    """What a session says of its record's line, so that a later change is seen."""
    return hashlib.sha256(body.encode()).hexdigest()[:_DIGITS]


def read_session(text: str) -> Session:
    """Read a line of the sessions; raises ValueError if it is not a session."""
    session = fields.parse(text)
    if not isinstance(session, dict) or not isinstance(session.get("record"), str):
        raise ValueError("expected an object with the name of a record")
    for name, form in _SESSION.items():
        if name in session:
            fields.check(name, session[name], form)
    return session


_SESSION: Mapping[str, str] = {
    "config": "config",
    "default_seconds": "seconds",
    **dict.fromkeys(("busy_cores", "spread"), "share"),
    **dict.fromkeys(("trials", "failed"), "count"),
    **dict.fromkeys(("workload", "machine", "command", "unsure", "digest"), "text"),
    **dict.fromkeys(("cond", "sizes"), "text"),
}
"""The form of each field that some code reads; any of them may be missing."""


def _annotations(trace: Any) -> dict[str, Any]:
    """The annotations that a trace makes, by their names."""
    notes = {
        attributes[0]: inputs[1] for kind, inputs, attributes, _ in trace[0] if kind == "Annotate"
    }
    if odd := [name for name in notes if not isinstance(name, str)]:
        raise ValueError(f"the name of an annotation is {shown(odd[0])}; expected a string")
    return notes


def _check_pair(key: str, arguments: Any, workload: WorkloadLine, index: int) -> None:
    """Refuse a workload that is not the record's."""
    own = tuple((dtype, tuple(shape)) for _, dtype, shape in arguments)
    if (key, own) != (workload.key, workload.arguments):
        other = "other shapes" if key == workload.key else workload.key
        raise ValueError(
            f"it is of {key}, but line {index + 1} of the workloads, which it names, is of "
            f"{other}: lines were moved or deleted"
        )
