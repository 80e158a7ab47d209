"""Measures on this machine: one run worker, which is replaced after a candidate has broken it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from te_select.operator.workload import Workload
from te_select.timing.cores import Watch, here
from te_select.timing.operands import Mask
from te_select.tuning.measuring.candidate import Built, Measurement
from te_select.tuning.measuring.measurer import Measurer
from te_select.tuning.measuring.problem import memory_needed, refusal
from te_select.tuning.measuring.process import Worker, WorkerError

RUN_WORKER = "te_select.tuning.measuring.run_worker"
RECYCLE_AFTER = 64  # libraries, which stay loaded; a new worker costs 0.3 s and new operands
PREPARE_SECONDS = 60.0
PREPARE_BYTES_PER_SECOND = 20e6  # a tenth of what a loaded machine was seen to make operands at


class RunWorker(Worker):
    """A worker that checks and times libraries, on operands that it prepares once a workload."""

    # The generation that has made the operands, and what they depend on.
    prepared: tuple[int, tuple[Workload, Mask]] | None = None

    def measure(
        self, built: Sequence[Built], rounds: int | None, limit: float, patience: float = 0.0
    ) -> dict[str, Any]:
        """Check and time libraries of one workload.

        Parameters
        ----------
        built
            The libraries.
        rounds
            The turns of each; None for one library that is timed alone.
        limit
            Seconds that this may take.
        patience
            Seconds beyond these until the worker is ended.

        Returns
        -------
        dict
            ``"results"``, one for each library, or ``"failure"`` if none could be run.
        """
        problem = built[0].candidate.problem
        if refused := refusal(problem[0]):
            return {"failure": refused}
        self.start()
        if self.prepared != (self.generation, problem):
            self.prepared = None
            seconds = PREPARE_SECONDS + memory_needed(problem[0]) / PREPARE_BYTES_PER_SECOND
            if answer := self.request(seconds, "prepare", *problem):
                return answer
            self.prepared = self.generation, problem
        paths = [one.path for one in built]
        return self.request(limit + patience, "measure", paths, rounds, limit)


class LocalMeasurer(Measurer):
    """Measures on this machine, one candidate at a time."""

    def __init__(self, jobs: int | None, timeout: float) -> None:
        super().__init__(jobs, timeout)
        self._worker = RunWorker(RUN_WORKER, self.folder)
        self._libraries = 0

    def launch(self) -> None:
        """Begin to start all workers, so that they import side by side."""
        self._worker.launch()
        super().launch()

    def close(self) -> None:
        """End the workers and remove their files."""
        self._worker.kill()
        super().close()

    def watch(self) -> Watch:
        """Watch this machine, also while candidates are built."""
        return Watch(lambda: [here()])

    def _run(self, jobs: Sequence[Sequence[Built]], rounds: int | None) -> Iterator[Measurement]:
        for built in jobs:
            if self._libraries + len(built) > RECYCLE_AFTER:
                self._replace()
            self._libraries += len(built)
            try:
                answer = self._worker.measure(built, rounds, self.timeout * len(built))
            except WorkerError as error:
                answer = {"failure": f"the run {error}"}
            if any("failure" in each for each in (answer, *answer.get("results", ()))):
                self._replace()  # a wrong candidate may have written anywhere
            yield from each_measured(built, answer)

    def _replace(self) -> None:
        self._worker.kill()
        self._libraries = 0


def each_measured(built: Sequence[Built], answer: dict[str, Any]) -> list[Measurement]:
    """A worker's answer about libraries; if the request failed, each of them failed."""
    results = answer.get("results", [answer] * len(built))
    return [
        Measurement(one.candidate, tuple(result.get("seconds", ())) or None, result.get("failure"))
        for one, result in zip(built, results, strict=True)
    ]
