"""The passes `UseSelect` and `UseUnfusedSelect`, their target, and what they report."""

import json
from typing import Any

import tvm
from tvm.target import Target

from te_select.backends.targets import resolve
from te_select.base import kinds, scratch
from te_select.compiler.export import export
from te_select.compiler.scheduling import TuningLogs
from te_select.errors import ArgumentError, TargetError
from te_select.operator.broadcast import shown
from te_select.relax.replacing import Finder, Replacement, Wanted, unfused, wheres

_ATTRIBUTE = "te_select"
_KERNELS = "te_select.kernels"  # names of kernels, and their targets
_EXTERNAL = "external_mods"  # TVM's name for the modules that are linked into a model
# What the others say, such as num-cores and opt-level, makes no difference to a kernel.
_OF_A_KERNEL = ("kind", "mcpu", "mattr", "mtriple", "mabi")


def UseSelect(
    target: Any = None,
    *,
    tuning_logs: TuningLogs = None,
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
    tuning_logs
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
    return _pass("UseSelect", wheres, target, tuning_logs, wanted)


def UseUnfusedSelect(
    target: Any = None,
    *,
    tuning_logs: TuningLogs = None,
    wanted: Wanted | None = None,
) -> Any:
    """Make a pass that replaces calls of functions which compute one where and nothing else.

    It comes after ``FuseTIR``, in pipelines that fuse. One that is fused with other operators is
    left, because one loop for all of them moves fewer bytes.

    Parameters
    ----------
    target, tuning_logs, wanted
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
    return _pass("UseUnfusedSelect", unfused, target, tuning_logs, wanted)


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
            names = [each.name for each in work.workloads]
            room = scratch.ROOM + len(names) * scratch.KERNEL_ROOM
            with scratch.folder(room) as folder:
                library = folder / "kernels.so"
                export(work.workloads, library, work.target, tuning_logs, static="object")
                objects = tvm.runtime.load_static_library(str(library.with_suffix(".o")), names)
            made = made.with_attr(_EXTERNAL, [*attributes.get(_EXTERNAL, []), objects])
            made = made.with_attr(_KERNELS, there | dict.fromkeys(names, work.target))
        rows = {row[0]: row for row in (*report(mod), *work.rows)}
        return made.with_attr(_ATTRIBUTE, list(rows.values()))

    return tvm.transform.module_pass(run, opt_level=0, name=f"te_select.{name}")


def kernel_target(target: Any) -> str:
    """Find out for what target the kernels of a model are compiled.

    Parameters
    ----------
    target
        A ``tvm.target.Target``, what `te_select.compile` takes, or None for the target of the
        surrounding ``with target:``, else this machine.

    Returns
    -------
    str
        The target as `te_select.export` takes it.

    Raises
    ------
    TargetError
        If it is not known, or its kernels cannot be linked into a model.
    """
    if target is None:
        target = Target.current(allow_none=True) or "native"
    named = target.kind.name if isinstance(target, Target) else str(target)
    for kind in kinds.KINDS.values():  # before questions about its architecture or its driver
        if named.split(":")[0] in (kind.name, kind.tvm_kind) and not kind.in_models:
            raise _refused(named)
    resolved = resolve(_fields(target) if isinstance(target, Target) else target)
    if not kinds.kind(resolved.kind).in_models:
        raise _refused(resolved.name)
    return resolved.name


def _refused(name: str) -> TargetError:
    return TargetError(
        f"target {shown(name)} cannot have kernels inside a model; expected one of "
        f"{', '.join(each.targets for each in kinds.KINDS.values() if each.in_models)}"
    )


def _fields(target: Target) -> dict[str, Any]:
    """The fields that matter to a kernel, with the triple as te-select names it."""
    fields = json.loads(str(target))
    made = {name: value for name, value in fields.items() if name in _OF_A_KERNEL}
    machine, _, system = str(made.get("mtriple", "")).partition("-")
    if system.endswith("linux-gnu"):  # x86_64-conda-linux-gnu, aarch64-unknown-linux-gnu
        made["mtriple"] = f"{machine}-linux-gnu"
    return made
