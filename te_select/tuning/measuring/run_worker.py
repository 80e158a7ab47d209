"""Checks and times libraries on this machine; a process of its own, which never imports tvm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from te_select import kinds
from te_select.errors import ArtifactError, TuningError
from te_select.operator.workload import Workload
from te_select.runtime.artifact.scratch import NoRoomError
from te_select.runtime.call import loading
from te_select.runtime.call.kernel import Kernel
from te_select.timing.operands import Mask
from te_select.tuning.measuring.problem import Problem
from te_select.tuning.measuring.serve import reason


class Worker:
    """Runs kernels of the workload that was prepared last, all for one kind of machine."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._place: Any = None  # where kernels are checked and timed, of the kind's own class

    def prepare(self, workload: Workload, mask: Mask) -> dict[str, Any]:
        """Make the operands of a workload; those of the workload before are released first."""
        self._problem = self._place = None
        self._problem = Problem(workload, mask)
        return {}

    def measure(self, paths: Sequence[Path], rounds: int | None, _limit: float) -> dict[str, Any]:
        """Check libraries, and time those that are right: in turns, or one alone."""
        results: list[dict[str, Any]] = [{} for _ in paths]
        kernels: dict[str, Kernel] = {}
        for number, path in enumerate(paths):
            try:
                kernels[str(number)], place = self._checked(path)
            except NoRoomError:
                raise
            except (ArtifactError, TuningError) as error:
                results[number] = {"failure": reason(error)}
        if kernels and rounds is not None:
            for name, timing in place.take_turns(kernels, rounds).items():
                results[int(name)] = {"seconds": timing.seconds}
        else:
            for name, kernel in kernels.items():
                results[int(name)] = {"seconds": place.time(kernel)}
        return {"results": results}

    def _checked(self, path: Path) -> tuple[Kernel, Any]:
        """A kernel that computes the right bits, and the place that checked it."""
        kernel = loading.load(path)
        assert isinstance(kernel, Kernel)
        assert self._problem is not None
        if self._place is None:
            self._place = kinds.load(kinds.kind(kernel.kind).place)(self._problem)
        if failure := self._place.check(kernel):
            raise TuningError(failure)
        return kernel, self._place
