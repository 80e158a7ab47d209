"""Measuring candidates: build some, then run them."""

import contextlib
import itertools
import os
import queue
import shutil
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

from te_select.base import scratch
from te_select.timing.cores import Watch, here
from te_select.tuning.measuring.process import Worker, WorkerError
from te_select.tuning.measuring.run_worker import memory_needed, refusal
from te_select.tuning.task import Built, Candidate, Measurement

BUILD_WORKER = "te_select.tuning.measuring.build_worker"
RUN_WORKER = "te_select.tuning.measuring.run_worker"
MOST_JOBS = 16  # build workers by default; each takes 0.4 GB
BATCH = 4  # candidates per build worker that are built before any is run
RECYCLE_AFTER = 64  # libraries, which stay loaded; a new worker costs 0.3 s and new operands
PREPARE_SECONDS = 60.0
PREPARE_BYTES_PER_SECOND = 20e6  # a tenth of what a loaded machine was seen to make operands at


class Measurer(contextlib.AbstractContextManager["Measurer"]):
    """Compiles candidates in processes of their own, compares them with NumPy, and times them.

    Use it as a context manager, or call `close`. The processes that it starts end with this one.

    Parameters
    ----------
    jobs
        Candidates to build at once; None for one per CPU that this process may use.
    timeout
        Seconds that a candidate may take to be built, and again to be checked and timed.
    """

    machine = ""  # of a fleet, its CPUs in words

    def __init__(self, jobs: int | None, timeout: float) -> None:
        self.jobs = jobs or min(len(os.sched_getaffinity(0)), MOST_JOBS)
        self.timeout = timeout
        self.folder = scratch.make(room=0)
        self._workers = [Worker(BUILD_WORKER, self.folder) for _ in range(self.jobs)]
        self._processes = [*self._workers]  # and those that time
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self.jobs, "te_select-build")
        self._numbers = itertools.count()
        self.batch = BATCH * self.jobs  # candidates that are built before they are run
        self._kept: dict[tuple[object, ...], Path] = {}  # libraries, by `Candidate.code`

    def launch(self) -> None:
        """Begin to start all workers, so that they import side by side."""
        for worker in self._processes:
            worker.launch()

    def measure(self, candidates: Iterable[Candidate]) -> Iterator[Measurement]:
        """Measure candidates.

        Nothing is built while a candidate is timed on this machine. The iterator may be abandoned,
        and another one begun.

        Parameters
        ----------
        candidates
            What to measure; taken from the iterable as needed.

        Yields
        ------
        Measurement
            One for each candidate, in the order in which they are done.

        Raises
        ------
        TuningError
            If measuring itself does not work: no worker can be started, no server is left.
        """
        pending = iter(candidates)
        while batch := list(islice(pending, self.batch)):
            built = self._built(batch)
            yield from (one for one in built if isinstance(one, Measurement))
            yield from self._run([[one] for one in built if isinstance(one, Built)], None)

    def interleave(self, candidates: Sequence[Candidate], rounds: int) -> list[Measurement]:
        """Measure candidates against each other: they take turns in one process, on one memory.

        Parameters
        ----------
        candidates
            Of one workload.
        rounds
            Turns of each; a turn is one sample.

        Returns
        -------
        list of Measurement
            One for each candidate, in their order; ``seconds`` has one number for each round.

        Raises
        ------
        TuningError
            As for `measure`.
        """
        built = self._built(candidates)
        usable = [one for one in built if isinstance(one, Built)]
        turns = iter(list(self._run([usable], rounds)) if usable else ())
        return [one if isinstance(one, Measurement) else next(turns) for one in built]

    def close(self) -> None:
        """End the workers and remove their files."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._processes:
            worker.kill()  # to end by itself takes a process with TVM 0.3 s
        scratch.remove(self.folder)

    @abstractmethod
    def watch(self) -> Watch:
        """Watch from now on how busy other programs keep the machines that time candidates."""

    @abstractmethod
    def _run(self, jobs: Sequence[Sequence[Built]], rounds: int | None) -> Iterator[Measurement]:
        """Check and time libraries: those of a job in turns, or alone if ``rounds`` is None."""

    def _built(self, candidates: Sequence[Candidate]) -> list[Built | Measurement]:
        """Libraries, or what became of the candidates, in their order.

        The libraries stay until another workload is measured: those in the finals were built for
        their trials.
        """
        workloads = {candidate.workload for candidate in candidates}
        for code in [each for each in self._kept if each[0] not in workloads]:
            shutil.rmtree(self._kept.pop(code).parent, ignore_errors=True)
        futures = [self._threads.submit(self._build_one, candidate) for candidate in candidates]
        try:
            built = [future.result() for future in futures]
        except BaseException:  # when this returns or raises, all building has ended
            for future in futures:
                future.cancel()
            for worker in self._workers:
                worker.interrupt()
            wait(futures)
            for worker in self._workers:
                worker.kill()  # waits for its end, so that the next request starts a new process
            raise
        for worker in self._workers:
            if worker.is_running():
                worker.start()  # one that is still importing would disturb what is timed
        self._kept |= {one.candidate.code: one.path for one in built if isinstance(one, Built)}
        return built

    def _build_one(self, candidate: Candidate) -> Built | Measurement:
        if kept := self._kept.get(candidate.code):
            return Built(candidate, kept)
        path = self.folder / f"build{next(self._numbers)}" / f"{candidate.workload.name}.so"
        worker = self._idle.get()
        try:
            told = worker.request(self.timeout, "build_candidate", candidate, path)
            failure = told.get("failure")
        except WorkerError as error:
            failure = f"the build {error}"
        finally:
            self._idle.put(worker)
        return Measurement(candidate, None, failure) if failure else Built(candidate, path)

    def __exit__(self, *_error: object) -> None:
        self.close()


class RunWorker(Worker):
    """A worker that checks and times libraries, on operands that it prepares once a workload."""

    def measure(
        self, built: Sequence[Built], rounds: int | None, limit: float, patience: float = 0.0
    ) -> dict[str, Any]:
        """Check and time libraries of one workload, in at most ``limit`` seconds.

        With ``rounds`` they take turns; one library alone is timed without. The worker is ended
        ``patience`` later. The answer has ``"results"``, one for each library, or ``"failure"``.
        """
        workload, mask = built[0].candidate.problem
        if refused := refusal(workload):
            return {"failure": refused}
        seconds = PREPARE_SECONDS + memory_needed(workload) / PREPARE_BYTES_PER_SECOND
        paths = [one.path for one in built]
        return self.request(seconds, "prepare", workload, mask) or self.request(
            limit + patience, "measure", paths, rounds, limit
        )


class LocalMeasurer(Measurer):
    """Measures on this machine, one candidate at a time."""

    def __init__(self, jobs: int | None, timeout: float) -> None:
        super().__init__(jobs, timeout)
        self._worker = RunWorker(RUN_WORKER, self.folder)
        self._processes.insert(0, self._worker)
        self._libraries = 0

    def watch(self) -> Watch:
        """Watch this machine, also while candidates are built."""
        return Watch(lambda: [here()])

    def _run(self, jobs: Sequence[Sequence[Built]], rounds: int | None) -> Iterator[Measurement]:
        for built in jobs:
            if self._libraries + len(built) > RECYCLE_AFTER:
                self._end_worker()
            self._libraries += len(built)
            try:
                answer = self._worker.measure(built, rounds, self.timeout * len(built))
            except WorkerError as error:
                answer = {"failure": f"the run {error}"}
            found = each_measured(built, answer)
            if any(one.failure for one in found):
                self._end_worker()  # a wrong candidate may have written anywhere
            yield from found

    def _end_worker(self) -> None:
        self._worker.kill()
        self._libraries = 0


def each_measured(built: Sequence[Built], answer: dict[str, Any]) -> list[Measurement]:
    """A worker's answer about libraries; if the request failed, each of them failed."""
    results = answer.get("results", [answer] * len(built))
    return [
        Measurement(one.candidate, tuple(result.get("seconds", ())) or None, result.get("failure"))
        for one, result in zip(built, results, strict=True)
    ]
