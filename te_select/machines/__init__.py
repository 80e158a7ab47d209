"""Kinds of machines: for each, the schedule and what makes a shared library of it.

Each module of this folder has the same six names:

``schedule``
    The module of ``te_select.schedules``; its names are below.
``build(chosen, target, path)``
    Writes the shared library of scheduled workloads.
``requirements(target)``
    What a manifest says that a machine must have to run the library.
``versions()``
    Versions of the packages and compilers that take part in a build.
``source(one, target, level)``
    The code of one scheduled workload at one of the kind's `LEVELS` below ``"scheduled"``.
``tuned_on(target)``
    The device of this machine on which kernels for the target are measured, and how many CPUs serve
    it; `TuningError` where there is none.

A schedule is a module with these names:

``Config``
    A frozen dataclass of its knobs, ints and bools; ``config.checked(pattern)`` returns it, or
    raises ValueError where the schedule cannot follow it.
``default_config(pattern, target)``
    The config to use without tuning.
``variants(pattern, config)``
    The configs to apply, each for one of the functions of a `Scheduled`: ``"func"``, and others for
    the calls that are better served by them.
``apply(sch, pattern, target, config)``
    The schedule itself, which writes pattern and knobs on its leaf (`te_select.schedules.leaf`).
``config_of(scheduled)``, ``config_from(knobs)``
    The config, read back from a scheduled function, or from a record's knobs.

and for tuning:

``space(pattern, target)``
    For each knob its candidates, as data.
``NUMBERS``
    The knobs, one at least, that may be random variables of MetaSchedule. The others change the
    structure, and each of their combinations is a design of its own.
``effect(pattern, config, cpus)``
    A hashable value, equal for configs that do the same for the pattern on so many CPUs.
``family(target)``
    A hashable value, equal for targets whose records serve each other; None for a TVM target of
    another kind of machine.
``alike(pattern, measured, target)``
    Whether the record of one pattern may serve another of the same loops and a size near to it.

A new kind of machine is one module here, one in ``schedules/`` and one host half in ``runtime/``.
Importing this package imports neither tvm nor a compiler.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from te_select.machines.scheduled import Scheduled
    from te_select.targets import ResolvedTarget

TVM_KINDS: Mapping[str, str] = {"llvm": "x86", "cuda": "cuda"}
"""By the kind of a TVM target, as its JSON has it: the kind of machine."""
LEVELS: Mapping[str, tuple[str, ...]] = {
    "x86": ("te", "scheduled", "tir", "llvm", "asm"),
    "cuda": ("te", "scheduled", "tir", "cuda", "ptx", "sass"),
}
"""By kind: the levels at which a kernel's code can be shown, from the definition downwards."""


class Machine(Protocol):
    """What the compiler needs of a kind of machine."""

    schedule: Any

    def build(self, chosen: Sequence[Scheduled], target: ResolvedTarget, path: Path) -> None:
        """Write the shared library of scheduled workloads to ``path``."""

    def requirements(self, target: ResolvedTarget) -> dict[str, Any]:
        """What a manifest says that a machine must have, as JSON types."""

    def versions(self) -> dict[str, str]:
        """Versions of what takes part in a build."""

    def source(self, one: Scheduled, target: ResolvedTarget, level: str) -> str:
        """The code of one scheduled workload at a level."""

    def tuned_on(self, target: ResolvedTarget) -> tuple[str, int | None]:
        """The device of this machine that measures, and how many CPUs serve it, if any do."""


def machine(kind: str) -> Machine:
    """The machine of a kind, a key of `LEVELS`."""
    return cast(Machine, importlib.import_module(f"te_select.machines.{kind}"))
