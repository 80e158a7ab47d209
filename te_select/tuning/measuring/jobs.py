"""Jobs for several servers: handed out, taken back if a server is lost, and collected."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
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
    servers
        How many servers are connected at the beginning.
    """

    def __init__(self, jobs: Sequence[Job], servers: int) -> None:
        self._changed = threading.Condition()
        self._waiting = deque(jobs)
        self._open = len(jobs)
        self._answers: deque[tuple[Job, dict[str, Any]]] = deque()
        self._servers = servers
        self._last_seen = time.monotonic()
        self._reason = "none has become free"
        self._error: Exception | None = None

    def take(self) -> Job | None:
        """The next job, once there is one; None when all are done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._open)
            return self._waiting.popleft() if self._open else None

    def done(self, job: Job, answer: dict[str, Any]) -> None:
        """Hand in an answer."""
        with self._changed:
            if self._open:
                self._open -= 1
                self._answers.append((job, answer))
            self._changed.notify_all()

    def lost(self, job: Job, why: str) -> None:
        """Hand back a job over which a server was lost."""
        self.disconnected(why)
        job.losses += 1
        if job.losses >= MOST_LOSSES:
            self.done(
                job, {"failure": f"the run lost {job.losses} servers, as a crash does: {why}"}
            )
            return
        with self._changed:
            self._waiting.append(job)
            self._changed.notify_all()

    def connected(self) -> None:
        """Say that a server is there."""
        with self._changed:
            self._servers += 1

    def disconnected(self, why: str) -> None:
        """Say that a server is no longer connected."""
        with self._changed:
            self._servers -= 1
            self._last_seen = time.monotonic()
            self._reason = why

    def refused(self, why: str) -> None:
        """Say why no server could be got."""
        with self._changed:
            self._reason = why

    def failed(self, error: Exception) -> None:
        """Say that measuring itself does not work."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake every thread that waits for a job; there are no more jobs."""
        with self._changed:
            self._open = 0
            self._changed.notify_all()

    def is_over(self) -> bool:
        """Whether no job is left."""
        with self._changed:
            return not self._open

    def answers(self, patience: float) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Wait for the answers.

        Parameters
        ----------
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
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._answers or not self._open, _POLL)
                if self._error is not None:
                    raise self._error
                if not self._answers and not self._open:
                    return
                waited = time.monotonic() - self._last_seen
                if not self._answers and not self._servers and waited > patience:
                    raise TuningError(
                        f"no server was there for {patience:g} s: {self._reason}; expected one to "
                        "come back"
                    )
                ready, self._answers = self._answers, deque()
            yield from ready
