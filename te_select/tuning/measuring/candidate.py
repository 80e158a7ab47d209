"""Candidates, builds and measurements: plain data, without tvm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from te_select.operator.workload import Workload

Config = Mapping[str, int | bool]


@dataclass(frozen=True)
class Candidate:
    """One config of one workload.

    Parameters
    ----------
    workload
        What to compute, of int dims only.
    target
        The target as `te_select.compile` takes it: a name, or a TVM target as JSON text.
    config
        The knobs of the schedule, as a manifest holds them.
    member
        The workload of `te_select.where`'s family that is built, and called with these dims.
    """

    workload: Workload
    target: str
    config: Config
    member: Workload | None = None


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
        operands are reused and begin on cache lines. Cond is random with a density of 50 %.
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
