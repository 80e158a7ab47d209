"""Checks and times libraries on this machine; a process of its own, which never imports tvm."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from te_select.bench.rounds import take_turns
from te_select.errors import ArtifactError, TuningError
from te_select.runtime import artifact
from te_select.runtime.kernel import Kernel
from te_select.tuning.measure.problem import Problem
from te_select.tuning.measure.serve import reason, serve
from te_select.tuning.measure.timing import time_calls
from te_select.workload import Workload


class Runner:
    """Runs kernels of the workload that it was last told of."""

    def __init__(self) -> None:
        self._problem: Problem | None = None

    def prepare(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make the operands of a workload; those of the workload before it are given back first."""
        self._problem = None
        self._problem = Problem(Workload.from_json(message["workload"]))
        return {}

    def measure(self, message: dict[str, Any]) -> dict[str, Any]:
        """Check and time one library."""
        problem = self._prepared()
        kernel = _checked(problem, message["path"])
        args = (problem.cond, problem.then, problem.else_, problem.out)
        return {"seconds": time_calls(functools.partial(kernel, *args))}

    def interleave(self, message: dict[str, Any]) -> dict[str, Any]:
        """Check libraries, and time those that are right in turns."""
        problem = self._prepared()
        args = (problem.cond, problem.then, problem.else_, problem.out)
        kernels: dict[str, Kernel] = {}
        failures: dict[str, str] = {}
        for path in message["paths"]:
            try:
                kernels[path] = _checked(problem, path)
            except (ArtifactError, TuningError) as error:
                failures[path] = reason(error)
        timings = take_turns(
            {path: functools.partial(kernel, *args) for path, kernel in kernels.items()},
            message["rounds"],
        )
        return {
            "results": [
                {"failure": failures[path]}
                if path in failures
                else {"seconds": timings[path].seconds}
                for path in message["paths"]
            ]
        }

    def _prepared(self) -> Problem:
        if self._problem is None:
            raise TuningError("no workload was prepared")
        return self._problem


def _checked(problem: Problem, path: str) -> Kernel:
    kernel = artifact.load(Path(path))
    if not isinstance(kernel, Kernel):
        raise TuningError(f"{path} holds several kernels; expected one")
    if failure := problem.check(kernel):
        raise TuningError(failure)
    return kernel


if __name__ == "__main__":
    runner = Runner()
    serve({"prepare": runner.prepare, "measure": runner.measure, "interleave": runner.interleave})
