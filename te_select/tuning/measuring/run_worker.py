"""Checks and times libraries on this machine; a process of its own, which never imports tvm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from te_select.errors import ArtifactError, TuningError
from te_select.operator.workload import Workload
from te_select.runtime import artifact
from te_select.runtime.kernel import Kernel
from te_select.runtime.scratch import NoRoomError
from te_select.tuning.measuring.place import Place, place_of
from te_select.tuning.measuring.problem import Problem
from te_select.tuning.measuring.serve import reason, serve


class Runner:
    """Runs kernels of the workload that was prepared last, all for one kind of machine."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._place: Place | None = None

    def prepare(self, message: dict[str, Any]) -> dict[str, Any]:
        """Make the operands of a workload; those of the workload before are released first."""
        self._problem = self._place = None
        self._problem = Problem(Workload.from_json(message["workload"]))
        return {}

    def measure(self, message: dict[str, Any]) -> dict[str, Any]:
        """Check and time one library."""
        kernel, place = self._checked(message["path"])
        return {"seconds": place.time(kernel)}

    def interleave(self, message: dict[str, Any]) -> dict[str, Any]:
        """Check libraries, and time those that are right in turns."""
        kernels: dict[str, Kernel] = {}
        failures: dict[str, str] = {}
        for path in message["paths"]:
            try:
                kernels[path], place = self._checked(path)
            except NoRoomError:
                raise
            except (ArtifactError, TuningError) as error:
                failures[path] = reason(error)
        timings = place.take_turns(kernels, message["rounds"]) if kernels else {}
        return {
            "results": [
                {"failure": failures[path]}
                if path in failures
                else {"seconds": timings[path].seconds}
                for path in message["paths"]
            ]
        }

    def _checked(self, path: str) -> tuple[Kernel, Place]:
        """A kernel that computes the right bits, and the place that checked it."""
        if self._problem is None:
            raise TuningError("no workload was prepared")
        kernel = artifact.load(Path(path))
        if not isinstance(kernel, Kernel):
            raise TuningError(f"{path} holds several kernels; expected one")
        if self._place is None:
            self._place = place_of(kernel, self._problem)
        if failure := self._place.check(kernel):
            raise TuningError(failure)
        return kernel, self._place


if __name__ == "__main__":
    runner = Runner()
    serve({"prepare": runner.prepare, "measure": runner.measure, "interleave": runner.interleave})
