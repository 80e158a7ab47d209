"""The trials of one workload, and which config wins.

The default config is trial 0. The search proposes the others. Then the fastest few and the default
take turns. The best of them must win twice to replace the default, so that noise alone does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from te_select.operator.workload import Workload
from te_select.timing.rounds import Timing
from te_select.tuning.journal import Journal, Trial, config_key
from te_select.tuning.measuring import Candidate, Measurement, Measurer
from te_select.tuning.record import Observer, Progress, UntunableError
from te_select.tuning.search import Search

FINALISTS = 4
ROUNDS, DUEL_ROUNDS = 15, 25
GAIN = 1.01  # in three of four turns; a kernel compared with itself won so in 1 of 144 pairs


class Run:
    """The measuring of one workload.

    Parameters
    ----------
    workload
        The workload, of int dims.
    target
        The target as `te_select.compile` takes it.
    measurer
        Measures the configs.
    journal
        The trials of earlier sessions; those of this one are added.
    observe
        Called with the progress, at every step.
    """

    def __init__(
        self,
        workload: Workload,
        target: str,
        measurer: Measurer,
        journal: Journal,
        observe: Observer,
    ) -> None:
        self._workload = workload
        self._target = target
        self._measurer = measurer
        self._journal = journal
        self._observe = observe
        self._known = journal.read()
        self._trials: list[tuple[Any, Trial]] = []
        self._progress = Progress(workload)

    def trials(self, search: Search) -> list[Trial]:
        """Measure the configs that the search proposes, unless an earlier session has done so."""
        self._progress = replace(self._progress, total=search.total)
        while batch := search.ask():
            new = [config for config in batch if config_key(asdict(config)) not in self._known]
            known = len(batch) - len(new)
            self._progress = replace(
                self._progress,
                done=len(self._trials) + known,
                resumed=self._progress.resumed + known,
            )
            for measurement in self._measurer.measure([self._candidate(each) for each in new]):
                self._keep(measurement)
            self._count(batch)
            search.tell([trial.seconds for _, trial in self._trials[-len(batch) :]])
        return [trial for _, trial in self._trials]

    def finals(self) -> tuple[Any, float, float]:
        """Compare the fastest configs with the default, in turns.

        Returns
        -------
        tuple
            The config to record, its seconds, and the default's.
        """
        self._progress = replace(self._progress, phase="finalists")
        self._observe(self._progress)
        default = self._trials[0][0]
        timed = [(trial.seconds, i) for i, (_, trial) in enumerate(self._trials) if trial.seconds]
        fastest = [self._trials[i][0] for _, i in sorted(timed) if i][:FINALISTS]
        first = self._turns([default, *fastest], ROUNDS)
        winners = {c: first[c].ratio(first[default]) for c in fastest if c in first}
        if default not in first:
            raise UntunableError(f"{self._workload.name}: the default config failed in the finals")
        best = max(winners, key=lambda config: winners[config], default=default)
        if best == default or not wins(first[best], first[default]):
            return default, first[default].median, first[default].median
        second = self._turns([default, best], DUEL_ROUNDS)
        if set(second) != {default, best}:
            return default, first[default].median, first[default].median
        if not wins(second[best], second[default]):
            return default, second[default].median, second[default].median
        return best, second[best].median, second[default].median

    def _turns(self, configs: Sequence[Any], rounds: int) -> dict[Any, Timing]:
        """Times of the configs that did not fail."""
        if not configs:
            return {}
        candidates = [self._candidate(config) for config in configs]
        measured = self._measurer.interleave(candidates, rounds)
        return {
            config: Timing(one.seconds)
            for config, one in zip(configs, measured, strict=True)
            if one.seconds is not None
        }

    def _candidate(self, config: Any) -> Candidate:
        return Candidate(self._workload, self._target, asdict(config))

    def _keep(self, measurement: Measurement) -> None:
        """Put a measurement into the journal."""
        seconds = None if measurement.seconds is None else Timing(measurement.seconds).median
        trial = Trial(dict(measurement.candidate.config), seconds, measurement.failure)
        if not self._trials and seconds is None:
            raise UntunableError(
                f"{self._workload.name}: the default config failed: {measurement.failure}"
            )
        self._journal.append(trial)
        self._known[config_key(trial.config)] = trial
        self._show(trial)

    def _count(self, batch: Sequence[Any]) -> None:
        self._trials += [(each, self._known[config_key(asdict(each))]) for each in batch]
        best = min((t.seconds for _, t in self._trials if t.seconds is not None), default=None)
        failures = [t.failure for _, t in self._trials if t.seconds is None]
        self._progress = replace(
            self._progress,
            done=len(self._trials),
            default=self._trials[0][1].seconds,
            best=best,
            failed=len(failures),
            failure=failures[0] if failures else None,
        )
        self._observe(self._progress)

    def _show(self, trial: Trial) -> None:
        """Show a trial before its batch is complete and counted."""
        now, failed = self._progress, trial.seconds is None
        times = [time for time in (now.best, trial.seconds) if time is not None]
        self._progress = replace(
            now,
            done=now.done + 1,
            best=min(times, default=None),
            failed=now.failed + failed,
            failure=now.failure or (trial.failure if failed else None),
        )
        self._observe(self._progress)


def wins(timing: Timing, default: Timing) -> bool:
    """Whether a config is faster than the default by `GAIN` in three of four turns, and at best.

    If other programs use the cores, a config that runs on more cores loses most turns, but not its
    best one. Hence the second condition.
    """
    pairs = zip(timing.seconds, default.seconds, strict=True)
    usual = Timing(tuple(its / mine for mine, its in pairs)).quantile(0.25)
    best = default.quantile(0) / timing.quantile(0)
    return min(usual, best) > GAIN
