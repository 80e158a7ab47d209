"""Targets that are CPUs: their names, their TVM targets, and the features that they need."""

from __future__ import annotations

import difflib
import functools
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm.target import Target, codegen

from te_select.backends.targets import ResolvedTarget
from te_select.base.levels import NAMES as LEVELS
from te_select.errors import TargetError
from te_select.operator.broadcast import shown
from te_select.runtime.call.cpu import features
from te_select.schedules.cpu import isa
from te_select.schedules.cpu.isa import ISAS, X86_64, Isa

# The fields of a TVM target that are accepted. LLVM ends the process over some others.
FIELDS = (
    *("kind", "mcpu", "mattr", "mtriple", "mabi", "num-cores", "keys", "tag"),
    # TVM adds these to targets of aarch64, and computes them anew each time.
    *(f"feature.{name}" for name in ("is_aarch64", "has_asimd", "has_sve", "has_sme")),
    *(f"feature.{name}" for name in ("has_dotprod", "has_matmul_i8", "has_fp16_simd")),
)


@dataclass(frozen=True)
class CpuTarget(ResolvedTarget):
    """A CPU, or several levels of an instruction set.

    Parameters
    ----------
    isa
        Its instruction set.
    cpu_features
        Features that it must have, as /proc/cpuinfo spells them. If there are several levels,
        those of the lowest.
    several
        The levels, lowest first, if there are several. ``tvm`` is then the target of the best one.
    """

    kind: str = "cpu"
    isa: Isa = X86_64
    cpu_features: tuple[str, ...] = ()
    several: tuple[CpuTarget, ...] = ()

    @property
    def levels(self) -> tuple[CpuTarget, ...]:
        """The levels, the best last; the target itself if there is only one."""
        return self.several or (self,)

    @property
    def triple(self) -> str:
        """What the C compiler makes code for, such as aarch64-linux-gnu."""
        return self.isa.triple

    @property
    def model(self) -> str:
        """LLVM's name of the CPU, or its traits; empty for a level, which many CPUs have."""
        cpu = str(self.tvm.attrs.get("mcpu", ""))
        return "" if cpu in (*LEVELS, self.isa.cpu) else self._traits or cpu

    @property
    def records(self) -> str:
        """The name under which tuning records know it."""
        if self._traits:
            return self._traits
        return self.name.replace(":", "-") if self.name.startswith(self.isa.name) else self.name

    @property
    def _traits(self) -> str:
        """The level and the features beyond it; empty if the CPU's name implies its features."""
        added = {f"+{feature}" for feature in self.isa.features}
        given = self.tvm.attrs.get("mattr", ())
        if self.isa is not X86_64 or self.name in LEVELS or added.isdisjoint(given):
            return ""
        present = isa.features_of(self.tvm)
        beyond = [name for name in X86_64.of_models if name in present]
        return "-".join((isa.level_of(self.tvm).name, *beyond))


def takes(text: str) -> bool:
    """Whether a name is that of a CPU, or begins a list of CPUs."""
    first = _as_ours(text).partition(",")[0].strip()
    return first in ("native", *LEVELS) or first.partition(":")[0] in ISAS or _is_x86_64(first)


_MCPU = re.compile(r"-mcpu[= ](\S+)")
_LLVM = re.compile(r"(?<!\S)llvm(?:\s+-mcpu[= ]\s*([^\s,]+))?(?=\s*(?:,|$))")
_OTHER_NAMES = {
    "amd64": X86_64.name,
    "x64": X86_64.name,
    "x86-64-v1": X86_64.name,
    "arm64": isa.AARCH64.name,
    "armv8": isa.AARCH64.name,
    "generic-rv64": isa.RISCV64.name,
    "riscv64gc": isa.RISCV64.name,
    "rv64gc": isa.RISCV64.name,
    **dict.fromkeys(("rva23", "rva23u64", "rv64gcv"), isa.RISCV64.levels[-1].name),
}


def suggestions(text: str) -> list[str]:
    """Names of CPUs that are close to one that is not known."""
    text = text.lower()
    if mcpu := _MCPU.search(text):  # of a target as older TVMs write it
        text = mcpu[1]
    if text in _OTHER_NAMES:
        return [_OTHER_NAMES[text]]
    known = {cpu: cpu for cpu in _cpus(X86_64)}
    known |= {cpu: f"{isa.AARCH64.name}:{cpu}" for cpu in _cpus(isa.AARCH64) if cpu not in known}
    exact = [cpu for cpu in {text, text.replace("_", "-")} if cpu in known]
    close = exact or difflib.get_close_matches(text, known, n=3)
    return [known[cpu] for cpu in close if known[cpu] != cpu or _is_x86_64(cpu)]


def by_machine(text: str) -> dict[str, str]:
    """The parts of a list for each instruction set in it, by what ``uname -m`` says there."""
    found: dict[str, list[str]] = {}
    names = [name.strip() for name in _as_ours(text).split(",")]
    for name in names:
        found.setdefault(_isa_of(name).machine, []).append(name)
    if len(found) > 1 and (wrong := [name for name in names if not takes(name)]):
        raise TargetError(
            f"target {shown(text)} holds {shown(wrong[0])}, which is no level or CPU; expected a "
            "list such as x86-64-v3,aarch64,riscv64:rva23"
        )
    return {machine: ",".join(parts) for machine, parts in found.items()}


