"""What a session tunes, and the candidates of which it is made: plain data, without tvm."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from te_select.operator.workload import Workload
from te_select.records.sizes import SMALLEST, Ranges, points
from te_select.timing.inputs import USUAL, Mask


@dataclass(frozen=True)
class Candidate:
    """One config of one workload.

    Parameters
    ----------
    workload
        What to build.
    target
        The target as `te_select.compile` takes it: a name, or a TVM target as JSON text.
    config
        The knobs of the schedule, as a manifest holds them.
    mask
        The cond that it is timed with.
    point
        The workload with the sizes of the operands, if it has names; else None.
    of_family
        Whether the workload is one of `te_select.where`'s family, which has kernels of its own.
    """

    workload: Workload
    target: str
    config: Mapping[str, int | bool]
    mask: Mask = USUAL
    point: Workload | None = None
    of_family: bool = False

    @property
    def problem(self) -> tuple[Workload, Mask]:
        """What its operands depend on."""
        return self.point or self.workload, self.mask

    @property
    def code(self) -> tuple[object, ...]:
        """What its library depends on."""
        return self.workload, self.target, *sorted(self.config.items())


@dataclass(frozen=True)
class Measurement:
    """What became of a candidate.

    Parameters
    ----------
    candidate
        The candidate.
    seconds
        Seconds per call, one for each sample, of a kernel that computed the right bits; None if it
        failed. A sample is one call, or the mean of several calls that together take 0.3 ms. The
        operands are reused and begin on cache lines.
    failure
        Why it failed, in one line; None if it did not.
    """

    candidate: Candidate
    seconds: tuple[float, ...] | None
    failure: str | None


@dataclass(frozen=True)
class Built:
    """A candidate that has been compiled.

    Parameters
    ----------
    candidate
        The candidate.
    path
        The shared library, in a folder of its own.
    """

    candidate: Candidate
    path: Path


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
    of_family: ClassVar[bool] = False  # whether kernels of `te_select.where` are built

    @property
    def source(self) -> tuple[str, str]:
        """The flag of the command line that names the workload, and its value."""
        return "workload", json.dumps(self.kernel_workload.to_json())

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
        """What a record says of it, beside the workload; empty texts for what is as usual."""
        named = " ".join(f"{name}={least}:{most}" for name, least, most in self.ranges)
        return {"cond": "" if self.mask == USUAL else self.mask.described(), "sizes": named}

    @property
    def kernel_workload(self) -> Workload:
        """What is built for each config: with names, if it is measured at several sizes."""
        return self.workload if self.ranges else self.sized

    def candidates(self, config: Any) -> list[Candidate]:
        """A config's candidates, one for each size. All of them run one library."""
        of_all = self.kernel_workload, self.target, asdict(config), self.mask
        return [Candidate(*of_all, point, self.of_family) for point in self.points]
