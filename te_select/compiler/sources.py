"""A kernel as text, at each step of its way to machine code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from te_select import forks, kinds
from te_select.compiler.scheduling import schedule
from te_select.errors import ArgumentError
from te_select.machines import machine
from te_select.machines.targets import resolve
from te_select.operator.definition import definition
from te_select.operator.workload import Workload


@forks.held_off()
def source(
    workload: Workload,
    target: str | dict[str, Any],
    config: Mapping[str, Any] | None,
    level: str,
) -> str:
    """Show a kernel at one level.

    Parameters
    ----------
    workload, target
        What was compiled, and for what.
    config
        The config as a manifest holds it; None for the default.
    level
        ``"te"``, the definition as TVM IR; ``"scheduled"``, tiled and with its leaf marked;
        ``"tir"``, lowered; then ``"llvm"`` and ``"asm"`` of a CPU, ``"cuda"``, ``"ptx"`` and
        ``"sass"`` of a CUDA device.

    Returns
    -------
    str
        The source text.

    Raises
    ------
    ArgumentError
        If the target has no such level.
    """
    resolved = resolve(target)
    levels = kinds.kind(resolved.kind).sources
    if level not in levels:
        raise ArgumentError(
            f"source {level!r} is not known for {resolved.name}; expected one of "
            f"{', '.join(levels)}"
        )
    if level == "te":
        return str(definition(workload).script())
    if len(resolved.levels) > 1:
        names = " or ".join(each.name for each in resolved.levels)
        raise ArgumentError(f"target {resolved.name!r} has several levels; expected {names}")
    chosen = schedule(workload, resolved, False, config)
    if level == "scheduled":
        return "\n\n".join(str(function.script()) for function in chosen.functions.values())
    return machine(resolved.kind).source(chosen, resolved, level)
