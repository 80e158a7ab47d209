"""Builds candidates in several workers at once."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from te_select.tuning.measuring.candidate import Built, Candidate, Measurement
from te_select.tuning.measuring.process import Worker, WorkerError

BUILD_WORKER = "te_select.tuning.measuring.build_worker"


class Builders:
    """Build workers.

    Parameters
    ----------
    folder
        Where libraries are written, each into a folder of its own.
    jobs
        How many workers there are.
    timeout
        Seconds that a build may take.
    """

    def __init__(self, folder: Path, jobs: int, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout
        self._workers = [Worker(BUILD_WORKER, folder) for _ in range(jobs)]
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(jobs, "te_select-build")
        self._numbers = itertools.count()

    def build(self, candidates: Sequence[Candidate]) -> list[Built | Measurement]:
        """Build candidates; when this returns or raises, all building has ended.

        Parameters
        ----------
        candidates
            What to build.

        Returns
        -------
        list of Built or Measurement
            One for each candidate, in their order; a measurement if it failed.

        Raises
        ------
        TuningError
            If no worker can be started.
        """
        futures = [self._threads.submit(self._build, candidate) for candidate in candidates]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            for worker in self._workers:
                worker.interrupt()
            wait(futures)
            for worker in self._workers:
                worker.kill()  # waits for its end, so that the next request starts a new process
            raise

    def close(self) -> None:
        """End the workers."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()

    def _build(self, candidate: Candidate) -> Built | Measurement:
        path = self._folder / f"build{next(self._numbers)}" / f"{candidate.workload.name}.so"
        worker = self._idle.get()
        try:
            failure = worker.request(self._timeout, "build", candidate, path).get("failure")
        except WorkerError as error:
            failure = f"the build {error}"
        finally:
            self._idle.put(worker)
        return Measurement(candidate, None, failure) if failure else Built(candidate, path)
