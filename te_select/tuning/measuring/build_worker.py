"""Compiles candidates; a process of its own, which imports tvm once."""

import resource
from pathlib import Path
from typing import Any

from te_select.backends.targets import resolve
from te_select.compiler.build import build_scheduled
from te_select.compiler.family_library import schedule_member
from te_select.compiler.scheduling import schedule
from te_select.tuning.task import Candidate

MEMORY = 4 << 30  # bytes; a build was seen to take 0.5 GB with all of TVM's code


class Worker:
    """Builds one candidate at a time, in limited memory."""

    def __init__(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    def build_candidate(self, candidate: Candidate, path: Path) -> dict[str, Any]:
        """Build a candidate by the path that ships."""
        target = resolve(candidate.target)
        if candidate.of_family:
            scheduled = schedule_member(candidate.workload, target, candidate.config)
        else:
            scheduled = schedule(candidate.workload, target, config=candidate.config)
        build_scheduled([scheduled], path, target)
        return {}
