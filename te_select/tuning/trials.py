"""The trials of one workload, and which config wins.

The default config is trial 0. The search proposes the others. Then the fastest few and the default
take turns. The best of them must win twice to replace the default, so that noise alone does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from te_select.operator.workload import Workload
from te_select.timing.cores import BUSY
from te_select.timing.rounds import Timing
from te_select.tuning.journal import Journal, Trial, config_key
from te_select.tuning.measuring import Candidate, Measurement, Measurer
from te_select.tuning.record import Observer, Progress, UntunableError
from te_select.tuning.search import Batches

FINALISTS = 4
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
    member
        As `Candidate.member`.
    """

    def __init__(
        self,
        workload: Workload,
        target: str,
        measurer: Measurer,
        journal: Journal,
        observe: Observer,
        member: Workload | None = None,
    ) -> None:
        self._workload = workload
        self._member = member
        self._target = target
        self._measurer = measurer
        self._journal = journal
        self._observe = observe
        self._known = journal.read()
        self._trials: list[tuple[Any, Trial]] = []
        self._progress = Progress(workload)

    def seconds_of(self, config: Any) -> float | None:
        """The median seconds of a config that was measured; None if it failed."""
        return self._trial(config).seconds

    def trials(self, total: int, batches: Batches) -> list[Trial]:
        """Measure the configs that a search proposes, unless an earlier session has done so."""
        self._progress = replace(self._progress, total=total)
        for batch in batches:
            new = [config for config in batch if config_key(asdict(config)) not in self._known]
            known = [self._trial(config) for config in batch if config not in new]
            self._progress = replace(self._progress, resumed=self._progress.resumed + len(known))
            for measurement in self._measurer.measure([self._candidate(each) for each in new]):
                known.append(self._keep(measurement))
                self._show(known)
            self._trials += [(config, self._trial(config)) for config in batch]
            self._show()
        return [trial for _, trial in self._trials]

    def finals(self) -> Final:
        """Compare the fastest configs with the default, in turns."""
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
        final = _final(first, best, default)
        if not wins(first[best], first[default]):
            return final.without_winner()
        second = self._turns([default, best], DUEL_ROUNDS)
        if set(second) != {default, best}:
            return final.without_winner()
        final = _final(second, best, default)
        return final if wins(second[best], second[default]) else final.without_winner()

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
        return Candidate(self._workload, self._target, asdict(config), self._member)

    def _trial(self, config: Any) -> Trial:
        return self._known[config_key(asdict(config))]

    def _keep(self, measurement: Measurement) -> Trial:
        """Put a measurement into the journal."""
        seconds = None if measurement.seconds is None else Timing(measurement.seconds).median
        trial = Trial(dict(measurement.candidate.config), seconds, measurement.failure)
        if not self._trials and seconds is None:
            raise UntunableError(
                f"{self._workload.name}: the default config failed: {measurement.failure}"
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
