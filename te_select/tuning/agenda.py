"""A session of many workloads: what each may gain is measured first, and the most is tuned first.

A workload whose default is near the roof is measured once more, on idle cores; if it is near again,
it is skipped. Under a limit of time, a third may go into these looks. Each workload may take an
equal share of what is left when its turn comes. One whose outcome is unsure has another turn after
the others, as long as there is time.

Records outlive TVM: those of other versions are candidates, each compared with the default.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from te_select.backends import schedule_of
from te_select.base import kinds
from te_select.errors import ArgumentError, SelectError
from te_select.operator.access import access_pattern
from te_select.records import doubt, log
from te_select.records.log import Record
from te_select.tuning.journal import Knob
from te_select.tuning.options import LOCAL
from te_select.tuning.session import Session
from te_select.tuning.task import Task
from te_select.tuning.trials import Observer, UntunableError

NEAR_ROOF = 0.97  # of the roof; a config must gain 1 % twice to win, and a probe varies by 2 %
BEYOND_ROOF = 4 / 3  # of the roof; no kernel moves so much more than a probe, so one time is wrong
LOOKING = 1 / 3  # of a session's time
AGAIN = 2  # times the time of a turn; in less, another one finds nothing out
OUT_OF_TIME = "the time was over; the same command goes on with it"
WON = "the default is as fast now; the old record is not taken over"


@dataclass(frozen=True)
class Outcome:
    """What became of a workload.

    Parameters
    ----------
    name
        The workload.
    record
        Its record; None if it has none.
    error
        Why it has none, if that is a failure.
    fresh
        Whether it was tuned now, rather than before.
    roof_bytes_per_second
        What a probe moved; None if it was not measured.
    resumed
        How many of its trials an earlier run had measured.
    forgotten
        How many of an earlier run were of no use, as the default's time had changed.
    default_seconds
        What a call took before the search; None if it was not measured.
    passed_over
        Why it has no record, if that is no failure.
    ended_early
        Whether the search ended before its trials: nothing untried was predicted to be faster, or
        the time was over.
    late
        That the time was over, and after how many trials; empty if it was not.
    knobs
        What each knob was worth, the most first; empty if the trials were not kept.
    seconds
        The seconds of each trial in turn, the default's first; None for a failure.
    """

    name: str
    record: Record | None = None
    error: str | None = None
    fresh: bool = True
    roof_bytes_per_second: float | None = None
    resumed: int = 0
    forgotten: int = 0
    default_seconds: float | None = None
    passed_over: str = ""
    ended_early: bool = False
    late: str = ""
    knobs: Sequence[Knob] = ()
    seconds: Sequence[float | None] = ()


@dataclass
class Job:
    """A workload to tune with one session.

    Parameters
    ----------
    name
        What it is called.
    session, task
        What tunes it, and what is tuned.
    seconds, roof
        What a call of the default takes, and what the roof of the machine takes for the bytes that
        the cond of the timing selects, once that is known.
    """

    name: str
    session: Session
    task: Task
    seconds: float | None = None
    roof: float | None = None

    @property
    def share(self) -> float:
        """What the default reaches of the roof; 0 if that is not known."""
        return self.roof / self.seconds if self.seconds and self.roof else 0.0

    def outcome(self) -> Outcome:
        """What is known of it so far."""
        moved = access_pattern(self.task.points[-1]).bytes_moved()
        roof = moved / self.roof if self.roof else None
        return Outcome(self.name, roof_bytes_per_second=roof, default_seconds=self.seconds)

    def look(self, observe: Observer) -> None:
        """Measure the default and the roof; of several times the better ones stay."""
        seconds = self.session.look(self.task, observe)
        self.seconds = min(seconds, self.seconds or seconds)
        mask = self.task.mask
        if self.session.runner == LOCAL and not self.task.ranges:
            pattern = access_pattern(self.task.points[-1])
            needed = pattern.bytes_needed(mask.density / 100, mask.block)
            if bandwidth := roof_of(self.session.target.kind, needed):
                self.roof = min(needed / bandwidth, self.roof or math.inf)


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
    again
        Whether what is unsure has another turn while there is time. If not, the time begins when
        the first default has been measured: then all processes have imported what they need.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        every: bool,
        seconds: float = math.inf,
        again: bool | None = None,
    ) -> None:
        self._jobs = jobs
        self._every = every
        self._begun = time.monotonic()
        self._seconds = seconds
        self._again = seconds < math.inf if again is None else again
        self._looks: list[float] = []  # seconds of each

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
        waiting = []
        for job in self._jobs:
            try:
                found = self._look(job, begin, observe)
            except UntunableError as error:
                found = replace(job.outcome(), error=str(error))
            if found:
                yield found
            else:
                waiting.append(job)
        # The most seconds of a call beyond those that the roof needs come first.
        waiting.sort(key=lambda job: (job.seconds or 0.0) * (job.share - 1))
        queue = [(job, replace(job.outcome(), passed_over=OUT_OF_TIME), 0.0) for job in waiting]
        while queue:
            job, outcome, needed = queue.pop(0)
            if (left := self._left()) >= max(needed, self._look_time()):
                begin(job)
                outcome = self._tune(job, observe, max(left / (len(queue) + 1), needed))
                if outcome.record and outcome.record.unsure and self._again:
                    # Another turn measures the default anew.
                    queue.append((job, outcome, AGAIN * (left - self._left())))
                    continue
            yield outcome

    def _left(self, share: float = 1.0) -> float:
        """Seconds that are left of a share of the time."""
        return self._begun + share * self._seconds - time.monotonic()

    def _look_time(self) -> float:
        """Seconds of a look, by those that were taken; the processes begin in the first."""
        return statistics.fmean(self._looks[1:] or [0.0])

    def _look(self, job: Job, begin: Callable[[Job], None], observe: Observer) -> Outcome | None:
        """Measure what there is to gain; the outcome if that is all, or None."""
        session = job.session
        if not session.options.force and (record := session.find(job.task)):
            knobs = session.kept_knobs(job.task)
            return replace(job.outcome(), record=record, fresh=False, knobs=knobs)
        is_first = not self._looks and not self._again
        if not is_first and self._left(LOOKING) < self._look_time():
            return None
        begin(job)
        now = time.monotonic()
        job.look(observe)
        self._looks.append(time.monotonic() - now)
        if is_first:
            self._begun = time.monotonic()
        begun = session.last_run and session.last_run.has_begun
        has_time = self._left(LOOKING) >= self._look_time()
        if job.share < NEAR_ROOF or self._every or begun or not has_time:
            return None
        watch = session.measurer.watch()
        job.look(observe)
        if job.share < NEAR_ROOF:
            return None
        why = f"the default reaches {job.share:.0%} of the roof"
        impossible = "no kernel can" if job.share > BEYOND_ROOF else ""
        if doubts := doubt.reasons(watch.others(), 0.0) or impossible:
            why = f"unsure: {why}, but {doubts}"
        return replace(job.outcome(), passed_over=f"{why}; --all tunes it")

    def _tune(self, job: Job, observe: Observer, seconds: float) -> Outcome:
        """Tune one of the jobs that are left, in its share of the time."""
        try:
            record = job.session.tune(job.task, observe, time.monotonic() + seconds)
            run = job.session.last_run
        except (ArgumentError, UntunableError) as error:
            return replace(job.outcome(), error=str(error))
        told = run.told() if run else {"fresh": False}  # another session has tuned it meanwhile
        return replace(job.outcome(), record=record, **told)


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
    for entry in log.read(session.folder).entries:
        if entry.unsure or entry.session["versions"] == session.versions:
            continue
        try:
            config = schedule_of(session.target.kind).config_from(entry.config)
            task = session.task_of(entry)
            config.checked(access_pattern(task.kernel_workload), session.target.tvm)
            begin(Job(entry.key, session, task))
            record = session.tune(task, observe, only=(config,))
        except (ValueError, SelectError) as error:
            yield Outcome(entry.key, error=str(error))
            continue
        found = Outcome(entry.key, record, default_seconds=record.default_seconds)
        lost = record.default_won and not record.unsure
        yield replace(found, record=None, passed_over=WON) if lost else found
