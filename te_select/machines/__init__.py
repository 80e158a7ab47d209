"""Kinds of machines: for each, the schedule and what makes a shared library of it.

Each module of this folder has the same five names:

``schedule``
    The module of ``te_select.schedules`` with ``Config``, ``default_config``, ``space``, ``apply``.
``build(chosen, target, path)``
    Writes the shared library of scheduled workloads.
``requirements(target)``
    What a manifest says that a machine must have to run the library.
``versions()``
    Versions of the packages and compilers that take part in a build.
``source(one, target, level)``
    The code of one scheduled workload at one of the kind's `LEVELS` below ``"scheduled"``.

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


def machine(kind: str) -> Machine:
    """The machine of a kind, a key of `LEVELS`."""
    return cast(Machine, importlib.import_module(f"te_select.machines.{kind}"))
