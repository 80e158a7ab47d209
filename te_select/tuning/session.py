"""A tuning session: measures workloads, and writes a record for each, even if the default won."""

import contextlib
import json
import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from te_select.backends import builder, schedule_of
from te_select.backends.targets import resolve
from te_select.base import kinds
from te_select.compiler.build import check_here, versions
from te_select.compiler.family_library import config_of
from te_select.compiler.scheduling import checked
from te_select.errors import ArgumentError, TuningError
from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload
from te_select.records import doubt, folders, log, writer
from te_select.records.log import Record
from te_select.records.sizes import Ranges
from te_select.timing.inputs import Mask
from te_select.tuning.journal import Journal, Knob, config_key, knobs_of
from te_select.tuning.measuring.measurer import Measurer
from te_select.tuning.options import LOCAL, QUICK, Options, open_measurer
from te_select.tuning.search import Batches, search
from te_select.tuning.space import Space, check_fixed
from te_select.tuning.task import Task
from te_select.tuning.trials import Observer, Run, UntunableError

_BUILDERS = ("te_select", "tvm")  # packages whose versions, with the machine's, decide the build


class Session(contextlib.AbstractContextManager["Session"]):
    """Tunes workloads for one target, with workers that start with the first that has no record.

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
    of = Task  # what it tunes

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
        if runner != LOCAL and not kinds.kind(self.target.kind).fleet:
            raise TuningError(
                f"runner {shown(runner)} cannot measure target {self.target.name!r}; expected "
                f"local, on a machine of that kind"
            )
        check_fixed(self.target.kind, self.options.fixed)
        self.runner = runner
        self._target = target if isinstance(target, str) else json.dumps(target)
        self._given_logs = tuning_logs
        logs = folders.given(tuning_logs, "a folder to write")
        self.folder = logs / self.within / folders.of_target(self.target.records)
        self._measurer = measurer
        self._own: Measurer | None = None
        self.last_run: Run | None = None  # of the last task; None if it had a record
        self._journals: dict[Task, Journal] = {}
        self._builder = builder(self.target.kind)
        self._rules = schedule_of(self.target.kind)
        general = versions()
        self.versions = {name: general[name] for name in _BUILDERS} | self._builder.versions()
        with writer.locked(self.folder):  # fail before minutes of measuring, not after
            pass

    @property
    def measurer(self) -> Measurer:
        """The workers, started when they are first needed."""
        if self.runner == LOCAL:
            check_here(self.target)
            self._builder.tuned_on(self.target)
        if not self._measurer:
            options = self.options
            self._measurer = self._own = open_measurer(self.runner, options.jobs, options.timeout)
            self._measurer.launch()
        return self._measurer

    def task(self, workload: Workload, ranges: Ranges = (), mask: Mask | None = None) -> Task:
        """What to tune: a workload with the target, and with the cond of the session by default."""
        mask = mask or Mask(self.options.density, self.options.block)
        return self.of(checked(workload), self._target, mask, ranges)

    def task_of(self, entry: Record) -> Task:
        """What a record was tuned for; raises ValueError if it does not say so."""
        try:
            task = entry.session["task"]
            ranges = task["ranges"]
            sizes = tuple((str(name), int(least), int(most)) for name, least, most in ranges)
            Options(**task["mask"])  # checks the numbers
            return self.task(Workload.from_json(task["workload"]), sizes, Mask(**task["mask"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError("its line does not say what was tuned; tune it again") from error

    def _usable(self, task: Task) -> Record | None:
        """The record of a task, if it can be used and was found under the same conditions."""
        found = log.read(self.folder)
        found.warn()
        name = access_pattern(task.sized).key, frozenset(name for name, _, _ in task.ranges)
        entry = next((each for each in found.entries if each.identity == name), None)
        if not entry or doubt.unusable(entry):
            return None
        under = {each: entry.session.get(each, "") for each in task.conditions}
        return entry if under == task.conditions else None

    def find(self, task: Task) -> Record | None:
        """The record of a task that need not be tuned again: it can be used, and is trusted."""
        entry = self._usable(task)
        if not entry or doubt.trust(entry) <= 1 - self.options.accept_unsure:
            return None
        left_out = self.options.left_out
        leaves_as_much = all(text or name not in entry.session for name, text in left_out.items())
        held = {*entry.session.get("fixed", "").split()}
        own = {*left_out["fixed"].split()}
        # The best of a session that holds less is the best of this one, if it follows what is held.
        follows = held == own or self.options.fixed.items() <= entry.config.items()
        return entry if leaves_as_much and held <= own and follows else None

    def look(self, task: Task, observe: Observer) -> float:
        """Measure a task's default config, which is its first trial; returns the seconds."""
        with self._opened(task) as journal:
            self.last_run = Run(task, self.measurer, journal, observe)
            return self.last_run.look(self._default(task))

    def kept_knobs(self, task: Task) -> list[Knob]:
        """What the knobs were worth by the trials of the session that found the record."""
        return knobs_of(self._journal(task).of_last_session())

    def tune(
        self, task: Task, observe: Observer, until: float | None = None, only: Sequence[Any] = ()
    ) -> Record:
        """Tune a workload, or return the record that it has.

        Parameters
        ----------
        task
            What to tune.
        observe
            Called with the progress, at every step.
        until
            When the finals have ended, by the monotonic clock; None for what the effort has, from
            when the default is measured.
        only
            Configs to compare with the default, and no others; a record does not matter then.

        Raises
        ------
        UntunableError
            If it has no elements, or the default config fails.
        TuningError
            If measuring itself does not work, or the logs cannot be written.
        """
        self.last_run = None
        with self._opened(task) as journal:
            there = self._usable(task)
            if (found := self.find(task)) and not (self.options.force or only):
                return found
            default = self._default(task)
            effort = self.options.usual
            run = Run(task, self.measurer, journal, observe, effort)
            self.last_run = run
            if only:
                until = math.inf
            elif until is None:
                if config_key(asdict(default)) not in journal.own:
                    run.look(default)
                until = time.monotonic() + effort.seconds
            run.end_by(until)
            watch = self.measurer.watch()
            incumbents = list(only)
            if there:
                incumbents.append(self._rules.config_from(there.config))
            size = 1 + len(only)
            proposed = iter([[default], list(only)])
            if not only:
                size, proposed = self._search(run, task)
            trials = run.trials(min(size, self.options.most_trials), proposed)
            in_finals = self.measurer.watch()  # a burst there would be thin in the whole
            best, won, its, of_default = run.finals(incumbents)
            busy = max(watch.others(), in_finals.others())
            spread = its.ratios(of_default).spread
            gain = of_default.median / its.median if won else 1.0
            has_met = run.has_met or size == 1
            # A quick session is over when its time is: a full one tries all of it again.
            undecided = "" if has_met and self.options.effort == QUICK else run.late
            if not has_met and not undecided:
                undecided = doubt.ALONE
            accept = self.options.accept_unsure and has_met
            said = doubt.reasons(busy, spread, gain, run.promised, undecided, accept=accept)
            if not won or (said and not accept):
                best = default
                its = of_default
            told = {
                "config": asdict(best),
                "seconds": its.median,
                "default_seconds": of_default.median,
                "trials": len(trials),
                "failed": sum(trial.seconds is None for trial in trials),
                "busy_cores": busy,
                "spread": spread,
            }
            texts = {
                **({} if only else self.options.left_out),
                "accepted" if accept else "unsure": said,
                **task.conditions,
            }
            told |= {name: text for name, text in texts.items() if text}
            record = log.make(task.sized, self.target, told | self._provenance(task))
            # If the config of a record loses, nothing uses it any longer.
            if not only or there or not record.default_won:
                writer.put(self.folder, [record])
            if not said or said != undecided:  # else the next session goes on with its trials
                journal.close()
        return record

    @contextlib.contextmanager
    def _opened(self, task: Task) -> Iterator[Journal]:
        """The journal of a task, which no other session has meanwhile."""
        if access_pattern(task.workload).elements == 0:
            raise UntunableError(f"{task.workload.name} has no elements: nothing to measure")
        journal = self._journal(task)
        with writer.locked(journal.folder, f".{journal.path.name}.lock"):
            yield journal

    def _journal(self, task: Task) -> Journal:
        key = access_pattern(task.sized).key
        journal = Journal(self.folder, key, self.versions | task.conditions)
        return self._journals.setdefault(task, journal)

    def _search(self, run: Run, task: Task) -> tuple[int, Batches]:
        """How many configs there are, and which are proposed."""
        cpus = self._builder.tuned_on(self.target)[1] if self.runner == LOCAL else None
        built = task.workload if task.ranges else None
        space = Space(task.points[-1], self.target, cpus, built, self.options.fixed)
        roots = self.folder.parent, *folders.default_folders(self.within)
        known = space.known(dict.fromkeys(roots))
        total = len({space.effect(config) for config in (space.default, *space.configs, *known)})
        return total, search(space, self.options, run.seconds_of, known)

    def _default(self, task: Task) -> Any:
        """The config of a task's first trial."""
        return self._rules.default_config(access_pattern(task.kernel_workload), self.target.tvm)

    def _provenance(self, task: Task) -> dict[str, Any]:
        """The machine, the versions and the command, for readers of the record."""
        mask = task.mask
        usual = asdict(Options())
        given = {
            **dict([task.source]),
            "target": self._target,
            "runner": self.runner,
            "tuning_logs": self._given_logs,
            **asdict(self.options),
            **asdict(mask),
        }
        del given["jobs"]  # it changes no outcome
        words = ["te-select", "tune"]
        for name, value in given.pop("fixed").items():
            words += ["--fix", f"{name}={json.dumps(value)}"]
        for name, value in given.items():
            if value is not None and value != usual.get(name):
                words.append(f"--{name.replace('_', '-')}")
                if value is not True:
                    words.append(str(value))
        for name, least, most in task.ranges:
            words += ["--size", f"{name}={least}:{most}"]
        if self.runner == LOCAL:
            device, cpus = self._builder.tuned_on(self.target)
        else:
            device = f"{self.measurer.machine} behind {self.runner}".strip()
            cpus = None
        task_of = {"workload": task.workload.to_json(), "mask": vars(mask), "ranges": task.ranges}
        return {
            "machine": device,
            "cpus": cpus,
            "versions": self.versions,
            "command": shlex.join(words),
            "task": task_of,
        }

    def __exit__(self, *_error: object) -> None:
        if self._own:
            self._own.close()


