"""Jobs for several servers: handed out, taken back if a server is lost, and collected."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from te_select.errors import TuningError
from te_select.tuning.measuring.candidate import Built

MOST_LOSSES = 2  # servers lost over one job; then the job counts as their cause
_POLL = 0.2  # seconds between looks at whether a server is left


@dataclass
class Job:
    """Something to run on one server.

    Parameters
    ----------
    built
        The libraries to run, all of one workload.
    rounds
        The turns of each; None for one library that is timed alone.
    losses
        How many servers were lost over it.
    """

    built: Sequence[Built]
    rounds: int | None = None
    losses: int = 0


class Jobs:
    """The jobs of one run; every method may be called from any thread.

    Parameters
    ----------
    jobs
        The jobs.

    Attributes
    ----------
    over
        Set when no job is left.
    reason
        Why the last server was lost, or could not be got.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.over = threading.Event()
        self.reason = "none has become free"
        self._count = len(jobs)
        self._waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Job, dict[str, Any]] | Exception]
        self._answers = queue.SimpleQueue()
        for job in jobs:
            self._waiting.put(job)

    def take(self) -> Job | None:
        """The next job, once there is one; None when all are done."""
        job = self._waiting.get()
        if job is None or self.over.is_set():
            self._waiting.put(None)  # for the other threads
            return None
        return job

    def done(self, job: Job, answer: dict[str, Any]) -> None:
        """Hand in an answer."""
        self._answers.put((job, answer))

    def lost(self, job: Job, why: str) -> None:
        """Hand back a job over which a server was lost."""
        self.reason = why
        job.losses += 1
        if job.losses < MOST_LOSSES:
            self._waiting.put(job)
        else:
            failure = f"the run lost {job.losses} servers, as a crash does: {why}"
            self.done(job, {"failure": failure})

    def failed(self, error: Exception) -> None:
        """Say that measuring itself does not work."""
        self._answers.put(error)

    def stop(self) -> None:
        """Wake every thread that waits for a job; there are no more jobs."""
        self.over.set()
        self._waiting.put(None)

    def answers(
        self, connected: Callable[[], bool], patience: float
    ) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Wait for the answers; then no job is left.

        Parameters
        ----------
        connected
            Whether a server is connected.
        patience
            Seconds to wait for a server if none is connected.

        Yields
        ------
        tuple
            A job and its answer, in the order in which they are done.

        Raises
        ------
        TuningError
            If there was no server for that long.
        """
        try:
            for _ in range(self._count):
                yield self._next(connected, patience)
        finally:
            self.stop()

    def _next(self, connected: Callable[[], bool], patience: float) -> tuple[Job, dict[str, Any]]:
        last_seen = time.monotonic()
        while True:
            try:
                answer = self._answers.get(timeout=_POLL)
            except queue.Empty:
                if connected():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > patience:
                    raise TuningError(
                        f"no server was there for {patience:g} s: {self.reason}; expected one to "
                        "come back"
                    ) from None
                continue
            if isinstance(answer, Exception):
                raise answer
            return answer
