"""x86-64: LLVM makes an object file, and a C compiler links it to the checks and the launcher."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx

from te_select import lowering, scratch, toolchain
from te_select.access import access_pattern
from te_select.environment import cpu_name
from te_select.machines.scheduled import Scheduled, symbol
from te_select.schedules import x86 as schedule
from te_select.targets import ResolvedTarget

__all__ = ["build", "requirements", "schedule", "source", "tuned_on", "versions"]


def build(chosen: Sequence[Scheduled], target: ResolvedTarget, path: Path) -> None:
    """Write the shared library of scheduled workloads.

    Parameters
    ----------
    chosen
        The workloads, which differ.
    target
        What they were scheduled for.
    path
        The ``.so`` to write; its folder exists.
    """
    functions = [func for i, one in enumerate(chosen) for func in lower(one, symbol(i))]
    module = lowering.build(functions, target.tvm)
    with scratch.folder(scratch.ROOM + len(chosen) * scratch.KERNEL_ROOM) as folder:
        object_file = folder / "kernels.o"
        module.write_to_file(str(object_file), "o")
        entries = [
            toolchain.KernelEntry(
                one.workload,
                symbol(i),
                one.config.bytes_per_thread,
                one.config.stream_from,
            )
            for i, one in enumerate(chosen)
        ]
        toolchain.link(object_file, entries, path)


def requirements(target: ResolvedTarget) -> dict[str, Any]:
    """The CPU features without which the code dies."""
    return {"cpu_features": list(target.cpu_features)}


def versions() -> dict[str, str]:
    """The version of LLVM."""
    return {"llvm": str(tvm.target.codegen.llvm_version_major())}


def source(one: Scheduled, target: ResolvedTarget, level: str) -> str:
    """Lowered to a C function that calls span kernels, as LLVM IR, or as assembly."""
    lowered = lower(one, symbol(0))
    if level == "tir":
        return "\n\n".join(str(func.script()) for func in lowered)
    module = lowering.build(lowered, target.tvm)
    return str(module.inspect_source("ll" if level == "llvm" else "asm"))


def tuned_on(_target: ResolvedTarget) -> tuple[str, int | None]:
    """The CPU's name, and how many of them this process may use."""
    return cpu_name(), len(os.sched_getaffinity(0))


def lower(one: Scheduled, name: str) -> list[tirx.PrimFunc]:
    """Lower to a raw C function ``name``, and those that it leaves some calls to."""
    spans = (one.workload.dim_names, schedule.ANNOTATION, schedule.span_source)
    others: list[tirx.PrimFunc] = []
    instead: list[lowering.Small | lowering.ShortRows] = []
    if one.small is not None:
        instead.append(lowering.Small(f"{name}_small"))
        others.append(lowering.lower(one.small, f"{name}_small", *spans))
    if one.short_rows is not None:
        pattern = access_pattern(one.workload)
        rows = pattern.loops[-1].dims
        instead.append(lowering.ShortRows(f"{name}_short_rows", rows, schedule.long_from(pattern)))
        others.append(lowering.lower(one.short_rows, f"{name}_short_rows", *spans))
    return [lowering.lower(one.func, name, *spans, instead), *others]
