"""A tuning session: measures workloads one after another, and writes a record for each.

Every workload that was tuned has a record, even if the default config won.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from te_select import kinds
from te_select.backends import machine, schedule_of
from te_select.backends.targets import resolve
from te_select.compiler import versions
from te_select.compiler.compiling import checked
from te_select.errors import ArgumentError, TuningError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload
from te_select.records import log, metaschedule, store
from te_select.records.fit import is_of
from te_select.records.folders import user_folder
from te_select.records.sizes import Ranges
from te_select.tuning.evolution import Batches
from te_select.tuning.journal import Journal
from te_select.tuning.measuring import Measurer
from te_select.tuning.record import (
    Observer,
    Options,
    Record,
    UntunableError,
    recorded,
    said,
)
from te_select.tuning.runners import LOCAL, open_measurer
from te_select.tuning.search import open_search
from te_select.tuning.task import Task
from te_select.tuning.trials import Run
from te_select.tuning.worth import Knob, knobs_of
from te_select.verify.reference import ints

_BUILDERS = ("te_select", "tvm")  # packages whose versions, with the machine's, decide the build


class Session:
    """Tunes workloads for one target, with one set of workers.

    A context manager. The workers start with the first workload that has no record yet.

    Parameters
    ----------
    target, tuning_logs, runner
        As for `te_select.tune`.
    options
        The numbers.
    measurer
        Workers of the runner that others close; None for workers of its own.
    """

    within = ""  # the folder of these records in a folder of logs

    def __init__(
        self,
        target: str | dict[str, Any],
        tuning_logs: str | Path | None = None,
        runner: str = "local",
        options: Options | None = None,
        measurer: Measurer | None = None,
    ) -> None:
        self.options = options or Options()
        self.target = resolve(target)
        if len(levels := self.target.levels) > 1:
            raise TuningError(
                f"target {self.target.name!r} has several levels, each with records of its own; "
                f"tune them one by one: {', '.join(level.name for level in levels)}"
            )
        self.runner = runner
        self._target = target if isinstance(target, str) else json.dumps(target)
        self._given_logs = tuning_logs
        try:
            self.logs = user_folder() if tuning_logs is None else Path(tuning_logs)
        except TypeError as error:
            raise TuningError(
                f"tuning_logs {shown(tuning_logs)} is no path; expected a folder to write"
            ) from error
        self.folder = self.logs / self.within / log.folder_name(self.target.records)
        self._measurer = measurer
        self._own: Measurer | None = None
        self.last_run: Run | None = None  # of the last task; None if it had a record
        self._journals: dict[Path, Journal] = {}
        self._machine = machine(self.target.kind)
        general = versions()
        self._versions = {name: general[name] for name in _BUILDERS} | self._machine.versions()
        if runner != LOCAL and not kinds.kind(self.target.kind).fleet:
            raise TuningError(
                f"runner {shown(runner)} cannot measure target {self.target.name!r}; expected "
                f"local, on a machine of that kind"
            )
        with store.locked(self.folder):  # fail before minutes of measuring, not after
            self._check_target()

    def _check_target(self) -> None:
        """Refuse the folder of another target whose JSON has the same ten digits of digest."""
        if self.folder.name == self.target.records:
            return
        for entry in log.read(self.folder).entries:
            if entry.tvm == self._versions["tvm"] and not is_of(entry, self.target):
                raise TuningError(
                    f"{self.folder} is of another target, {entry.target}; expected a folder of "
                    "logs without it"
                )

    @property
    def measurer(self) -> Measurer:
        """The workers, started when they are first needed."""
        if self.runner == LOCAL:
            self._machine.tuned_on(self.target)
        if self._measurer is None:
            options = self.options
            self._own = open_measurer(self.runner, options.jobs, options.timeout)
            self._measurer = self._own
            self._measurer.launch()
        return self._measurer

    def task(self, workload: Workload, ranges: Ranges = ()) -> Task:
        """What to tune: a workload with the target and the cond of the session."""
        return Task(workload, self._target, self.options.mask, ranges)

    def find(self, task: Task) -> Record | None:
        """Return the record that a task has already, if it is sure and can be used."""
        names = [name for name, _, _ in task.ranges]
        found = recorded(self.folder, task.sized, self._versions["tvm"], names)
        if found is None or found.unsure:
            return None
        if {name: getattr(found, name) for name in ("cond", "sizes")} != {
            name: task.conditions.get(name, "") for name in ("cond", "sizes")
        }:
            return None
        try:
            config = schedule_of(self.target.kind).config_from(found.config)
            config.checked(access_pattern(found.workload))
        except ValueError:
            return None
        return found

    def look(self, task: Task, observe: Observer) -> float:
        """Measure a task's default config, which is its first trial; returns the seconds."""
        with self._opened(task) as journal:
            self.last_run = Run(task, self.measurer, journal, observe)
            (trial,) = self.last_run.trials(1, [[self._default(task)]])
        assert trial.seconds is not None  # or the run has refused it
        return trial.seconds

    def kept_knobs(self, task: Task) -> list[Knob]:
        """What the knobs were worth by the trials that an earlier session has kept."""
        return knobs_of(self._journal(task).kept())

    def tune(self, task: Task, observe: Observer, until: float = math.inf) -> Record:
        """Tune a workload, or return the record that it has.

        No further config is tried after ``until``, by the monotonic clock.

        Raises
        ------
        UntunableError
            If it has no elements, or the default config fails.
        TuningError
            If measuring itself does not work, or the logs cannot be written.
        """
        self.last_run = None
        if not self.options.force and (found := self.find(task)):
            return found
        sized = task.sized
        with self._opened(task) as journal:
            # Another session may have tuned it while this one waited for the lock.
            if not self.options.force and (found := self.find(task)):
                return found
            run = self.last_run = Run(task, self.measurer, journal, observe, until)
            cpus = self._machine.tuned_on(self.target)[1] if self.runner == LOCAL else None
            watch = self.measurer.watch()
            trials = run.trials(*self._search(run, task, cpus))
            final = run.finals()
            busy = watch.others()
            if unsure := final.doubt(busy):
                final = final.without_winner()
            record = Record(
                asdict(final.config),
                final.seconds,
                final.default_seconds,
                len(trials),
                sum(trial.seconds is None for trial in trials),
                f"{self.folder.name}/{access_pattern(sized).key}",
                sized,
                busy,
                final.spread,
                unsure,
                **task.conditions,
            )
            self._write(record, task)
            journal.close(keep=self.options.keep_trials)
        return record

    @contextlib.contextmanager
    def _opened(self, task: Task) -> Iterator[Journal]:
        """The journal of a task, which no other session has meanwhile."""
        if access_pattern(checked(task.workload)).elements == 0:
            raise UntunableError(
                f"{task.workload.name} has no elements: there is nothing to measure"
            )
        try:
            for point in task.points:
                task.mask.check(math.prod(ints(point.cond_shape)))
        except ValueError as error:
            raise UntunableError(str(error)) from error
        journal = self._journal(task)
        with store.locked(journal.folder, f".{journal.path.name}.lock"):
            yield journal

    def _journal(self, task: Task) -> Journal:
        conditions = task.conditions
        key = access_pattern(task.sized).key
        if conditions:
            key += "-" + hashlib.sha256(json.dumps(conditions).encode()).hexdigest()[:16]
        journal = Journal(self.folder, key, self._versions | conditions)
        return self._journals.setdefault(journal.path, journal)

    def _write(self, record: Record, task: Task) -> None:
        """Write a record; one that is unsure does not replace one that is sure."""
        session = {
            "workload": str(record.workload),
            "config": dict(record.config),
            **said(record),
            **self._provenance(task),
        }
        config = schedule_of(self.target.kind).Config(**record.config)
        entry = metaschedule.entry(record.workload, self.target, config, record.seconds, session)
        store.put(self.folder, [entry], lambda new, old: not new.unsure or bool(old.unsure))

    def _search(self, run: Run, task: Task, cpus: int | None) -> tuple[int, Batches]:
        given = self.target, self.options.trials, self.options.seed, run.seconds_of, cpus
        try:
            return open_search(task.points[-1], *given, task.workload if task.ranges else None)
        except ArgumentError as error:
            raise UntunableError(str(error)) from error

    def _default(self, task: Task) -> Any:
        """The config of a task's first trial."""
        return schedule_of(self.target.kind).default_config(
            access_pattern(task.built), self.target.tvm
        )

    def _source(self, task: Task) -> dict[str, Any]:
        """The flag of the command line that names a task's workload, and its value."""
        return {"workload": json.dumps(task.built.to_json())}

    def _provenance(self, task: Task) -> dict[str, Any]:
        """The machine, the versions and the command, for readers of the record."""
        given = self._source(task)
        given |= {"target": self._target, "runner": self.runner, "tuning_logs": self._given_logs}
        given |= asdict(self.options)
        words = ["te-select", "tune"]
        for name, value in given.items():
            if value is not None and value is not False and value != "":
                words.append(f"--{name.replace('_', '-')}")
                words += [] if value is True else [str(value)]
        for name, least, most in task.ranges:
            words += ["--size", f"{name}={least}:{most}"]
        if self.runner == LOCAL:
            device, cpus = self._machine.tuned_on(self.target)
        else:
            device, cpus = f"behind {self.runner}", None
        return {
            "machine": device,
            "cpus": cpus,
            "versions": self._versions,
            "command": shlex.join(words),
        }

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._own is not None:
            self._own.close()
