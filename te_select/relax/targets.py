"""The target of a model's kernels, as TVM or te-select writes it."""

from __future__ import annotations

import json
from typing import Any

from tvm.target import Target

from te_select import kinds
from te_select.backends.targets import resolve
from te_select.errors import TargetError
from te_select.operator.broadcast import shown

# What the others say, such as num-cores and opt-level, makes no difference to a kernel.
_OF_A_KERNEL = ("kind", "mcpu", "mattr", "mtriple", "mabi")


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
