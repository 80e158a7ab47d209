"""CPUs: LLVM makes object files, and a C compiler links them with the checks and the threads."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import tvm

from te_select.backends import limits
from te_select.backends.c_compiler import link_stub
from te_select.backends.cpu import link, lowering, objects, stage_code
from te_select.backends.cpu.target import CpuTarget
from te_select.backends.scheduled import Scheduled, symbol
from te_select.base import scratch
from te_select.operator.access import access_pattern
from te_select.operator.stages import Stage
from te_select.operator.workload import Workload
from te_select.runtime.artifact.fields import Component
from te_select.runtime.artifact.manifest import Manifest
from te_select.runtime.call.cpu import features
from te_select.runtime.call.cpu.decisions import Decisions

_NOTES = (".loc", ".file", ".cfi_")
_SECTION = re.compile(r"\s+\.(?:section\s+(\S+?)(?:,|\s|$)|text\b|data\b|bss\b)")
_LABEL = re.compile(r"(\.L(?:tmp|func_begin|func_end)\d+):")


def write_library(
    chosen: Sequence[Scheduled],
    target: CpuTarget,
    manifest: Manifest,
    path: Path,
    places: Mapping[Workload, str] | None = None,
    stages: Sequence[Stage] = (),
    static: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write the shared library of scheduled workloads.

    Parameters
    ----------
    chosen
        Different workloads, each scheduled for every level of the target.
    target
        The target that they were scheduled for.
    manifest
        Describes the library; it is stored inside it.
    path
        The ``.so`` to write; its folder exists.
    places
        For kernels of the family that serves operands of any shapes: the place of each in its
        table. None if there are none.
    stages
        The stages of that family to build, too.
    static
        The ``.a`` or ``.o`` to write with the same code, or None.
    progress
        Called with the number of steps done and of all steps, if there are many kernels.
    """
    made: list[Path] = []
    versions: dict[Workload, list[link.Version]] = {one.workload: [] for one in chosen}
    with scratch.folder(scratch.ROOM + len(chosen) * scratch.KERNEL_ROOM) as folder:
        for k, level in enumerate(target.levels):

            def told(done: int, files: int, before: int = k) -> None:
                if progress is not None:
                    progress(before * files + done, len(target.levels) * files)

            suffix = f"_l{k}" if len(target.levels) > 1 else ""
            of_level = {
                symbol(i) + suffix: one
                for i, one in enumerate(each for each in chosen if each.level == level.name)
            }
            for name, one in of_level.items():
                decisions = Decisions.of(access_pattern(one.workload), vars(one.config))
                versions[one.workload].append(link.Version(name, decisions))
            with limits.tvm_errors_as_ours(*(one.workload for one in of_level.values())):
                # Lowest level first: every level has the same helpers of TVM, and the linker takes
                # those that come first, so these must run on every CPU.
                if of_level:
                    made += objects.write(of_level, level.tvm, folder / f"kernels{k}", told)
            if stages:
                made.append(folder / f"stages{k}.o")
                stage_code.write(stages, partial(link.stage_symbol, level=k), level.tvm, made[-1])
        levels = {level.name: level.cpu_features for level in target.levels}
        stub = link.stub_source(versions, levels, manifest.c_functions, places, stages)
        half = link.CPU if places is None else link.FAMILY
        link_stub(stub, made, half, manifest, path, target.triple, static)


def requirements(target: CpuTarget) -> dict[str, Any]:
    """The instruction set, and the CPU features that the code uses."""
    needed = {
        "kind": target.kind,
        "architecture": target.isa.machine,
        "cpu_features": list(target.cpu_features),
    }
    if not target.several:
        return needed
    return needed | {"levels": {level.name: list(level.cpu_features) for level in target.several}}


def missing(target: CpuTarget) -> list[str]:
    """The features that this CPU lacks; or the instruction set, if this CPU has another."""
    return features.lacking(target.isa.machine, target.cpu_features)


def versions() -> dict[str, str]:
    """The version of LLVM."""
    return {"llvm": str(tvm.target.codegen.llvm_version_major())}


def components() -> tuple[Component, ...]:
    """LLVM."""
    number = versions()["llvm"]
    return (Component("LLVM", number, "compiler", "Apache-2.0 WITH LLVM-exception"),)


def source(one: Scheduled, target: CpuTarget, form: str) -> str:
    """The code in one form: TIR, LLVM IR, or assembly."""
    with limits.tvm_errors_as_ours(one.workload):
        lowered = lowering.lower_kernel(one, symbol(0), target.tvm, shown=form == "tir")
        if form == "tir":
            return "\n\n".join(str(func.script()) for func in lowered)
        module = lowering.build(lowered, target.tvm)
    if form == "llvm":
        return str(module.inspect_source("ll"))
    return without_notes(str(module.inspect_source("asm")))


def without_notes(assembly: str) -> str:
    """Assembly for people: without debug sections, line numbers, and labels only for these."""
    lines, debug = [], False
    for line in assembly.splitlines():
        if found := _SECTION.match(line):
            debug = (found[1] or "").strip('"').startswith(".debug_")
        if not debug and not line.lstrip().startswith(_NOTES):
            lines.append(line)
    text = "\n".join(lines)
    used = set(re.findall(r"\.L(?:tmp|func_begin|func_end)\d+(?!\d|:)", text))
    kept = (line for line in lines if not (label := _LABEL.match(line)) or label[1] in used)
    return "\n".join(kept) + "\n"


def device() -> str:
    """The CPU's name, and how many threads this process may use."""
    return f"{features.cpu_name()}, {len(os.sched_getaffinity(0))} threads"


def tuned_on(_target: CpuTarget) -> tuple[str, int | None]:
    """The CPU's name, and how many CPUs this process may use."""
    return features.cpu_name(), len(os.sched_getaffinity(0))
