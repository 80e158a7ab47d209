"""What a session tunes: a workload, at one size or several, with the cond that it is timed with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from te_select.operator.workload import Workload
from te_select.records.sizes import SMALLEST, Ranges, points
from te_select.timing.operands import USUAL, Mask
from te_select.tuning.measuring import Candidate


@dataclass(frozen=True)
class Task:
    """A workload to tune.

    Parameters
    ----------
    workload
        The workload; its dims may have names.
    target
        The target as `te_select.compile` takes it.
    mask
        The cond of the timing.
    ranges
        The least and the largest size of each named dim; empty for a representative size.
    """

    workload: Workload
    target: str
    mask: Mask = USUAL
    ranges: Ranges = ()

    @property
    def points(self) -> list[Workload]:
        """The workload at the sizes at which it is measured."""
        return points(self.workload, self.ranges)

    @property
    def sized(self) -> Workload:
        """The workload whose record is written; for ranges at sizes at which every config fits."""
        if not self.ranges:
            return self.points[0]
        return self.workload.bind(dict.fromkeys(self.workload.dim_names, SMALLEST))

    @property
    def conditions(self) -> dict[str, str]:
        """What a record says of it, beside the workload; nothing of what is as usual."""
        named = " ".join(f"{name}={least}:{most}" for name, least, most in self.ranges)
        told = {"cond": "" if self.mask == USUAL else self.mask.described(), "sizes": named}
        return {name: text for name, text in told.items() if text}

    @property
    def built(self) -> Workload:
        """What is built for each config: with names, if it is measured at several sizes."""
        return self.workload if self.ranges else self.sized

    def candidates(self, config: Any) -> list[Candidate]:
        """A config's candidates, one for each size. All of them run one library."""
        knobs = asdict(config)
        return [
            Candidate(self.built, self.target, knobs, self.mask, point) for point in self.points
        ]
