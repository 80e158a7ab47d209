"""Tunes the kernels of `te_select.where`, each at its typical sizes."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from te_select.compiler.family import config_of
from te_select.operator import family
from te_select.operator.workload import Workload
from te_select.records.folders import FAMILY
from te_select.records.sizes import Ranges
from te_select.timing.operands import Mask
from te_select.tuning.measuring import Candidate
from te_select.tuning.search import Batches
from te_select.tuning.session import Session
from te_select.tuning.space import Space
from te_select.tuning.task import Task
from te_select.tuning.trials import Run


class FamilyTask(Task):
    """A workload of `te_select.operator.family.typical`, for which a kernel of the family is built.

    The kernel is the one that `te_select.where` has, of named dims.
    """

    def candidates(self, config: Any) -> list[Candidate]:
        """A config's candidate."""
        member = _member(self.workload)
        made = super().candidates(config)
        return [replace(each, workload=member, of_family=True) for each in made]


class FamilySession(Session):
    """A session whose tasks are those of the family; the parameters are those of `Session`."""

    within = FAMILY

    def task(self, workload: Workload, ranges: Ranges = (), mask: Mask | None = None) -> FamilyTask:
        """What to tune: a typical workload of the family."""
        return FamilyTask(**vars(super().task(workload, ranges, mask)))

    def _default(self, task: Task) -> Any:
        return config_of(_member(task.workload), self.target, {})

    def _source(self, task: Task) -> dict[str, Any]:
        return {"where": _kernel(task.workload)}

    def _search(self, _run: Run, task: Task) -> tuple[int, Batches]:
        """All of the few configs, as far as there are trials."""
        every, member = Space(task.workload, self.target).configs, _member(task.workload)
        alike = (asdict(config) for config in every if config.rows == every[0].rows)
        configs = [config_of(member, self.target, knobs) for knobs in alike]
        tried = list(dict.fromkeys([self._default(task), *configs]))[: self.options.trials]
        return len(tried), filter(None, iter((tried[:1], tried[1:])))


def _kernel(typical: Workload) -> str:
    """The name of the kernel that a typical workload is for."""
    known = family.kernels().items()
    return next(name for name, each in known if family.typical(each) == typical)


def _member(typical: Workload) -> Workload:
    """The workload of the family that is built for a typical one."""
    return family.kernels()[_kernel(typical)]
