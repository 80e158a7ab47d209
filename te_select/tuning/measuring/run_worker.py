"""Checks and times libraries on this machine; a process of its own, which never imports tvm."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from te_select import kinds
from te_select.errors import ArtifactError, TuningError
from te_select.operator.workload import Workload
from te_select.runtime.artifact.scratch import NoRoomError
from te_select.runtime.call import loading
from te_select.timing.operands import Mask
from te_select.tuning.measuring.problem import Problem
from te_select.tuning.measuring.serve import reason


class Worker:
    """Runs kernels of the workload that was prepared last, all for one kind of machine."""

    def __init__(self) -> None:
        self._prepared: tuple[Workload, Mask] | None = None
        self._problem: Problem | None = None
        self._place: Any = None  # the problem itself, or the device of the kind

    def prepare(self, workload: Workload, mask: Mask) -> dict[str, Any]:
        """Make the operands, unless they are there; those of the workload before go first."""
        if self._prepared != (workload, mask):
            self._prepared = self._problem = self._place = None
            self._hold(Problem(workload, mask))
            self._prepared = workload, mask
        return {}

    def measure(self, paths: Sequence[Path], turns: int | None, limit: float) -> dict[str, Any]:
        """Check libraries, and time those that are right: in turns, or one alone."""
        results: list[dict[str, Any]] = [{} for _ in paths]
        kernels = {}
        for number, path in enumerate(paths):
            try:
                kernels[str(number)], place = self._checked(path)
            except NoRoomError:
                raise
            except (ArtifactError, TuningError) as error:
                results[number] = {"failure": reason(error)}
        if turns is None:
            timed = {name: place.time(kernel) for name, kernel in kernels.items()}
        else:
            timed = place.take_turns(kernels, turns) if kernels else {}
        for name, timing in timed.items():
            results[int(name)] = {"seconds": timing.seconds}
        return {"results": results}

    def _hold(self, problem: Problem) -> None:
        self._problem = problem

    def _checked(self, path: Path) -> tuple[Any, Any]:
        """A kernel that computes the right bits, and the place that checked it."""
        kernel: Any = loading.load(path)
        if self._place is None:
            place = kinds.kind(kernel.kind).place
            self._place = kinds.load(place)(self._problem) if place else self._problem
        if failure := self._place.check(kernel):
            raise TuningError(failure)
        return kernel, self._place
