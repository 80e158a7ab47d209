"""From a workload to a kernel: definition, schedule, lowering, shared library.

`compile` builds the artifact in a temporary folder and loads it by the very `load` that users call,
so what is measured is what ships. The folder goes when the process ends.
"""

from __future__ import annotations

import atexit
import itertools
import os
import platform
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import tvm
from tvm import s_tir

from te_select import kinds
from te_select.errors import ArgumentError, ArtifactError, TargetError
from te_select.machines import machine, schedule_of
from te_select.machines.scheduled import Scheduled
from te_select.machines.targets import ResolvedTarget, resolve
from te_select.operator.access import AccessPattern, access_pattern
from te_select.operator.broadcast import shown
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.records import lookup
from te_select.records.origin import DEFAULT, NONE_NEAR, NOT_ASKED
from te_select.runtime import artifact, scratch, stored
from te_select.runtime.kernel import Kernel
from te_select.runtime.manifest import KernelRecord, Manifest

TuningLogs = str | Path | Literal[False] | None
_INT32_LITERAL = "exceeds range of int32"  # what sch.fuse of TVM 0.27 fails with
_builds = itertools.count()


def compile(
    workload: Workload,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
) -> Kernel:
    """Compile a workload to a kernel.

    Parameters
    ----------
    workload
        What to compile.
    target
        ``"native"``, ``"x86-64"`` to ``"x86-64-v4"``, an LLVM CPU name, ``"cuda"`` (the GPUs of
        this machine), ``"cuda:sm_80,sm_90"``, or a TVM target as JSON.
    tuning_logs
        None for the records shipped with the package, a folder for those in it only, False for
        none. The workload's own record is taken, else the nearest, else the default config.

    Returns
    -------
    Kernel
        The kernel, ready to be called.

    Raises
    ------
    TargetError
        If the target is not known, or this CPU lacks what it needs; `export` cross-compiles.
    ToolchainError
        If there is no working C compiler, or no CUDA compiler for a CUDA target.
    ArtifactError
        If there is no room for temporary files.
    TuningError
        If the folder of tuning logs is missing, or holds no record that can be used.
    """
    _checked(workload)
    resolved = resolve(target)
    check_runs_here(resolved)
    path = _build_folder(os.getpid()) / f"build{next(_builds)}" / f"{workload.name}.so"
    build_scheduled([schedule(workload, resolved, tuning_logs)], path, resolved)
    loaded = artifact.load(path)
    if not isinstance(loaded, Kernel):
        raise ArtifactError(f"{path} holds several kernels; expected one")
    return loaded


def export(
    workloads: Iterable[Workload],
    path: str | Path,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
) -> Path:
    """Compile many workloads into one shared library.

    Parameters
    ----------
    workloads
        What to compile; equal workloads are stored once.
    path
        The ``.so`` to write; its manifest is the ``.json`` beside it.
    target, tuning_logs
        As for `compile`. The target need not be one that this machine can run.

    Returns
    -------
    Path
        The library's path.

    Raises
    ------
    ArgumentError
        If there is no workload.
    ArtifactError
        If the path cannot be written.
    """
    if isinstance(workloads, Workload) or not isinstance(workloads, Iterable):
        raise ArgumentError(f"workloads is {shown(workloads)}; expected a list of workloads")
    unique = list(dict.fromkeys(map(_checked, workloads)))
    if not unique:
        raise ArgumentError("no workloads are given; a library holds at least one")
    with scratch.folder(scratch.ROOM + len(unique) * scratch.KERNEL_ROOM) as folder:
        built = folder / "library.so"
        build(unique, built, target, tuning_logs)
        return stored.write(stored.read(built), path)


def build(
    workloads: list[Workload],
    path: Path,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
) -> None:
    """Build a shared library at ``path``.

    Parameters
    ----------
    workloads
        What to compile; they differ.
    path
        The ``.so`` to write, into a folder of its own.
    target, tuning_logs
        As for `compile`.
    """
    resolved = resolve(target)
    chosen = [schedule(workload, resolved, tuning_logs) for workload in workloads]
    build_scheduled(chosen, path, resolved)


