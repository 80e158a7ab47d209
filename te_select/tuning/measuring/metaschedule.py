"""MetaSchedule's Builder and Runner on a measurer, for searches that MetaSchedule drives itself.

with open_measurer() as measurer:
    tune_tir(..., builder=builder(measurer, workload, target), runner=runner(measurer))
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.builder.builder import BuilderInput, BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner.runner import (
    PyRunner,
    PyRunnerFuture,
    RunnerInput,
    RunnerResult,
)

from te_select.machines import schedule_of
from te_select.machines.targets import resolve
from te_select.operator.workload import Workload
from te_select.runtime import stored
from te_select.tuning.measuring.candidate import Built, Candidate, Measurement
from te_select.tuning.measuring.measurer import Measurer
from te_select.tuning.measuring.serve import reason


def builder(measurer: Measurer, workload: Workload, target: str) -> Any:
    """Make a builder of one workload's candidates.

    Parameters
    ----------
    measurer
        Whose workers build.
    workload
        Whose definition the search schedules, of int dims only.
    target
        The target as `te_select.compile` takes it.

    Returns
    -------
    Builder
        To be given to MetaSchedule. It reads each candidate's config back from the scheduled
        module and builds what ships, not that module as it is.
    """
    return _Builder(measurer, workload, target)


def runner(measurer: Measurer) -> Any:
    """Make a runner of what `builder` has built.

    Parameters
    ----------
    measurer
        Whose workers or servers run.

    Returns
    -------
    Runner
        To be given to MetaSchedule. Its futures are done when it returns.
    """
    return _Runner(measurer)


@derived_object
class _Builder(PyBuilder):  # type: ignore[misc]  # tvm is untyped
    def __init__(self, measurer: Measurer, workload: Workload, target: str) -> None:
        super().__init__()
        self.measurer = measurer
        self.workload = workload
        self.target = target
        self.schedule = schedule_of(resolve(target).kind)

    def build(self, build_inputs: list[BuilderInput]) -> list[BuilderResult]:
        results: list[BuilderResult | None] = []
        candidates: list[Candidate] = []
        for one in build_inputs:
            try:
                config = asdict(self.schedule.config_of(one.mod))
            except ValueError as error:
                results.append(BuilderResult(None, reason(error)))
            else:
                results.append(None)
                candidates.append(Candidate(self.workload, self.target, config))
        built = iter(self.measurer.build(candidates))
        return [_result(next(built)) if result is None else result for result in results]


@derived_object
class _Runner(PyRunner):  # type: ignore[misc]
    def __init__(self, measurer: Measurer) -> None:
        super().__init__()
        self.measurer = measurer

    def run(self, runner_inputs: list[RunnerInput]) -> list[Any]:
        built = [_built(Path(str(one.artifact_path))) for one in runner_inputs]
        done = {id(one.candidate): one for one in self.measurer.run(built)}
        return [_Future(done[id(one.candidate)]) for one in built]


@derived_object
class _Future(PyRunnerFuture):  # type: ignore[misc]
    def __init__(self, measurement: Measurement) -> None:
        super().__init__()
        self.measurement = measurement

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        seconds = self.measurement.seconds
        return RunnerResult(None if seconds is None else list(seconds), self.measurement.failure)


def _result(built: Built) -> BuilderResult:
    return BuilderResult(None if built.path is None else str(built.path), built.failure)


def _built(path: Path) -> Built:
    manifest = stored.read(path).manifest
    record = manifest.kernels[0]
    candidate = Candidate(record.workload, manifest.target["name"], record.config)
    return Built(candidate, path, None)
