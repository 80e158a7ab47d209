"""Target names, the TVM targets they stand for, and the CPU features they need."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm.target import Target, codegen

from te_select import cuda_compiler
from te_select.broadcast import shown
from te_select.errors import TargetError
from te_select.runtime import cuda_driver

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
    "native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, an LLVM CPU name, cuda, cuda:sm_90, "
    "cuda:sm_80,sm_90, or a TVM target as JSON"
)
_FIELDS = {
    "llvm": ("kind", "mcpu", "mattr", "num-cores", "keys", "tag"),
    "cuda": (
        "kind",
        "arch",
        "keys",
        "tag",
        # What TVM's own targets say besides the arch; a Select depends on none of it.
        "max_num_threads",
        "max_shared_memory_per_block",
        "max_threads_per_block",
        "registers_per_block",
        "thread_warp_size",
    ),
}
"""By kind of a TVM target: the fields that are taken. LLVM ends the process over some others."""


@dataclass(frozen=True)
class ResolvedTarget:
    """What a target name stands for.

    Parameters
    ----------
    name
        The name under which artifacts and records know it, and from which `resolve` makes the same
        target again: for ``native`` the CPU's name, or JSON where features of that CPU are hidden.
    tvm
        The TVM target.
    cpu_features
        Features that a CPU must have, as /proc/cpuinfo spells them.
    kind
        The kind of machine: ``"x86"`` or ``"cuda"`` (`te_select.machines`).
    archs
        The CUDA architectures to make machine code for, oldest first.
    """

    name: str
    tvm: Target
    cpu_features: tuple[str, ...]
    kind: str = "x86"
    archs: tuple[str, ...] = ()

    @property
    def records(self) -> str:
        """The name under which tuning records know it.

        A library for several CUDA architectures has one config: that of the newest, which also
        serves devices to come.
        """
        return f"cuda-{self.archs[-1]}" if self.archs else self.name


def resolve(target: str | dict[str, Any]) -> ResolvedTarget:
    """Find out what ``target`` stands for.

    Parameters
    ----------
    target
        ``"native"``, a level (``"x86-64"`` to ``"x86-64-v4"``), an LLVM CPU name (``"znver5"``),
        ``"cuda"`` for the GPUs of this machine, ``"cuda:sm_90"`` or ``"cuda:sm_80,sm_90"``, or a
        TVM target as JSON text or dict.

    Returns
    -------
    ResolvedTarget
        The TVM target, a name and the CPU features.

    Raises
    ------
    TargetError
        If no such target is known, it is neither x86-64 nor CUDA, or this machine has no GPU.
    """
    if isinstance(target, dict) or (isinstance(target, str) and target.lstrip().startswith("{")):
        return _from_json(target)
    if target == "native":
        return _native()
    if isinstance(target, str) and target.partition(":")[0] == "cuda":
        return _cuda(target)
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
    if hidden:
        return _from_json({"kind": "llvm", "mcpu": cpu, "mattr": hidden})
    return ResolvedTarget(cpu, named, _features(named))


def _cuda(target: str) -> ResolvedTarget:
    """Resolve ``cuda`` and ``cuda:ARCH,...``."""
    if target == "cuda":
        return _of_archs({device.arch for device in _local_devices()})
    archs = {arch.strip() for arch in target.removeprefix("cuda:").split(",")}
    wrong = sorted(arch for arch in archs if not _is_compilable(arch))
    if wrong:
        raise TargetError(
            f"target {target!r} names the architecture {wrong[0]!r}, which is not known; expected "
            f"{_known_archs()}"
        )
    return _of_archs(archs)


def _of_archs(archs: Iterable[str]) -> ResolvedTarget:
    ordered = tuple(sorted(archs, key=lambda arch: int(arch.removeprefix("sm_"))))
    tvm_target = Target({"kind": "cuda", "arch": ordered[-1]})
    return ResolvedTarget(f"cuda:{','.join(ordered)}", tvm_target, (), "cuda", ordered)


def _is_compilable(arch: str) -> bool:
    """Whether the CUDA compiler knows an architecture; any well-formed one where there is none."""
    known = cuda_compiler.archs()
    return arch in known if known else cuda_compiler.is_arch(arch)


def _known_archs() -> str:
    known = ", ".join(cuda_compiler.archs()) or "names such as sm_90"
    return f"{known}; several are a list, as in cuda:sm_80,sm_90"


def _local_devices() -> list[cuda_driver.Device]:
    hint = "to compile without it, name an architecture, such as cuda:sm_90"
    try:
        found = cuda_driver.devices()
    except cuda_driver.CudaError as error:
        raise TargetError(
            f"target 'cuda' is the GPU of this machine, which has none: {error}; {hint}"
        ) from error
    known = [device for device in found if _is_compilable(device.arch)]
    if not known:
        raise TargetError(
            f"target 'cuda' is {found[0].name} here, of architecture {found[0].arch}; expected "
            f"{_known_archs()}"
        )
    return known


def _from_json(target: str | dict[str, Any]) -> ResolvedTarget:
    try:
        fields = json.loads(target) if isinstance(target, str) else dict(target)
    except (ValueError, RecursionError) as error:
        raise TargetError(
            f"target {shown(target)} is not a TVM target: {error}; expected {EXAMPLES}"
        ) from error
    _check_fields(fields)
    try:
        tvm_target = Target(fields)
    except (ValueError, TypeError, RuntimeError, KeyError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise TargetError(f"target {shown(target)} is not a TVM target: {reason}") from error
    kind, cpu = tvm_target.kind.name, str(tvm_target.attrs.get("mcpu", "x86-64"))
    if kind == "cuda":
        return _cuda(f"cuda:{tvm_target.attrs.get('arch', '')}")
    if kind != "llvm" or not _is_x86_64(cpu):
        raise TargetError(
            f"target {shown(target)} is not supported; expected kind llvm and an x86-64 mcpu, or "
            "kind cuda and an arch"
        )
    name = cpu if set(fields) <= {"kind", "mcpu"} else json.dumps(fields, sort_keys=True)
    return ResolvedTarget(name, Target({**fields, "mcpu": cpu}), _features(tvm_target))


def _check_fields(fields: dict[str, Any]) -> None:
    """Refuse what LLVM would end the process for: foreign triples and unknown features."""
    kind = fields.get("kind")
    if kind is None and "tag" in fields:
        known = tuple(dict.fromkeys(itertools.chain(*_FIELDS.values())))
    elif isinstance(kind, str) and kind in _FIELDS:
        known = _FIELDS[kind]
    else:
        raise TargetError(f"target has the kind {shown(kind)}; expected {' or '.join(_FIELDS)}")
    if unknown := sorted(set(map(str, fields)) - set(known)):
        raise TargetError(
            f"target has the fields {shown(unknown)}; expected some of {', '.join(known)}"
        )
    if kind == "cuda" and not {"arch", "tag"} & set(fields):
        raise TargetError(f"target {shown(fields)} has no arch; expected one such as sm_90")
    mattr = fields.get("mattr", [])
    if not isinstance(mattr, list):
        raise TargetError(f"mattr {shown(mattr)} is no list; expected one such as ['-avx512f']")
    wrong = [m for m in mattr if str(m)[:1] not in "+-" or str(m)[1:] not in _CPUINFO_NAMES]
    if wrong:
        raise TargetError(
            f"mattr {shown(wrong)} is not supported; expected + or - and one of "
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
