"""A tuning session: measures workloads one after another, and writes a record for each.

Every workload that was tuned has a record, even if the default config won.
"""

from __future__ import annotations

import json
import shlex
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
from te_select.records.sizes import representative
from te_select.tuning.journal import Journal
from te_select.tuning.measuring import Measurer
from te_select.tuning.record import (
    SAID,
    TIMEOUT,
    TRIALS,
    Observer,
    Options,
    Record,
    UntunableError,
    recorded,
)
from te_select.tuning.runners import LOCAL, open_measurer
from te_select.tuning.search import Batches, open_search
from te_select.tuning.trials import Run

_BUILDERS = ("te_select", "tvm")  # packages whose versions, with the machine's, decide the build


def tune(  # noqa: PLR0913 - the public contract's, by keyword
    workload: Workload,
    target: str | dict[str, Any] = "native",
    *,
    trials: int = TRIALS,
    tuning_logs: str | Path | None = None,
    runner: str = "local",
    timeout: float = TIMEOUT,
    jobs: int | None = None,
    seed: int = 0,
    force: bool = False,
    keep_trials: bool = False,
    observe: Observer | None = None,
) -> Record:
    """Find the fastest config for a workload and record it.

    Every config is built in a process of its own, compared with NumPy bit for bit, and then timed.
    Every trial is kept at once, so an interrupted session goes on where it stopped.

    Parameters
    ----------
    workload
        What to tune. Named dims are given representative sizes.
    target
        As for `te_select.compile`. The machine that measures must be able to run it.
    trials
        Configs to measure, the default among them.
    tuning_logs
        The folder to write, made if it is missing; None for the user's own, which `compile` reads.
    runner
        ``"local"``, or ``"rpc://HOST:PORT/KEY"`` for machines behind a TVM RPC tracker.
    timeout
        Seconds after which a config counts as failed.
    jobs
        Configs to build at once; None for one per CPU.
    seed
        Decides which configs are tried if there are more than ``trials``.
    force
        Tune a workload that has a record already, too.
    keep_trials
        Keep every trial in ``<tuning_logs>/<target>/all_trials``, rather than only the winner.
    observe
        Called with the progress, at every step.

    Returns
    -------
    Record
        The record, new or from before. If the times cannot be trusted, because other programs used
        the cores or the rounds lay far apart, `Record.unsure` says so; no compilation uses such a
        record, and the next session tunes the workload again.

    Raises
    ------
    TuningError
        If the folder cannot be written, the runner does not answer, or the default config fails.
    ArgumentError
        If an argument is out of range.
    """
    options = Options(trials, timeout, jobs, seed, force, keep_trials)
    with Session(target, tuning_logs, runner, options) as session:
        return session.tune(workload, observe or (lambda progress: None))


class Session:
    """Tunes workloads for one target, with one set of workers.

    A context manager. The workers start with the first workload that has no record yet.

    Parameters
    ----------
    target, tuning_logs, runner
        As for `tune`.
    options
        The numbers.
    """

    within = ""  # the folder of these records in a folder of logs

    def __init__(
        self,
        target: str | dict[str, Any],
        tuning_logs: str | Path | None = None,
        runner: str = "local",
        options: Options | None = None,
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
        self._measurer: Measurer | None = None
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
        if self._measurer is None:
            if self.runner == LOCAL:
                self._machine.tuned_on(self.target)
            options = self.options
            self._measurer = open_measurer(self.runner, options.jobs, options.timeout)
        return self._measurer

    def find(self, workload: Workload) -> Record | None:
        """Return the record that a workload has already, if it is sure and can be used."""
        found = recorded(self.folder, workload, self._versions["tvm"])
        if found is None or found.unsure:
            return None
        try:
            config = schedule_of(self.target.kind).config_from(found.config)
            config.checked(access_pattern(found.workload))
        except ValueError:
            return None
        return found

    def tune(self, workload: Workload, observe: Observer) -> Record:
        """Tune a workload, or return the record that it has.

        Raises
        ------
        UntunableError
            If it has no elements, or the default config fails.
        TuningError
            If measuring itself does not work, or the logs cannot be written.
        """
        if access_pattern(checked(workload)).elements == 0:
            raise UntunableError(f"{workload.name} has no elements: there is nothing to measure")
        if not self.options.force and (found := self.find(workload)):
            return found
        sized = representative(workload)
        key = access_pattern(sized).key
        journal = Journal(self.folder, key, self._versions)
        with store.locked(journal.folder, f".{journal.path.name}.lock"):
            # Another session may have tuned it while this one waited for the lock.
            if not self.options.force and (found := self.find(workload)):
                return found
            member = self._member(sized)
            run = Run(sized, self._target, self.measurer, journal, observe, member)
            cpus = self._machine.tuned_on(self.target)[1] if self.runner == LOCAL else None
            watch = self.measurer.watch()
            trials = run.trials(*self._search(run, sized, cpus))
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
                f"{self.folder.name}/{key}",
                sized,
                busy,
                final.spread,
                unsure,
            )
            self._write(record)
            journal.close(keep=self.options.keep_trials)
        return record

    def _write(self, record: Record) -> None:
        """Write a record; one that is unsure does not replace one that is sure."""
        session = {
            "workload": str(record.workload),
            "config": dict(record.config),
            **{name: getattr(record, name) for name in SAID if name != "unsure" or record.unsure},
            **self._provenance(record.workload),
        }
        config = schedule_of(self.target.kind).Config(**record.config)
        entry = metaschedule.entry(record.workload, self.target, config, record.seconds, session)
        store.put(self.folder, [entry], lambda new, old: not new.unsure or bool(old.unsure))

    def _search(self, run: Run, workload: Workload, cpus: int | None) -> tuple[int, Batches]:
        trials, seed = self.options.trials, self.options.seed
        try:
            return open_search(workload, self.target, trials, seed, run.seconds_of, cpus)
        except ArgumentError as error:
            raise UntunableError(str(error)) from error

    def _member(self, _workload: Workload) -> Workload | None:
        """The workload of `te_select.where`'s family that is built; see `FamilySession`."""
        return None

    def _source(self, workload: Workload) -> dict[str, Any]:
        """The flag of the command line that names a workload, and its value."""
        return {"workload": json.dumps(workload.to_json())}

    def _provenance(self, workload: Workload) -> dict[str, Any]:
        """The machine, the versions and the command, for readers of the record."""
        given = self._source(workload)
        given |= {"target": self._target, "runner": self.runner, "tuning_logs": self._given_logs}
        given |= asdict(self.options)
        words = ["te-select", "tune"]
        for name, value in given.items():
            if value is not None and value is not False:
                words.append(f"--{name.replace('_', '-')}")
                words += [] if value is True else [str(value)]
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
        if self._measurer is not None:
            self._measurer.close()
