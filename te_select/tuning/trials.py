"""The trials of one workload, and which config wins.

The default config is trial 0, and is measured anew by every session. The search proposes the
others. Then the fastest few, the config of the record that is there, and the default take turns.
The best of them must win twice to replace the default, so that noise alone does not.
"""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from te_select.errors import TuningError
from te_select.operator.workload import Workload
from te_select.records import doubt
from te_select.timing.rounds import WARM_UP, Timing
from te_select.tuning.journal import Journal, Trial, config_key, knobs_of
from te_select.tuning.measuring.measurer import BATCH, Measurer
from te_select.tuning.options import EFFORTS, GAIN, Effort
from te_select.tuning.task import Measurement, Task

LOST = 1.1  # times the default's time, in its trial: such a config would lose the finals


class _OverError(Exception):
    """The time is over."""


class UntunableError(TuningError):
    """A workload that cannot be tuned; the session may go on with others."""


@dataclass(frozen=True)
class Progress:
    """A session's progress with a workload.

    Parameters
    ----------
    workload
        The workload that is measured, with int dims.
    done, total
        Trials that were measured, and all trials.
    failed, failure
        How many of them failed, and why the first failed.
    default
        Median seconds of a call of the default; None before its trial.
    seconds
        The seconds of each trial in turn; None for a failure.
    phase
        ``"trials"`` or ``"finalists"``.
    resumed
        How many of the trials an earlier run had measured.
    """

    workload: Workload
    total: int = 0
    seconds: Sequence[float | None] = ()
    failure: str | None = None
    phase: str = "trials"
    resumed: int = 0

    @property
    def done(self) -> int:
        """How many trials were measured."""
        return len(self.seconds)

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return sum(each is None for each in self.seconds)

    @property
    def default(self) -> float | None:
        """The default's seconds; None before its trial."""
        return self.seconds[0] if self.seconds else None

    @property
    def best(self) -> float | None:
        """The least seconds so far."""
        return min((each for each in self.seconds if each is not None), default=None)


Observer = Callable[[Progress], None]