def from_name(text: str) -> CpuTarget:
    """Resolve ``native``, one level or several, the name of a CPU, or ``llvm`` as TVM writes it."""
    text = _as_ours(text)
    if "," in text:
        return _several(text)
    if text == "native":
        return _native()
    name, colon, cpu = text.partition(":")
    if name in ISAS and ISAS[name] is not X86_64:
        return _of_cpu(ISAS[name], cpu if colon else ISAS[name].cpu)
    if colon:
        raise TargetError(
            f"target {shown(text)} is not known; expected a CPU of x86-64 by its name alone, such "
            "as znver5"
        )
    return _of_cpu(X86_64, text)


def from_fields(fields: Mapping[str, Any], tvm_target: Target) -> CpuTarget:
    """Resolve a TVM target of kind llvm from the fields that the user wrote."""
    if not isa.knows(tvm_target):  # of a tag
        raise TargetError(
            f"target {shown(dict(fields))} is for {tvm_target.attrs['mtriple']}; expected "
            f"{' or '.join(each.triple for each in ISAS.values())}"
        )
    own = isa.of(tvm_target)
    cpu = str(tvm_target.attrs.get("mcpu", own.cpu))
    if own is X86_64 and not _is_x86_64(cpu):
        raise TargetError(f"target {shown(dict(fields))} is not supported; expected an x86-64 mcpu")
    asked = {key: value for key, value in fields.items() if not key.startswith("feature.")}
    if own is X86_64:
        asked.pop("mtriple", None)  # what is meant without one
    full = _tvm_target(own, cpu, asked)
    levels = (level.name for level in own.levels if _added(own, level.name))
    for plain in (_of_cpu(own, cpu), *map(from_name, levels)):
        if str(full) == str(plain.tvm):
            return plain
    name = json.dumps(asked, sort_keys=True)
    return CpuTarget(name, full, isa=own, cpu_features=_cpu_features(own, full))


def check_fields(fields: Mapping[str, Any]) -> None:
    """Refuse fields over which LLVM would end the process, or which it would not follow."""
    triples = {each.triple: each for each in ISAS.values()}
    triple = fields.get("mtriple", X86_64.triple)
    if not isinstance(triple, str) or triple not in triples:
        raise TargetError(
            f"mtriple {shown(triple)} is not supported; expected {' or '.join(triples)}"
        )
    own = triples[triple]
    mattr = fields.get("mattr", [])
    if not isinstance(mattr, list):
        raise TargetError(f"mattr {shown(mattr)} is no list; expected one such as ['-avx512f']")
    known = {sign + feature for sign in "+-" for feature in own.features}
    known |= {*own.attributes, *(f"-{feature}" for feature in own.switched_off)}
    if wrong := [each for each in mattr if not isinstance(each, str) or each not in known]:
        names = ", ".join(own.features) or f"none but {', '.join(own.attributes)}"
        raise TargetError(
            f"mattr {shown(wrong)} is not supported; expected + or - and one of {names}"
        )
    if fields.get("mabi", own.abi) != own.abi:
        raise TargetError(f"mabi {shown(fields['mabi'])} is not supported; expected {own.abi!r}")
    if own is not X86_64 and isinstance(fields.get("mcpu"), str):
        _check_cpu(own, fields["mcpu"])


def _of_cpu(own: Isa, cpu: str) -> CpuTarget:
    """The target of one CPU of an instruction set, or of a level, by what follows the colon."""
    name = cpu if own is X86_64 else own.name if cpu == own.cpu else f"{own.name}:{cpu}"
    if added := _added(own, name):
        full = _tvm_target(own, own.cpu, {"mattr": added})
    else:
        if own is not X86_64:
            _check_cpu(own, cpu)
        full = _tvm_target(own, cpu, {})
    return CpuTarget(name, full, isa=own, cpu_features=_cpu_features(own, full))


def _added(own: Isa, name: str) -> list[str]:
    """The ``mattr`` that makes a level of the baseline CPU; none if LLVM has a CPU of that name."""
    names = [level.name for level in own.levels]
    if name not in names or name in _cpus(own):
        return []
    levels = own.levels[: names.index(name) + 1]
    return [f"+{feature}" for level in levels for feature in level.features]


def _tvm_target(own: Isa, cpu: str, fields: Mapping[str, Any]) -> Target:
    """The TVM target of some fields, completed with what the instruction set needs."""
    made: dict[str, Any] = {"kind": "llvm", **fields, "mcpu": cpu}
    if own is not X86_64 or platform.machine() != X86_64.machine:
        made["mtriple"] = own.triple
    if own.abi:
        made["mabi"] = own.abi
    mattr = [*fields.get("mattr", ()), *own.attributes]
    if own.switched_off:
        present = isa.features_of(Target(made))
        unasked = [name for name in own.switched_off if f"+{name}" not in mattr]
        mattr += [f"-{name}" for name in unasked if name in present]
    if mattr:
        made["mattr"] = list(dict.fromkeys(mattr))
    return Target(made)


