"""The trials of one workload, and which config wins.

The default config is trial 0. The search proposes the others. Then the fastest few and the default
take turns. The best of them must win twice to replace the default, so that noise alone does not.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from te_select.timing.cores import BUSY
from te_select.timing.rounds import Timing
from te_select.tuning.journal import Journal, Trial, config_key
from te_select.tuning.measuring import Measurement, Measurer
from te_select.tuning.record import Observer, Progress, UntunableError
from te_select.tuning.task import Task
from te_select.tuning.worth import Knob, knobs_of

FINALISTS = 4
LOST = 1.1  # times the default's time, in its trial: such a config would lose the finals
FIRST_ROUNDS = 5  # whoever is not ahead after these has lost
ROUNDS, DUEL_ROUNDS = 15, 25
SPREAD = 0.5  # the middle half of the rounds, as a share of their median
GAIN = 1.01  # in three of four turns; a kernel compared with itself won so in 1 of 144 pairs


@dataclass(frozen=True)
class Final:
    """What the finals have found.

    Parameters
    ----------
    config, default
        The config that won, and the default.
    seconds, default_seconds
        Their median seconds for a call.
    spread
        How far the rounds of the last comparison lay apart, as `Timing.spread` says.
    """

    config: Any
    seconds: float
    default: Any
    default_seconds: float
    spread: float

    def doubt(self, busy: float) -> str:
        """Say why it cannot be trusted.

        Parameters
        ----------
        busy
            How many cores other programs used meanwhile, beyond those to spare.

        Returns
        -------
        str
            The reasons, in one line; empty if there is none.
        """
        reasons = []
        if busy > BUSY:
            reasons.append(f"other programs used {busy:.2f} cores meanwhile")
        if self.spread > SPREAD:
            reasons.append(f"the rounds lay {self.spread:.0%} apart")
        if reasons and self.config != self.default:
            seemed = self.default_seconds / self.seconds
            reasons.append(f"a config that seemed {seemed:.2f} times as fast is not recorded")
        return "; ".join(reasons)

    def without_winner(self) -> Final:
        """As if the default had won."""
        return replace(self, config=self.default, seconds=self.default_seconds)


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
    until
        When no further config is tried, by the monotonic clock.
    """

    def __init__(
        self,
        task: Task,
        measurer: Measurer,
        journal: Journal,
        observe: Observer,
        until: float = math.inf,
    ) -> None:
        self._task = task
        self._measurer = measurer
        self._journal = journal
        self._observe = observe
        self._until = until
        self._known = journal.read()
        self._trials: list[tuple[Any, Trial]] = []
        self._progress = Progress(task.points[-1])

    @property
    def resumed(self) -> int:
        """How many of the trials an earlier run had measured."""
        return self._progress.resumed

    @property
    def has_begun(self) -> bool:
        """Whether more than the default was measured, in this session or an earlier one."""
        return len(self._known) > 1

    @property
    def knobs(self) -> list[Knob]:
        """What each knob was worth."""
        return knobs_of([trial for _, trial in self._trials])

    def seconds_of(self, config: Any) -> float | None:
        """The median seconds of a config that was measured; None if it failed."""
        return self._trial(config).seconds

    def trials(self, total: int, batches: Iterable[list[Any]]) -> list[Trial]:
        """Measure the configs that a search proposes, unless an earlier session has done so."""
        self._progress = replace(self._progress, total=total)
        for batch in batches:
            new = [config for config in batch if config_key(asdict(config)) not in self._known]
            known = [self._trial(config) for config in batch if config not in new]
            before = sum(config_key(trial.config) not in self._journal.own for trial in known)
            self._progress = replace(self._progress, resumed=self.resumed + before)
            for trial in self._measure(new):
                known.append(trial)
                self._show(known)
            done = [config for config in batch if config_key(asdict(config)) in self._known]
            self._trials += [(config, self._trial(config)) for config in done]
            if self._trials[0][1].seconds is None:
                raise UntunableError(
                    f"{self._task.workload.name}: the default config failed: "
                    f"{self._trials[0][1].failure}"
                )
            self._show()
            if self._is_late():
                break
        return [trial for _, trial in self._trials]

    def _is_late(self) -> bool:
        """Whether the time is over; the default is measured in any case."""
        return bool(self._known) and time.monotonic() > self._until

    def _measure(self, configs: Sequence[Any]) -> Iterator[Trial]:
        """Measure configs, each at every size, as long as there is time."""
        candidates = zip(*map(self._task.candidates, configs), strict=True)
        by_size = itertools.chain.from_iterable(candidates)
        parts: dict[object, list[Measurement]] = {}
        for measurement in self._measurer.measure(list(by_size)):
            own = parts.setdefault(measurement.candidate.code, [])
            own.append(measurement)
            if len(own) == len(self._task.points):
                yield self._keep(own)
                if self._is_late():
                    return

    def finals(self) -> Final:
        """Compare the fastest configs with the default, in turns."""
        self._progress = replace(self._progress, phase="finalists")
        self._observe(self._progress)
        default, of_default = self._trials[0]
        most = LOST * (of_default.seconds or math.inf)
        timed = [(trial.seconds, i) for i, (_, trial) in enumerate(self._trials) if trial.seconds]
        hopeful = [self._trials[i][0] for seconds, i in sorted(timed) if i and seconds < most]
        fastest = hopeful[:FINALISTS]
        contest = self._against(default, fastest, FIRST_ROUNDS)
        ahead = [each for each in contest if contest[each].ratio(contest[default]) > GAIN]
        if ahead:
            contest = self._against(default, ahead, ROUNDS)
        ratios = {each: contest[each].ratio(contest[default]) for each in contest}
        others = (each for each in contest if each != default)
        best = max(others, key=lambda each: ratios[each], default=default)
        final = _final(contest, best, default)
        if not wins(contest[best], contest[default]):
            return final.without_winner()
        second = self._turns([default, best], DUEL_ROUNDS)
        if set(second) != {default, best}:
            return final.without_winner()
        final = _final(second, best, default)
        return final if wins(second[best], second[default]) else final.without_winner()

    def _against(self, default: Any, configs: Sequence[Any], rounds: int) -> dict[Any, Timing]:
        """Times of the default and of the configs that did not fail."""
        found = self._turns([default, *configs], rounds)
        if default not in found:
            raise UntunableError(
                f"{self._task.workload.name}: the default config failed in the finals"
            )
        return found

    def _turns(self, configs: Sequence[Any], rounds: int) -> dict[Any, Timing]:
        """Times of the configs that did not fail."""
        if not configs:
            return {}
        by_size = zip(*map(self._task.candidates, configs), strict=True)
        measured = [self._measurer.interleave(each, rounds) for each in by_size]
        times = zip(configs, zip(*measured, strict=True), strict=True)
        joined = {config: _joined([part.seconds for part in parts]) for config, parts in times}
        return {config: timing for config, timing in joined.items() if timing is not None}

    def _trial(self, config: Any) -> Trial:
        return self._known[config_key(asdict(config))]

    def _keep(self, parts: Sequence[Measurement]) -> Trial:
        """Put a config's measurements, one for each size, into the journal."""
        failure = next((part.failure for part in parts if part.seconds is None), None)
        medians = [(Timing(part.seconds).median,) for part in parts if part.seconds is not None]
        timing = _joined(medians) if len(medians) == len(parts) else None
        seconds = None if timing is None else timing.median
        trial = Trial(dict(parts[0].candidate.config), seconds, failure)
        if not self._trials and seconds is None:
            raise UntunableError(
                f"{self._task.workload.name}: the default config failed: {failure}"
            )
        self._journal.append(trial)
        self._known[config_key(trial.config)] = trial
        return trial

    def _show(self, batch: Sequence[Trial] = ()) -> None:
        """Show the progress, with the trials of a batch that is not complete."""
        trials = [trial for _, trial in self._trials] + list(batch)
        failures = [trial.failure for trial in trials if trial.seconds is None]
        self._progress = replace(
            self._progress,
            done=len(trials),
            default=trials[0].seconds,
            best=min((t.seconds for t in trials if t.seconds is not None), default=None),
            failed=len(failures),
            failure=failures[0] if failures else None,
        )
        self._observe(self._progress)


def _joined(sizes: Sequence[tuple[float, ...] | None]) -> Timing | None:
    """The geometric mean of the times at each size, round by round; None if one has failed."""
    known = [seconds for seconds in sizes if seconds is not None]
    if len(known) < len(sizes):
        return None
    if len(known) == 1:
        return Timing(known[0])
    return Timing(tuple(map(statistics.geometric_mean, zip(*known, strict=True))))


def _final(timed: dict[Any, Timing], best: Any, default: Any) -> Final:
    mine, its = timed[best], timed[default]
    return Final(best, mine.median, default, its.median, mine.ratios(its).spread)


def wins(timing: Timing, default: Timing) -> bool:
    """Whether a config is faster than the default by `GAIN` in three of four turns, and at best.

    If other programs use the cores, a config that runs on more cores loses most turns, but not its
    best one. Hence the second condition.
    """
    usual = timing.ratios(default).quantile(0.25)
    best = default.quantile(0) / timing.quantile(0)
    return min(usual, best) > GAIN
