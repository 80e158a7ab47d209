"""Target names, and what they stand for.

The module of a kind that reads its targets has these names:

``FIELDS``
    The fields that its TVM targets may have as JSON.
``takes(text)``
    Whether a name is that of a target of the kind.
``suggestions(text)``
    Names that the user may have meant by one that is not known.
``from_name(text)``
    The target of a name that it takes.
``check_fields(fields)``
    Raises `TargetError` where TVM would not, or would end the process.
``from_fields(fields, tvm_target)``
    The target of a TVM target's fields.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.target import Target

from te_select.base import kinds
from te_select.errors import TargetError, caught
from te_select.operator.broadcast import shown


@dataclass(frozen=True)
class ResolvedTarget:
    """What a target name stands for; each kind of machine adds what it needs.

    Parameters
    ----------
    name
        The name under which artifacts and records know it, and from which `resolve` makes the same
        target again: for ``native`` the CPU's name, or JSON if features of that CPU are hidden.
    tvm
        The TVM target.
    kind
        The kind of machine (`te_select.base.kinds`).
    """

    name: str
    tvm: Target
    kind: str

    @property
    def records(self) -> str:
        """The name under which tuning records know it."""
        return self.name

    @property
    def levels(self) -> tuple[ResolvedTarget, ...]:
        """The targets for each of which a library has kernels of its own, the best last."""
        return (self,)

    @property
    def triple(self) -> str | None:
        """What the C compiler makes code for, such as aarch64-linux-gnu; None for this machine."""
        return None

    @property
    def model(self) -> str:
        """The model of machine that its code is for; empty if it is for many."""
        return ""


def resolve(target: str | dict[str, Any]) -> ResolvedTarget:
    """Find out what ``target`` stands for.

    Parameters
    ----------
    target
        ``"native"``, a level of `te_select.base.levels` or several (``"x86-64-v2,x86-64-v3"``), an
        LLVM CPU name (``"znver5"``),
        ``"cuda"`` for the GPUs of this machine, ``"cuda:sm_90"`` or ``"cuda:sm_80,sm_90"``, or a
        TVM target as JSON text or dict.

    Returns
    -------
    ResolvedTarget
        The TVM target, a name and what the kind of machine adds.

    Raises
    ------
    TargetError
        If no such target is known, or it is the GPU of a machine that has none.
    """
    named = target.strip() if isinstance(target, str) else ""
    if isinstance(target, dict) or named.startswith("{"):
        return _from_json(target)
    readers = [kinds.load(kind.target) for kind in kinds.KINDS.values()]
    for reader in readers:
        if reader.takes(named):
            resolved: ResolvedTarget = reader.from_name(named)
            return resolved
    close = [name for reader in readers for name in reader.suggestions(named)]
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    raise TargetError(f"target {shown(named or target)} is not known; expected {_examples()}{hint}")


def resolve_each(target: str | dict[str, Any]) -> dict[str, ResolvedTarget]:
    """The target of each library that a target asks for: one for each instruction set of a list.

    Returns
    -------
    dict[str, ResolvedTarget]
        By what ``uname -m`` says on a machine that runs the library; at least one.

    Raises
    ------
    TargetError
        As `resolve`.
    """
    if isinstance(target, str):
        for kind in kinds.KINDS.values():
            if kind.by_machine and kinds.load(kind.target).takes(target):
                parts = kinds.load(kind.by_machine)(target)
                return {machine: resolve(part) for machine, part in parts.items()}
    return {"": resolve(target)}


def _examples() -> str:
    """What a target may be."""
    named = ", ".join(kind.targets for kind in kinds.KINDS.values())
    return f"{named}, or a TVM target as JSON"


def _from_json(target: str | dict[str, Any]) -> ResolvedTarget:
    try:
        fields = json.loads(target) if isinstance(target, str) else dict(target)
    except caught(ValueError, RecursionError) as error:
        raise TargetError(
            f"target {shown(target)} is not a TVM target: {error}; expected {_examples()}"
        ) from error
    _check_fields(fields)
    try:
        tvm_target = Target(fields)
    except caught(ValueError, TypeError, RuntimeError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise TargetError(f"target {shown(target)} is not a TVM target: {reason}") from error
    kind = kinds.of_tvm(tvm_target.kind.name)
    if kind is None:  # of a tag
        raise TargetError(
            f"target {shown(target)} is of kind {tvm_target.kind.name}; expected {_tvm_kinds()}"
        )
    resolved: ResolvedTarget = kinds.load(kind.target).from_fields(fields, tvm_target)
    return resolved


def _tvm_kinds() -> str:
    return " or ".join(kind.tvm_kind for kind in kinds.KINDS.values())


def _check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse what LLVM would end the process for: foreign triples and unknown features."""
    named = fields.get("kind")
    of_any = named is None and "tag" in fields
    found = (kind for kind in kinds.KINDS.values() if of_any or kind.tvm_kind == named)
    readers = [kinds.load(kind.target) for kind in found]
    if not readers:
        raise TargetError(f"target has the kind {shown(named)}; expected {_tvm_kinds()}")
    known = tuple(dict.fromkeys(itertools.chain(*(reader.FIELDS for reader in readers))))
    if unknown := sorted(set(map(str, fields)) - set(known)):
        raise TargetError(
            f"target has the fields {shown(unknown)}; expected some of {', '.join(known)}"
        )
    for reader in readers:
        reader.check_fields(fields)
