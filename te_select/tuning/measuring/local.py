"""Measures on this machine: one run worker, which is replaced after a candidate has broken it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from te_select.operator.workload import Workload
from te_select.timing.cores import Watch, here
from te_select.tuning.measuring.candidate import Built, Measurement
from te_select.tuning.measuring.measurer import Measurer
from te_select.tuning.measuring.problem import memory_needed
from te_select.tuning.measuring.process import Worker, WorkerError

RUN_WORKER = "te_select.tuning.measuring.run_worker"
RECYCLE_AFTER = 64  # libraries, which stay loaded; a new worker costs 0.3 s and new operands
PREPARE_SECONDS = 60.0
PREPARE_BYTES_PER_SECOND = 20e6  # a tenth of what a loaded machine was seen to make operands at


class LocalMeasurer(Measurer):
    """Measures on this machine, one candidate at a time."""

    def __init__(self, jobs: int | None, timeout: float) -> None:
        super().__init__(jobs, timeout)
        self._worker = Worker(RUN_WORKER, self.folder)
        self._prepared: tuple[int, Workload] | None = None  # the worker's generation, the workload
        self._libraries = 0

    def close(self) -> None:
        """End the workers and remove their files."""
        self._worker.stop()
        super().close()

    def watch(self) -> Watch:
        """Watch this machine, also while candidates are built."""
        return Watch(lambda: [here()])

    def _run(self, built: Sequence[Built]) -> Iterator[Measurement]:
        for one in built:
            answer = self._ask("measure", [one], self.timeout, {"path": str(one.path)})
            yield measured(one, answer)

    def _take_turns(self, built: Sequence[Built], rounds: int) -> list[Measurement]:
        request = {"paths": [str(one.path) for one in built], "rounds": rounds}
        answer = self._ask("interleave", built, self.timeout * len(built), request)
        return each_measured(built, answer)

    def _ask(
        self, op: str, built: Sequence[Built], seconds: float, request: dict[str, Any]
    ) -> dict[str, Any]:
        if self._libraries + len(built) > RECYCLE_AFTER:
            self._stop()
        self._libraries += len(built)
        try:
            failure = self._prepare(built[0].candidate.workload)
            answer = (
                {"failure": failure}
                if failure
                else self._worker.request({"op": op, **request}, seconds)
            )
        except WorkerError as error:
            answer = {"failure": f"the run {error}"}
        if not is_clean(answer):
            self._stop()  # a wrong candidate may have written anywhere
        return answer

    def _prepare(self, workload: Workload) -> str | None:
        self._worker.start()
        wanted = (self._worker.generation, workload)
        if self._prepared == wanted:
            return None
        self._prepared = None
        request = {"op": "prepare", "workload": workload.to_json()}
        failure: str | None = self._worker.request(request, prepare_seconds(workload)).get(
            "failure"
        )
        if failure is None:
            self._prepared = wanted
        return failure

    def _stop(self) -> None:
        self._worker.stop()
        self._libraries = 0


def prepare_seconds(workload: Workload) -> float:
    """Seconds after which a worker that makes operands is ended."""
    if workload.dim_names:
        return PREPARE_SECONDS  # the worker will refuse it
    return PREPARE_SECONDS + memory_needed(workload) / PREPARE_BYTES_PER_SECOND


def is_clean(answer: dict[str, Any]) -> bool:
    """Whether an answer tells of no failure."""
    return not any("failure" in each for each in (answer, *answer.get("results", ())))


def measured(built: Built, answer: dict[str, Any]) -> Measurement:
    """A worker's answer as a measurement."""
    if "failure" in answer:
        return Measurement(built.candidate, None, answer["failure"])
    return Measurement(built.candidate, tuple(answer["seconds"]), None)


def each_measured(built: Sequence[Built], answer: dict[str, Any]) -> list[Measurement]:
    """A worker's answer about several libraries; if the request failed, each of them failed."""
    results = answer.get("results", [answer] * len(built))
    return [measured(one, result) for one, result in zip(built, results, strict=True)]
