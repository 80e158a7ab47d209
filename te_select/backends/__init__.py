"""Kinds of machines: each has a folder with the code that makes a library from a schedule.

The schedule of a kind is a module of ``te_select.schedules``, whose ``seam`` lists its names. The
module ``builder`` of a folder has these names:

``write_library(chosen, target, manifest, path)``
    Writes the shared library of scheduled workloads, which holds its manifest. A kind with plain C
    functions also takes ``static``, the path of a static library or an object to write as well.
``requirements(target) -> dict[str, Any]``
    What a manifest says that a machine must have, as JSON types.
``missing(target) -> list[str]``
    What this machine lacks to run the target's kernels, in words; empty if nothing.
``components() -> tuple[Component, ...]``
    What the kind's part of a build is made by, with licences.
``versions() -> dict[str, str]``
    Versions of the packages and compilers that take part in a build.
``source(one, target, form) -> str``
    The code of one scheduled workload in one of the kind's forms below ``"scheduled"``.
``device() -> str``
    The device of this machine that runs kernels, in words; empty if there is none.
``tuned_on(target) -> tuple[str, int | None]``
    The device that measures kernels for the target, and how many CPUs serve it, None for a GPU.
    Raises `TuningError` if there is no such device.

Importing this package imports neither tvm nor a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from te_select.base import kinds

if TYPE_CHECKING:
    from te_select.schedules.seam import Schedule


def builder(kind: str) -> Any:
    """The builder of a kind of `te_select.base.kinds`."""
    return kinds.load(kinds.kind(kind).builder)


def schedule_of(kind: str) -> Schedule:
    """The schedule of a kind of `te_select.base.kinds`, a module of ``te_select.schedules``."""
    return cast("Schedule", kinds.load(kinds.kind(kind).schedule))
