"""Shows a kernel as text in each form, from the definition to the machine code."""

from collections.abc import Mapping
from typing import Any

from te_select.backends import builder
from te_select.backends.targets import resolve
from te_select.base import forks, kinds
from te_select.compiler.scheduling import schedule
from te_select.errors import ArgumentError
from te_select.operator.definition import definition
from te_select.operator.workload import Workload


@forks.no_fork_during()
def source(
    workload: Workload,
    target: str | dict[str, Any],
    config: Mapping[str, Any] | None,
    form: str,
) -> str:
    """Show a kernel in one form.

    Parameters
    ----------
    workload, target
        The workload that was compiled, and the target.
    config
        The config as a manifest holds it; None for the default.
    form
        ``"te"``, the definition as TVM IR; ``"scheduled"``, tiled and with its leaf annotated;
        ``"tir"``, lowered. A CPU also has ``"llvm"`` and ``"asm"``; a CUDA device has ``"cuda"``,
        ``"ptx"`` and ``"sass"``.

    Returns
    -------
    str
        The source text.

    Raises
    ------
    ArgumentError
        If the target has no such form.
    """
    resolved = resolve(target)
    forms = kinds.kind(resolved.kind).sources
    if form not in forms:
        raise ArgumentError(
            f"source {form!r} is not known for {resolved.name}; expected one of {', '.join(forms)}"
        )
    if form == "te":
        return str(definition(workload).script())
    if len(resolved.levels) > 1:
        names = " or ".join(each.name for each in resolved.levels)
        raise ArgumentError(f"target {resolved.name!r} has several levels; expected {names}")
    chosen = schedule(workload, resolved, False, config)
    if form == "scheduled":
        return "\n\n".join(str(function.script()) for function in chosen.functions.values())
    return str(builder(resolved.kind).source(chosen, resolved, form))