def build_scheduled(chosen: Sequence[Scheduled], path: Path, target: ResolvedTarget) -> None:
    """Build scheduled workloads; `build`, and a tuner that has chosen the configs itself.

    Parameters
    ----------
    chosen
        What `schedule` made; their workloads differ.
    path
        The ``.so`` to write, into a folder of its own.
    target
        The target they were scheduled for.
    """
    kind = machine(target.kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(
        kernels=tuple(
            KernelRecord(one.workload, asdict(one.config), one.origin, one.why) for one in chosen
        ),
        target={"name": target.name, **kind.requirements(target)},
        versions=versions() | kind.versions(),
    )
    kind.build(chosen, target, manifest, path)


def schedule(
    workload: Workload,
    target: ResolvedTarget,
    tuning_logs: TuningLogs = None,
    config: Mapping[str, Any] | None = None,
) -> Scheduled:
    """Choose a config, or take the given one, and apply the schedule.

    Parameters
    ----------
    workload
        The workload.
    target
        The target.
    tuning_logs
        As for `compile`.
    config
        A config as a manifest holds it.

    Returns
    -------
    Scheduled
        The scheduled function, its config and origin.

    Raises
    ------
    ArgumentError
        If TVM cannot fuse loops of that many iterations.
    """
    pattern = access_pattern(workload)
    rules = schedule_of(target.kind)
    origin, why = DEFAULT, ""
    if config is not None:
        chosen = _config_from_manifest(config, pattern, rules)
    elif tuning_logs is not False and (found := lookup.find(workload, target, tuning_logs)):
        chosen, origin, why = found.config, found.origin, found.why
    else:
        chosen = rules.default_config(pattern, target.tvm)
        why = NOT_ASKED if tuning_logs is False else NONE_NEAR
    functions = {}
    for variant in rules.variants(pattern, chosen):
        sch = s_tir.Schedule(definition(workload))
        try:
            rules.apply(sch, pattern, target.tvm, variant.config)
        except ValueError as error:
            if _INT32_LITERAL not in str(error):
                raise
            raise ArgumentError(
                f"{workload} cannot be compiled: TVM makes one loop of axes only where those "
                "behind the first have fewer than 2^31 elements together; merge axes by reshaping"
            ) from error
        functions[variant] = sch.mod["main"]
    return Scheduled(workload, chosen, origin, why, functions)


def source(
    workload: Workload,
    target: str | dict[str, Any],
    config: Mapping[str, Any] | None,
    level: str,
) -> str:
    """Show a kernel at one level.

    Parameters
    ----------
    workload, target
        What was compiled, and for what.
    config
        The config as a manifest holds it; None for the default.
    level
        ``"te"``, the definition as TVM IR; ``"scheduled"``, tiled and with its leaf marked;
        ``"tir"``, lowered; then ``"llvm"`` and ``"asm"`` of a CPU, ``"cuda"``, ``"ptx"`` and
        ``"sass"`` of a CUDA device.

    Returns
    -------
    str
        The source text.

    Raises
    ------
    ArgumentError
        If the target has no such level.
    """
    resolved = resolve(target)
    levels = kinds.kind(resolved.kind).sources
    if level not in levels:
        raise ArgumentError(
            f"source {level!r} is not known for {resolved.name}; expected one of "
            f"{', '.join(levels)}"
        )
    if level == "te":
        return str(definition(workload).script())
    chosen = schedule(workload, resolved, False, config)
    if level == "scheduled":
        return "\n\n".join(str(function.script()) for function in chosen.functions.values())
    return machine(resolved.kind).source(chosen, resolved, level)


def check_runs_here(target: ResolvedTarget) -> None:
    """Refuse a target whose kernels this CPU cannot run.

    Raises
    ------
    TargetError
        If the CPU lacks a feature.
    """
    if missing := machine(target.kind).missing(target):
        raise TargetError(
            f"target {target.name!r} needs {', '.join(missing)}, which this CPU lacks; expected "
            "one that it can run (te_select.export compiles for other CPUs)"
        )


def _checked(workload: Workload) -> Workload:
    if not isinstance(workload, Workload):
        raise ArgumentError(f"{shown(workload)} is not a te_select.Workload")
    return workload


def versions() -> dict[str, str]:
    """Versions of what takes part in every build."""
    return {
        "te_select": _version("te-select"),
        "tvm": tvm.__version__,
        "tvm_ffi": _version("apache-tvm-ffi"),
        "python": platform.python_version(),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # run from a source tree on PYTHONPATH
        return "not installed"


def _config_from_manifest(config: Mapping[str, Any], pattern: AccessPattern, rules: Any) -> Any:
    try:
        return rules.Config(**config).checked(pattern)
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"config {shown(dict(config))} is damaged: {error}") from error


@cache
def _build_folder(process: int) -> Path:
    """A folder for what a process compiles, removed when it ends; a forked child has its own."""
    folder = scratch.make()

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