def _check_cpu(own: Isa, cpu: str) -> None:
    """Refuse a CPU that LLVM does not know; LLVM would print a line and take another one."""
    known = _cpus(own) if own.names_cpus else (own.cpu,)
    if cpu in known:
        return
    levels = " or ".join(level.name for level in own.levels)
    close = difflib.get_close_matches(cpu, known, n=3) or list(known)[-3:]
    named = " or ".join(f"{own.name}:{each}" for each in close if each != own.cpu)
    raise TargetError(
        f"{cpu!r} is no CPU of {own.name} that is known; expected {levels}"
        + (f", or a CPU such as {named}" if named else "")
    )


def _several(text: str) -> CpuTarget:
    """Resolve a list of levels."""
    names = [name.strip() for name in text.split(",")]
    own = _isa_of(names[0])
    known = [level.name for level in own.levels]
    expected = (
        f"a list is of {', '.join(known)}, each at most once"
        if len(known) > 1
        else f"{own.name} has one level, so it is given alone, as a CPU is"
    )
    if foreign := [name for name in names if _isa_of(name) is not own]:
        raise TargetError(
            f"target {shown(text)} holds {shown(foreign[0])}, and a library is for one instruction "
            f"set (te_select.export and te-select compile write one for each); {expected}"
        )
    for name in names:
        if name not in known:
            raise TargetError(f"target {shown(text)} holds {name!r}, which is no level; {expected}")
        if names.count(name) > 1:
            raise TargetError(f"target {shown(text)} holds {name!r} twice; {expected}")
    levels = tuple(from_name(name) for name in known if name in names)
    lowest, best = levels[0], levels[-1]
    name = ",".join(level.name for level in levels)
    return CpuTarget(name, best.tvm, isa=own, cpu_features=lowest.cpu_features, several=levels)


def _as_ours(text: str) -> str:
    """A target with our names in the place of ``llvm`` and ``llvm -mcpu=znver5``."""
    own = _isa_of("native")
    named = "" if own is X86_64 else f"{own.name}:"
    return _LLVM.sub(lambda found: named + found[1] if found[1] else own.name, text)


def _isa_of(name: str) -> Isa:
    """The instruction set of a target's name."""
    if name == "native":
        return next((own for own in ISAS.values() if own.machine == platform.machine()), X86_64)
    return ISAS.get(name.partition(":")[0], X86_64)


def _native() -> CpuTarget:
    """Resolve this CPU by its name, with the features that it shows: hypervisors hide some."""
    machine = platform.machine()
    own = _isa_of("native")
    if own.machine != machine:
        raise TargetError(f"target 'native' is {machine} here; expected one of {', '.join(ISAS)}")
    if not own.names_cpus:  # then the best level is all that can be asked for
        levels = [from_name(level.name) for level in own.levels]
        return next(each for each in reversed(levels) if not features.missing(each.cpu_features))
    cpu = str(codegen.llvm_get_system_cpu())
    if own is not X86_64 and cpu not in _cpus(own):
        cpu = own.cpu
    named = _of_cpu(own, cpu)
    if mattr := _differences(own, named.tvm):
        fields = {"kind": "llvm", "mcpu": cpu, "mtriple": own.triple, "mattr": mattr}
        return from_fields(fields, Target(fields))
    return named


def _differences(own: Isa, named: Target) -> list[str]:
    """The ``mattr`` that makes of the features of a CPU's name those that this CPU shows."""
    implied = isa.features_of(named) & set(own.features)
    if own is X86_64:
        present = tvm_ffi.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
        shows = {feature for feature in own.features if present.get(feature, False)}
        added = shows - implied if named.attrs["mcpu"] not in LEVELS else set()
    else:  # LLVM detects only some features of other CPUs
        shows = {name for name, spelt in own.features.items() if not features.missing([spelt])}
        added = set()
    return [f"-{name}" for name in sorted(implied - shows)] + [f"+{name}" for name in sorted(added)]


@functools.cache
def _cpus(own: Isa) -> tuple[str, ...]:
    """The CPUs of an instruction set that LLVM knows, sorted; for x86-64 also CPUs of 32 bits."""
    generic = Target({"kind": "llvm", "mtriple": own.triple, "mcpu": own.cpu})
    return tuple(sorted(map(str, codegen.llvm_get_cpu_archlist(generic))))


def _is_x86_64(cpu: str) -> bool:
    fields = {"kind": "llvm", "mtriple": X86_64.triple, "mcpu": cpu}
    return cpu in _cpus(X86_64) and "64bit" in isa.features_of(Target(fields))


def _cpu_features(own: Isa, target: Target) -> tuple[str, ...]:
    """The features that a CPU must have for a target's code, as /proc/cpuinfo spells them."""
    present = isa.features_of(target)
    return tuple(sorted(name for llvm, name in own.features.items() if llvm in present))
