"""Records outlive TVM: those of other versions are candidates, each compared with the default."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from te_select.backends import schedule_of
from te_select.errors import SelectError
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.records import log
from te_select.records.log import Entry
from te_select.timing.operands import Mask
from te_select.tuning.agenda import Job, Outcome
from te_select.tuning.session import Session
from te_select.tuning.task import Task
from te_select.tuning.trials import Observer

WON = "the default is as fast now; the old record is not taken over"


def take_over(
    session: Session, begin: Callable[[Job], None], observe: Observer
) -> Iterator[Outcome]:
    """Compare the config of every record of other versions with the default, in turns.

    Parameters
    ----------
    session
        The session whose folder has the records. It writes those that hold.
    begin, observe
        As for `Agenda.run`.

    Yields
    ------
    Outcome
        One for each such record. One whose knobs no longer exist is a failure.
    """
    now = session.versions
    for entry in log.read(session.folder).entries:
        if entry.unsure or (entry.tvm, entry.session.get("versions")) == (now["tvm"], now):
            continue
        try:
            config = schedule_of(session.target.kind).config_from(entry.knobs)
            task = _task(entry, session)
            config.checked(access_pattern(task.built))
            begin(Job(entry.key, session, task))
            record = session.tune(task, observe, only=(config,))
        except (ValueError, SelectError) as error:
            yield Outcome(entry.key, error=str(error))
            continue
        found = Outcome(entry.key, record, default_seconds=record.default_seconds)
        lost = record.default_won and not record.unsure
        yield replace(found, record=None, passed_over=WON) if lost else found


def _task(entry: Entry, session: Session) -> Task:
    """What a record was tuned for, by the command that it keeps; raises ValueError."""
    words = list(pairwise(shlex.split(entry.session.get("command", ""))))
    flags = dict(words)
    if "--workload" not in flags:
        raise ValueError("its session does not say which workload it is of; tune it again")
    workload = Workload.from_json(json.loads(flags["--workload"]))
    mask = Mask(
        float(flags.get("--density", 50)),
        int(flags.get("--block", 1)),
        flags.get("--cond-file", ""),
    )
    sizes = (re.split("[=:]", value) for flag, value in words if flag == "--size")
    ranges = tuple((name, int(least), int(most)) for name, least, most in sizes)
    return replace(session.task(workload), mask=mask, ranges=ranges)