class FamilyTask(Task):
    """A workload of `family.typical`; its kernel is one of `te_select.where`, of named dims."""

    of_family = True

    @property
    def source(self) -> tuple[str, str]:
        """The flag that names the kernel, and its name."""
        known = family.kernels().items()
        name = next(name for name, each in known if family.typical(each) == self.workload)
        return "where", name

    @property
    def kernel_workload(self) -> Workload:
        """The workload of the kernel."""
        return family.kernels()[self.source[1]]


class FamilySession(Session):
    """A session whose tasks are those of the family; the parameters are those of `Session`."""

    within = folders.FAMILY
    of = FamilyTask

    def _default(self, task: Task) -> Any:
        return config_of(task.kernel_workload, self.target, {})

    def _search(self, _run: Run, task: Task) -> tuple[int, Batches]:
        """All of the few configs, as far as there are trials."""
        every = Space(task.workload, self.target).configs
        alike = (asdict(config) for config in every if config.rows == every[0].rows)
        configs = [config_of(task.kernel_workload, self.target, knobs) for knobs in alike]
        fixed = self.options.fixed
        configs = [each for each in configs if fixed.items() <= vars(each).items()]
        if fixed and not configs:
            raise ArgumentError(f"no kernel has the fixed knobs {dict(fixed)}")
        every = list(dict.fromkeys([self._default(task), *configs]))
        tried = every[: self.options.most_trials]
        return len(every), filter(None, iter((tried[:1], tried[1:])))
