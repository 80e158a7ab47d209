"""Kinds of machines: each has a folder with the code that makes a library from a schedule.

The module ``builder`` of a folder has the names of `Builder`. The schedule of a kind is a module of
``te_select.schedules``, whose ``seam`` lists its names.

Importing this package imports neither tvm nor a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from te_select.base import kinds

if TYPE_CHECKING:
    from te_select.backends.scheduled import Scheduled
    from te_select.backends.targets import ResolvedTarget
    from te_select.runtime.artifact.fields import Component
    from te_select.runtime.artifact.manifest import Manifest
    from te_select.schedules.seam import Schedule


class Builder(Protocol):
    """What the compiler needs from a kind of machine."""

    def write_library(
        self, chosen: Sequence[Scheduled], target: ResolvedTarget, manifest: Manifest, path: Path
    ) -> None:
        """Write the shared library of scheduled workloads, which holds its manifest.

        A kind with plain C functions also takes ``static``, the path of a static library or an
        object to write as well.
        """

    def requirements(self, target: ResolvedTarget) -> dict[str, Any]:
        """What a manifest says that a machine must have, as JSON types."""

    def missing(self, target: ResolvedTarget) -> list[str]:
        """What this machine lacks to run the target's kernels, in words; empty if nothing."""

    def components(self) -> tuple[Component, ...]:
        """What the kind's part of a build is made by, with licences."""

    def versions(self) -> dict[str, str]:
        """Versions of the packages and compilers that take part in a build."""

    def source(self, one: Scheduled, target: ResolvedTarget, form: str) -> str:
        """The code of one scheduled workload in one of the kind's forms below ``"scheduled"``."""

    def device(self) -> str:
        """The device of this machine that runs kernels, in words; empty if there is none."""

    def tuned_on(self, target: ResolvedTarget) -> tuple[str, int | None]:
        """The device that measures kernels for the target, and how many CPUs serve it.

        None for a GPU. Raises `TuningError` if there is no such device.
        """


def builder(kind: str) -> Builder:
    """The builder of a kind of `te_select.base.kinds`."""
    return cast(Builder, kinds.load(kinds.kind(kind).builder))


def schedule_of(kind: str) -> Schedule:
    """The schedule of a kind of `te_select.base.kinds`, a module of ``te_select.schedules``."""
    return cast("Schedule", kinds.load(kinds.kind(kind).schedule))
