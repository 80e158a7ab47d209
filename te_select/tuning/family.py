"""Tunes the kernels of `te_select.where`, each at its typical sizes."""

from __future__ import annotations

from typing import Any

from te_select.backends.targets import resolve
from te_select.compiler import family as compiled
from te_select.operator import family
from te_select.operator.workload import Workload
from te_select.records.folders import FAMILY
from te_select.tuning.search import Batches
from te_select.tuning.session import Session
from te_select.tuning.trials import Run


class FamilySession(Session):
    """A session whose workloads are `te_select.operator.family.typical` ones.

    What is built and measured is the kernel that `te_select.where` has, of named dims. The
    parameters are those of `Session`.
    """

    within = FAMILY

    def __init__(self, target: str | dict[str, Any], *others: Any) -> None:
        compiled.check_target(resolve(target))
        super().__init__(target, *others)

    def _name(self, workload: Workload) -> str:
        """The name of the kernel whose typical sizes a workload has."""
        members = family.kernels().items()
        return next(name for name, member in members if family.typical(member) == workload)

    def _member(self, workload: Workload) -> Workload:
        return family.kernels()[self._name(workload)]

    def _source(self, workload: Workload) -> dict[str, Any]:
        return {"where": self._name(workload)}

    def _search(self, _run: Run, workload: Workload, _cpus: int | None) -> tuple[int, Batches]:
        """All of the few configs, as far as there are trials."""
        tried = compiled.configs(self._member(workload), self.target)[: self.options.trials]
        return len(tried), filter(None, iter((tried[:1], tried[1:])))
