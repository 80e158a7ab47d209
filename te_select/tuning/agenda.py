"""A session of many workloads: what each may gain is measured first, and the most is tuned first.

A workload whose default config is near the roof of the machine is passed over. If the session has a
limit of time, each workload may take an equal share of what is left when its turn comes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from te_select import kinds
from te_select.operator.access import access_pattern
from te_select.tuning.record import Observer, Outcome, Record, UntunableError
from te_select.tuning.runners import LOCAL
from te_select.tuning.session import Session
from te_select.tuning.task import Task

NEAR_ROOF = 0.97  # of the roof; a config must gain 1 % twice to win, and a probe varies by 2 %
OUT_OF_TIME = "the time was over; the same command goes on with it"


@dataclass(frozen=True)
class Job:
    """A workload to tune with one session.

    Parameters
    ----------
    name
        What it is called.
    session, task
        What tunes it, and what is tuned.
    seconds, roof
        The default's time, and the bandwidth of the roof in bytes per second, once they are known.
        The bytes are those of `moved`; the probe has moved as many as are `needed`.
    """

    name: str
    session: Session
    task: Task
    seconds: float | None = None
    roof: float | None = None

    @property
    def moved(self) -> int:
        """Bytes of a call, at the largest sizes."""
        return access_pattern(self.task.points[-1]).bytes_moved()

    @property
    def needed(self) -> int:
        """Bytes of a call that reads only what the cond of the timing selects."""
        mask = self.task.mask
        block = 1 if mask.file else mask.block
        return access_pattern(self.task.points[-1]).bytes_needed(mask.density / 100, block)

    @property
    def to_gain(self) -> float:
        """Seconds of a call beyond those that the roof needs."""
        return (self.seconds or 0.0) - (self.moved / self.roof if self.roof else 0.0)

    def outcome(self, record: Record | None = None) -> Outcome:
        """What became of it."""
        return Outcome(
            self.name, record, roof_bytes_per_second=self.roof, default_seconds=self.seconds
        )


def roof_of(kind: str, moved: int) -> float | None:
    """The roof of this machine for so many bytes, in bytes per second; None if it has none."""
    found: float | None = kinds.load(kinds.kind(kind).roof)(moved)
    return found


class Agenda:
    """The jobs of a session, in the order in which they are tuned.

    Parameters
    ----------
    jobs
        The jobs.
    every
        Whether to tune those near the roof as well.
    seconds
        The most that the session may take.
    """

    def __init__(self, jobs: Sequence[Job], *, every: bool, seconds: float = math.inf) -> None:
        self._jobs = jobs
        self._every = every
        self._until = time.monotonic() + seconds

    def run(self, begin: Callable[[Job], None], observe: Observer) -> Iterator[Outcome]:
        """Do the jobs.

        Parameters
        ----------
        begin
            Called with each job that begins: when its default is measured, and when it is tuned.
        observe
            Called with the progress, at every step.

        Yields
        ------
        Outcome
            One for each job, once it is known.
        """
        waiting: list[Job] = []
        for job in self._jobs:
            found = self._look(job, begin, observe)
            if isinstance(found, Outcome):
                yield found
            else:
                waiting.append(found)
        waiting.sort(key=lambda job: -job.to_gain)
        for number, job in enumerate(waiting):
            begin(job)
            yield self._tune(job, observe, len(waiting) - number)

    def _look(self, job: Job, begin: Callable[[Job], None], observe: Observer) -> Job | Outcome:
        """Measure what there is to gain; the outcome if that is all."""
        session = job.session
        if not session.options.force and (record := session.find(job.task)):
            return replace(job.outcome(record), fresh=False, knobs=session.kept_knobs(job.task))
        if time.monotonic() > self._until:
            return replace(job.outcome(), passed_over=OUT_OF_TIME)
        begin(job)
        try:
            seconds = session.look(job.task, observe)
        except UntunableError as error:
            return replace(job.outcome(), error=str(error))
        has_roof = session.runner == LOCAL and not job.task.ranges
        roof = roof_of(session.target.kind, job.needed) if has_roof else None
        if roof is not None:
            roof *= job.moved / job.needed
        job = replace(job, seconds=seconds, roof=roof)
        share = job.moved / seconds / roof if roof else 0.0
        begun = session.last_run is not None and session.last_run.has_begun
        if share < NEAR_ROOF or self._every or begun:
            return job
        why = f"the default reaches {share:.0%} of the roof; --all tunes it"
        return replace(job.outcome(), passed_over=why)

    def _tune(self, job: Job, observe: Observer, left: int) -> Outcome:
        """Tune one of the jobs that are left, in its share of the time."""
        now = time.monotonic()
        if now > self._until:
            return replace(job.outcome(), passed_over=OUT_OF_TIME)
        try:
            record = job.session.tune(job.task, observe, now + (self._until - now) / left)
        except UntunableError as error:
            return replace(job.outcome(), error=str(error))
        run = job.session.last_run
        if run is None:  # another session has tuned it meanwhile
            return replace(job.outcome(record), fresh=False)
        return replace(job.outcome(record), resumed=run.resumed, knobs=run.knobs)