@dataclass
class Run:
    """The measuring of one workload.

    Parameters
    ----------
    task
        What is tuned.
    measurer
        Measures the configs.
    journal
        The trials of earlier sessions; those of this one are added.
    observe
        Called with the progress, at every step.
    effort
        How many configs meet in the finals, and how often; how the time is divided.
    """

    task: Task
    measurer: Measurer
    journal: Journal
    observe: Observer
    effort: Effort = EFFORTS["full"]

    def __post_init__(self) -> None:
        self._known = self.journal.read()
        self._trials: list[tuple[Any, Trial]] = []
        self._progress = Progress(self.task.points[-1])
        self._total = self._resumed = 0
        self._until = self._deadline = math.inf  # of the trials, and of the finals
        self._pace = 0.0  # seconds that a config took; 0 if that is not known
        self._taken, self._rounds = 0.0, 0  # seconds of a finalist in so many rounds, the last time
        self._is_cut_short = False  # the time was over before the trials, or before the finals
        self.has_met = False  # the default has met other configs, and the finals came to their end
        self.has_begun = len(self._known) > 1  # more than the default was measured before

    def told(self) -> dict[str, Any]:
        """What `Outcome` says of it."""
        progress = self._progress
        return {
            "resumed": progress.resumed,
            "forgotten": self.journal.forgotten,
            "ended_early": progress.done < progress.total or self._is_cut_short,
            "late": self.late,
            "knobs": knobs_of([trial for _, trial in self._trials]),
            "seconds": progress.seconds,
        }

    def end_by(self, deadline: float) -> None:
        """Try configs in the effort's share of the time, and have the finals in the rest."""
        now = time.monotonic()
        self._until = now + self.effort.for_trials * (deadline - now)
        self._deadline = deadline

    @property
    def late(self) -> str:
        """That the time was over; empty if it was not."""
        return doubt.late(len(self._trials), self._total) if self._is_cut_short else ""

    def seconds_of(self, config: Any) -> float | None:
        """The median seconds of a config that was measured; None if it failed."""
        trial = self._known.get(config_key(asdict(config)))
        return None if trial is None else trial.seconds

    def look(self, default: Any) -> float:
        """Measure the default, which is trial 0.

        If its time differs from an earlier session's, the machine was busy then or is now: that
        session's trials are forgotten.
        """
        before = self.seconds_of(default)
        trial = next(self._measure([default]))
        if trial.seconds is None:
            raise UntunableError(
                f"{self.task.workload.name}: the default config failed: {trial.failure}"
            )
        before = before or trial.seconds
        if max(trial.seconds / before, before / trial.seconds) > LOST:
            self.journal.close()
            self.journal.append(trial)
            self.journal.forgotten += len(self._known) - 1
            self._known = {config_key(trial.config): trial}
        return trial.seconds

    def trials(self, total: int, batches: Iterable[list[Any]]) -> list[Trial]:
        """Measure the configs that a search proposes, unless an earlier session has done so."""
        self._total = total
        for batch in batches:
            keys = [config_key(asdict(config)) for config in batch]
            if not self._trials and keys[0] not in self.journal.own:
                self.look(batch[0])
            before = [key for key in keys if key in self._known]
            self._resumed += len({*before} - self.journal.own)
            done = [self._known[key] for key in before]
            new = [each for each, key in zip(batch, keys, strict=True) if key not in before]
            for trial in self._measure(new):
                done.append(trial)
                self._show(done)
            pairs = zip(batch, map(self._known.get, keys), strict=True)
            self._trials += [(config, trial) for config, trial in pairs if trial]
            self._show()
            if self._is_late(self._pace):
                self._is_cut_short = len(self._trials) < self._total
                break
        return [trial for _, trial in self._trials]

    @property
    def promised(self) -> float:
        """Speed-up of the fastest trial over the default's."""
        return (self._progress.default or 0.0) / (self._progress.best or math.inf)

    def finals(self, incumbents: Sequence[Any]) -> tuple[Any, bool, Timing, Timing]:
        """Compare the fastest configs, and those of records that are there, with the default.

        Returns
        -------
        tuple
            The best of them, whether it has won twice, and its times and the default's in the last
            comparison.
        """
        self._show(phase="finalists")
        times = {config: trial.seconds for config, trial in self._trials if trial.seconds}
        default, *ran = times
        ranked = sorted(ran, key=times.__getitem__)
        hopeful = [each for each in ranked if times[each] < LOST * times[default]]
        first, second, last = self.effort.rounds
        if self._pace:
            self._taken = self._pace / 4  # a trial is built, too
            self._rounds = first
        self.has_met = bool(incumbents or ran)
        contest = {default: Timing((times[default],))}
        try:
            met = [*hopeful[: self.effort.finalists], *incumbents]
            contest = self._turns(default, met, first)
            ahead = [each for each in contest if contest[each].ratio(contest[default]) > GAIN]
            if ahead:
                contest = self._turns(default, ahead, second)
            others = [each for each in contest if each != default]
            best = max(
                others, key=lambda each: contest[each].ratio(contest[default]), default=default
            )
            if wins(contest[best], contest[default]):
                duel = self._turns(default, [best], last)
                if best in duel:
                    return best, wins(duel[best], duel[default]), duel[best], duel[default]
        except _OverError:
            self.has_met = False
            self._is_cut_short = True
            best = default
        return best, False, contest[best], contest[default]

    def _is_late(self, needed: float = 0.0) -> bool:
        """Whether the time is over; the default is measured in any case."""
        return bool(self._known) and time.monotonic() + needed > self._until

    def _measure(self, configs: Sequence[Any]) -> Iterator[Trial]:
        """Measure configs, as many at once as there is time for."""
        left = configs
        while left:
            now = time.monotonic()
            most = self.measurer.batch
            if self._until < math.inf:
                fit = (self._until - now) / self._pace if self._pace else most // BATCH
                most = max(1, min(most, int(fit)))
            yield from self._measured(left[:most])
            self._pace = (time.monotonic() - now) / len(left[:most])
            left = left[most:]
            if self._is_late(self._pace):
                return

    def _measured(self, configs: Sequence[Any]) -> Iterator[Trial]:
        """Measure configs, each at every size, as long as there is time."""
        candidates = zip(*map(self.task.candidates, configs), strict=True)
        by_size = itertools.chain.from_iterable(candidates)
        parts: dict[object, list[Measurement]] = {}
        for measurement in self.measurer.measure(by_size):
            own = parts.setdefault(measurement.candidate.code, [])
            own.append(measurement)
            if len(own) == len(self.task.points):
                yield self._keep(own)
                if self._is_late():
                    return

    def _turns(self, default: Any, others: Iterable[Any], rounds: int) -> dict[Any, Timing]:
        """Times of the default and of those of the configs that did not fail, in turns.

        Raises _OverError if they would not end by the deadline: by the times of the comparison
        before, and by what a round takes more.
        """
        configs = list(dict.fromkeys([default, *others]))
        begun = time.monotonic()
        more = (rounds - self._rounds) * len(self.task.points)
        needed = self._taken + more * (WARM_UP + 2 * (self._progress.default or 0.0))
        if begun + len(configs) * needed > self._deadline:
            raise _OverError
        candidates = zip(*map(self.task.candidates, configs), strict=True)
        measured = [self.measurer.interleave(each, rounds) for each in candidates]
        self._rounds = rounds
        self._taken = (time.monotonic() - begun) / len(configs)
        found = {}
        for config, *parts in zip(configs, *measured, strict=True):
            by_size = [part.seconds for part in parts if part.seconds]
            if len(by_size) == len(parts):
                rounds_of_all = zip(*by_size, strict=True)
                found[config] = Timing(tuple(map(statistics.geometric_mean, rounds_of_all)))
        if default not in found:
            raise UntunableError(
                f"{self.task.workload.name}: the default config failed in the finals"
            )
        return found

    def _keep(self, parts: Sequence[Measurement]) -> Trial:
        """Put a config's measurements, one for each size, into the journal."""
        failure = next((part.failure for part in parts if part.failure), None)
        medians = [Timing(part.seconds).median for part in parts if part.seconds]
        seconds = None if failure else statistics.geometric_mean(medians)
        trial = Trial(parts[0].candidate.config, seconds, failure)
        self.journal.append(trial)
        self._known[config_key(trial.config)] = trial
        return trial

    def _show(self, batch: Sequence[Trial] = (), phase: str = "trials") -> None:
        """Show the progress, with the trials of a batch that is not complete."""
        trials = [*(trial for _, trial in self._trials), *batch]
        failures = (trial.failure for trial in trials if trial.seconds is None)
        self._progress = Progress(
            self._progress.workload,
            self._total,
            [trial.seconds for trial in trials],
            next(failures, None),
            phase,
            self._resumed,
        )
        self.observe(self._progress)


def wins(timing: Timing, default: Timing) -> bool:
    """Whether a config is faster than the default by `GAIN` in three of four turns, and at best.

    A kernel compared with itself won so in 1 of 144 pairs. If other programs use the cores, a
    config that runs on more cores loses most turns, but not its best one: hence the second
    condition.
    """
    usual = timing.ratios(default).quantile(0.25)
    best = default.quantile(0) / timing.quantile(0)
    return min(usual, best) > GAIN
