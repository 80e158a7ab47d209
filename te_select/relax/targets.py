"""The target of a model's kernels, as TVM or te-select writes it."""

from __future__ import annotations

import json
from typing import Any

from tvm.target import Target

from te_select import kinds
from te_select.backends.targets import resolve
from te_select.errors import TargetError
from te_select.operator.broadcast import shown

_OF_THE_REST = ("tag", "keys", "host", "num-cores")  # what they say makes no difference to a kernel


def kernel_target(target: Any) -> str | dict[str, Any]:
    """Find out for what target the kernels of a model are compiled.

    Parameters
    ----------
    target
        A ``tvm.target.Target``, what `te_select.compile` takes, or None for the target of the
        surrounding ``with target:``, else this machine.

    Returns
    -------
    str or dict
        The target as `te_select.export` takes it.

    Raises
    ------
    TargetError
        If it is not known, or its kernels cannot be linked into a model.
    """
    if target is None:
        target = Target.current(allow_none=True) or "native"
    if isinstance(target, Target):
        target = _fields(target)
    resolved = resolve(target)
    if not kinds.kind(resolved.kind).in_models:
        raise TargetError(
            f"target {shown(resolved.name)} cannot have kernels inside a model; expected one of "
            f"{', '.join(each.targets for each in kinds.KINDS.values() if each.in_models)}"
        )
    return resolved.name


def _fields(target: Target) -> dict[str, Any]:
    """The fields that matter to a kernel, with the triple as te-select names it."""
    fields = json.loads(str(target))
    made = {name: value for name, value in fields.items() if name not in _OF_THE_REST}
    machine, _, system = str(made.get("mtriple", "")).partition("-")
    if system.endswith("linux-gnu"):  # x86_64-conda-linux-gnu, aarch64-unknown-linux-gnu
        made["mtriple"] = f"{machine}-linux-gnu"
    return made
