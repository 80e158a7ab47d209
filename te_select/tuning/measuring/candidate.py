"""Candidates, builds and measurements: plain data, without tvm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from te_select.operator.workload import Workload
from te_select.timing.operands import USUAL, Mask

Config = Mapping[str, int | bool]


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
    config: Config
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
