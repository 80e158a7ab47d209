"""Kinds of machines: each has a folder with the code that makes a library from a schedule.

The module ``machine`` of a folder has these names:

``build(chosen, target, manifest, path)``
    Writes the shared library of scheduled workloads, which holds its manifest. A kind with plain C
    functions also takes ``static``, the path of a static library or an object to write as well.
``requirements(target)``
    What a manifest says that a machine must have to run the library.
``missing(target)``
    Those of the requirements that this machine lacks, in words; empty if it can run the kernels.
``versions()``
    Versions of the packages and compilers that take part in a build.
``components()``
    What its part of a build is made by, for the manifest.
``source(one, target, form)``
    The code of one scheduled workload in one of the kind's forms below ``"scheduled"``.
``device()``
    The device of this machine that runs kernels, in words; empty if there is none.
``tuned_on(target)``
    The device of this machine that measures kernels for the target, and how many CPUs serve it;
    raises `TuningError` if there is none.

The schedule of a kind is a module of ``te_select.schedules``, whose ``seam`` lists its names.

Importing this package imports neither tvm nor a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from te_select import kinds

if TYPE_CHECKING:
    from te_select.schedules.seam import Schedule


def machine(kind: str) -> Any:
    """The module ``machine`` of a kind of `te_select.kinds`."""
    return kinds.load(kinds.kind(kind).machine)


def schedule_of(kind: str) -> Schedule:
    """The schedule of a kind of `te_select.kinds`, a module of ``te_select.schedules``."""
    return cast("Schedule", kinds.load(kinds.kind(kind).schedule))
