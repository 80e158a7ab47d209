"""Target names, the TVM targets they stand for, and the CPU features they need."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm.target import Target, codegen

from te_select.errors import TargetError

_CPUINFO_NAMES = {
    "sse3": "pni",
    "ssse3": "ssse3",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "popcnt": "popcnt",
    "avx": "avx",
    "avx2": "avx2",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "fma": "fma",
    "f16c": "f16c",
    "lzcnt": "abm",
    "movbe": "movbe",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512vbmi": "avx512vbmi",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512bitalg": "avx512_bitalg",
    "gfni": "gfni",
    "sse4a": "sse4a",
    "xop": "xop",
    "fma4": "fma4",
    "tbm": "tbm",
}
"""Features that code generation may use for a Select, as LLVM and Linux's /proc/cpuinfo spell them.

Others (amx, avx512_fp16, ...) are left out on purpose: a virtual machine often hides them, and a
library that never uses them must load there.
"""

EXAMPLES = (
    "native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, an LLVM CPU name, or a TVM target as JSON"
)


@dataclass(frozen=True)
class ResolvedTarget:
    """What a target name stands for.

    Parameters
    ----------
    name
        The name under which artifacts and records know it: the CPU's name for ``native``.
    tvm
        The TVM target.
    cpu_features
        Features that a CPU must have, as /proc/cpuinfo spells them.
    """

    name: str
    tvm: Target
    cpu_features: tuple[str, ...]


def resolve(target: str | dict[str, Any]) -> ResolvedTarget:
    """Find out what ``target`` stands for.

    Parameters
    ----------
    target
        ``"native"``, a level (``"x86-64"`` to ``"x86-64-v4"``), an LLVM CPU name (``"znver5"``), or
        a TVM target as JSON text or dict.

    Returns
    -------
    ResolvedTarget
        The TVM target, a name and the CPU features.

    Raises
    ------
    TargetError
        If no such target is known, or it is not x86-64.
    """
    if isinstance(target, dict) or (isinstance(target, str) and target.lstrip().startswith("{")):
        return _from_json(target)
    if target == "native":
        return _native()
    if not isinstance(target, str) or not _is_x86_64(target):
        close = difflib.get_close_matches(str(target), _cpus(), n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise TargetError(f"target {target!r} is not known; expected {EXAMPLES}{hint}")
    tvm_target = Target({"kind": "llvm", "mcpu": target})
    return ResolvedTarget(target, tvm_target, _features(tvm_target))


def _native() -> ResolvedTarget:
    """Resolve this CPU, less the features that its name implies but a hypervisor hides."""
    cpu = str(codegen.llvm_get_system_cpu())
    present = tvm_ffi.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    named = Target({"kind": "llvm", "mcpu": cpu})
    hidden = [
        f"-{feature}"
        for feature in map(str, codegen.llvm_get_cpu_features(named))
        if feature in _CPUINFO_NAMES and not present.get(feature, False)
    ]
    tvm_target = Target({"kind": "llvm", "mcpu": cpu, "mattr": hidden}) if hidden else named
    return ResolvedTarget(cpu, tvm_target, _features(tvm_target))


def _from_json(target: str | dict[str, Any]) -> ResolvedTarget:
    try:
        fields = json.loads(target) if isinstance(target, str) else dict(target)
        tvm_target = Target(fields)
    except (ValueError, TypeError, RuntimeError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise TargetError(f"target {target!r} is not a TVM target: {reason}") from error
    _check_fields(fields)
    kind, cpu = tvm_target.kind.name, str(tvm_target.attrs.get("mcpu", "x86-64"))
    if kind != "llvm" or not _is_x86_64(cpu):
        raise TargetError(
            f"target {target!r} is not supported; expected kind llvm and an x86-64 mcpu"
        )
    name = cpu if set(fields) <= {"kind", "mcpu"} else json.dumps(fields, sort_keys=True)
    return ResolvedTarget(name, Target({**fields, "mcpu": cpu}), _features(tvm_target))


def _check_fields(fields: dict[str, Any]) -> None:
    """Refuse what LLVM would end the process for: foreign triples and unknown features."""
    unknown = sorted(set(fields) - {"kind", "mcpu", "mattr", "num-cores", "keys", "tag"})
    if unknown:
        raise TargetError(f"target has the fields {unknown}; expected kind, mcpu and mattr only")
    mattr = fields.get("mattr", [])
    wrong = [m for m in mattr if str(m)[:1] not in "+-" or str(m)[1:] not in _CPUINFO_NAMES]
    if wrong:
        raise TargetError(
            f"mattr {wrong} is not supported; expected + or - and one of "
            f"{', '.join(_CPUINFO_NAMES)}"
        )


def _cpus() -> list[str]:
    generic = Target({"kind": "llvm", "mcpu": "x86-64"})
    return sorted(str(cpu) for cpu in codegen.llvm_get_cpu_archlist(generic))


def _is_x86_64(cpu: str) -> bool:
    if cpu not in _cpus():
        return False
    features = codegen.llvm_get_cpu_features(Target({"kind": "llvm", "mcpu": cpu}))
    return "64bit" in {str(feature) for feature in features}


def _features(target: Target) -> tuple[str, ...]:
    present = {str(feature) for feature in codegen.llvm_get_cpu_features(target)}
    return tuple(sorted(name for llvm, name in _CPUINFO_NAMES.items() if llvm in present))
