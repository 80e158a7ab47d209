"""The passes `UseSelect` and `UseUnfusedSelect`, and what they report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm.target import Target

from te_select.compiler.export import export
from te_select.compiler.scheduling import TuningLogs
from te_select.errors import ArgumentError
from te_select.operator.workload import Workload
from te_select.relax.replacing import Finder, Replacement, Wanted, unfused, wheres
from te_select.relax.targets import kernel_target
from te_select.runtime.artifact import scratch

_ATTRIBUTE = "te_select"
_KERNELS = "te_select.kernels"  # names of kernels, and their targets
_EXTERNAL = "external_mods"  # TVM's name for the modules that are linked into a model


def UseSelect(
    target: Any = None,
    *,
    tuning_logs: TuningLogs = None,
    config: Mapping[str, Any] | None = None,
    wanted: Wanted | None = None,
) -> Any:
    """Make a pass that replaces every ``R.where`` by a call of one of our kernels.

    ``out[i] = cond[i] ? x1[i] : x2[i]``, broadcast as ``R.where`` does it. The pass comes before
    ``LegalizeOps``. The kernels are one object file, which the exported library of the model holds.

    Parameters
    ----------
    target
        The machine of the kernels: a ``tvm.target.Target``, or what `te_select.compile` takes, such
        as ``"x86-64-v2,x86-64-v3"``. None for the target of the ``with target:`` around the making
        of the pass, else of that around its application, else this machine.
    tuning_logs, config
        As for `te_select.compile`.
    wanted
        Called with the place of a where and its workload; False leaves it to TVM. A place is
        ``main#3``, the function's name and a number in the order of the text.

    Returns
    -------
    tvm.transform.Pass
        The pass. What cannot be replaced, or would not gain, is left as it is. `report` says why.

    Raises
    ------
    TargetError
        If the target is not known, or is no CPU.
    """
    return _pass("UseSelect", wheres, target, tuning_logs, config, wanted)


def UseUnfusedSelect(
    target: Any = None,
    *,
    tuning_logs: TuningLogs = None,
    config: Mapping[str, Any] | None = None,
    wanted: Wanted | None = None,
) -> Any:
    """Make a pass that replaces calls of functions which compute one where and nothing else.

    It comes after ``FuseTIR``, in pipelines that fuse. One that is fused with other operators is
    left, because one loop for all of them moves fewer bytes.

    Parameters
    ----------
    target, tuning_logs, config, wanted
        As for `UseSelect`.

    Returns
    -------
    tvm.transform.Pass
        The pass.

    Raises
    ------
    TargetError
        If the target is not known, or is no CPU.
    """
    return _pass("UseUnfusedSelect", unfused, target, tuning_logs, config, wanted)


def report(mod: tvm.IRModule) -> list[tuple[str, str, str]]:
    """List what the passes have done with each where of a module.

    Parameters
    ----------
    mod
        A module on which they ran.

    Returns
    -------
    list of tuple
        ``(place, "replaced", kernel)`` or ``(place, "left", reason)``. The same stands in
        ``mod.attrs["te_select"]``.

    Raises
    ------
    ArgumentError
        If it is not a module, such as what ``tvm.compile`` made of one.
    """
    if not isinstance(mod, tvm.IRModule):
        raise ArgumentError(f"mod is a {type(mod).__name__}; expected the IRModule of a pass")
    rows = (mod.attrs or {}).get(_ATTRIBUTE, [])
    return [(str(place), str(done), str(what)) for place, done, what in rows]


def _pass(
    name: str,
    find: Finder,
    target: Any,
    tuning_logs: TuningLogs,
    config: Mapping[str, Any] | None,
    wanted: Wanted | None,
) -> Any:
    # Here, because TVM makes a RuntimeError of what is raised in a pass.
    given = target is not None or Target.current(allow_none=True) is not None
    made_for = kernel_target(target) if given else None

    def run(mod: tvm.IRModule, _context: Any) -> tvm.IRModule:
        attributes = mod.attrs or {}
        there = {str(name): str(of) for name, of in attributes.get(_KERNELS, {}).items()}
        work = Replacement(mod, find, wanted, made_for or kernel_target(None), there)
        made = work.replaced()
        if work.workloads:
            objects = _object(list(work.workloads), work.target, tuning_logs, config)
            made = made.with_attr(_EXTERNAL, [*attributes.get(_EXTERNAL, []), objects])
            made = made.with_attr(
                _KERNELS, there | {each.name: work.target for each in work.workloads}
            )
        rows = {row[0]: row for row in (*report(mod), *work.rows)}
        return made.with_attr(_ATTRIBUTE, list(rows.values()))

    return tvm.transform.module_pass(run, opt_level=0, name=f"te_select.{name}")


def _object(
    workloads: list[Workload],
    target: str,
    tuning_logs: TuningLogs,
    config: Mapping[str, Any] | None,
) -> Any:
    """One static library of TVM's that has the kernels."""
    with scratch.folder(scratch.ROOM + len(workloads) * scratch.KERNEL_ROOM) as folder:
        library = export(
            workloads, folder / "kernels.so", target, tuning_logs, config=config, static="object"
        )
        names = [each.name for each in workloads]
        return tvm.runtime.load_static_library(str(library.with_suffix(".o")), names)
