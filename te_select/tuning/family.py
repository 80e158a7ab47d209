"""Tunes the kernels of `te_select.where`, each at its typical sizes."""

from __future__ import annotations

from typing import Any

from te_select.compiler.family import config_of
from te_select.operator import family
from te_select.operator.workload import Workload
from te_select.records.folders import FAMILY
from te_select.tuning.search import Batches, candidates
from te_select.tuning.session import Session
from te_select.tuning.trials import Run


class FamilySession(Session):
    """A session whose workloads are `te_select.operator.family.typical` ones.

    What is built and measured is the kernel that `te_select.where` has, of named dims. The
    parameters are those of `Session`.
    """

    within = FAMILY

    def _source(self, workload: Workload) -> dict[str, Any]:
        known = family.kernels().items()
        return {"where": next(name for name, each in known if family.typical(each) == workload)}

    def _member(self, workload: Workload) -> Workload:
        return family.kernels()[self._source(workload)["where"]]

    def _search(self, _run: Run, workload: Workload, cpus: int | None) -> tuple[int, Batches]:
        """All of the few configs, as far as there are trials."""
        every, member = candidates(workload, self.target, cpus), self._member(workload)
        alike = (vars(config) for config in every if config.rows == every[0].rows)
        configs = list(dict.fromkeys(config_of(member, self.target, knobs) for knobs in alike))
        tried = configs[: self.options.trials]
        return len(tried), filter(None, iter((tried[:1], tried[1:])))
