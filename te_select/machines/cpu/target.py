"""Targets that are CPUs: their names, the TVM targets they stand for, and what a CPU must have."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm.target import Target, codegen

from te_select.errors import TargetError
from te_select.machines.targets import ResolvedTarget
from te_select.operator.broadcast import shown

FIELDS = ("kind", "mcpu", "mattr", "num-cores", "keys", "tag")
"""The fields of a TVM target that are taken. LLVM ends the process over some others."""

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


@dataclass(frozen=True)
class CpuTarget(ResolvedTarget):
    """A CPU.

    Parameters
    ----------
    cpu_features
        Features that it must have, as /proc/cpuinfo spells them.
    """

    kind: str = "cpu"
    cpu_features: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """LLVM's name of the CPU; empty for a level, which many CPUs have."""
        cpu = str(self.tvm.attrs.get("mcpu", ""))
        return "" if cpu.startswith("x86-64") else cpu


def takes(text: str) -> bool:
    """Whether a name is that of a CPU."""
    return text == "native" or _is_x86_64(text)


def suggestions(text: str) -> list[str]:
    """Names of CPUs that are close to one that is not known."""
    return difflib.get_close_matches(text, _cpus(), n=3)


def from_name(text: str) -> CpuTarget:
    """Resolve ``native``, a level, or the LLVM name of a CPU."""
    if text == "native":
        return _native()
    tvm_target = Target({"kind": "llvm", "mcpu": text})
    return CpuTarget(text, tvm_target, cpu_features=_features(tvm_target))


def from_fields(fields: Mapping[str, Any], tvm_target: Target) -> CpuTarget:
    """Resolve a TVM target of kind llvm, from its fields as the user wrote them."""
    cpu = str(tvm_target.attrs.get("mcpu", "x86-64"))
    if not _is_x86_64(cpu):
        raise TargetError(f"target {shown(dict(fields))} is not supported; expected an x86-64 mcpu")
    name = cpu if set(fields) <= {"kind", "mcpu"} else json.dumps(fields, sort_keys=True)
    full = Target({**fields, "mcpu": cpu})
    return CpuTarget(name, full, cpu_features=_features(tvm_target))


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse features that LLVM would end the process over."""
    mattr = fields.get("mattr", [])
    if not isinstance(mattr, list):
        raise TargetError(f"mattr {shown(mattr)} is no list; expected one such as ['-avx512f']")
    wrong = [m for m in mattr if str(m)[:1] not in "+-" or str(m)[1:] not in _CPUINFO_NAMES]
    if wrong:
        raise TargetError(
            f"mattr {shown(wrong)} is not supported; expected + or - and one of "
            f"{', '.join(_CPUINFO_NAMES)}"
        )


def _native() -> CpuTarget:
    """Resolve this CPU, less the features that its name implies but a hypervisor hides."""
    cpu = str(codegen.llvm_get_system_cpu())
    present = tvm_ffi.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    named = Target({"kind": "llvm", "mcpu": cpu})
    hidden = [
        f"-{feature}"
        for feature in map(str, codegen.llvm_get_cpu_features(named))
        if feature in _CPUINFO_NAMES and not present.get(feature, False)
    ]
    if hidden:
        fields = {"kind": "llvm", "mcpu": cpu, "mattr": hidden}
        return from_fields(fields, Target(fields))
    return CpuTarget(cpu, named, cpu_features=_features(named))


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
