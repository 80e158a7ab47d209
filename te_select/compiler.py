"""From a workload to a kernel: definition, schedule, lowering, shared library.

`compile` builds the artifact in a temporary folder and loads it by the very `load` that users call,
so what is measured is what ships. The folder goes when the process ends.
"""

from __future__ import annotations

import atexit
import itertools
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import tvm
from tvm import s_tir

from te_select import forks, kinds
from te_select.errors import ArgumentError, ArtifactError, TargetError
from te_select.machines import limits, machine, schedule_of
from te_select.machines.scheduled import Scheduled, records
from te_select.machines.targets import ResolvedTarget, resolve
from te_select.operator.access import AccessPattern, access_pattern
from te_select.operator.broadcast import shown
from te_select.operator.definition import definition
from te_select.operator.node import Node
from te_select.operator.workload import Workload
from te_select.records import lookup
from te_select.records.origin import DEFAULT, NONE_NEAR, NOT_ASKED
from te_select.runtime import artifact, packages, scratch, stored
from te_select.runtime.kernel import Kernel
from te_select.runtime.manifest import Manifest, NodeRecord

TuningLogs = str | Path | Literal[False] | None
_builds = itertools.count()


@forks.held_off()
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
    chosen = [schedule(workload, level, tuning_logs) for level in resolved.levels]
    build_scheduled(chosen, path, resolved)
    loaded = artifact.load(path)
    if not isinstance(loaded, Kernel):
        raise ArtifactError(f"{path} holds several kernels; expected one")
    return loaded


@forks.held_off()
def export(
    workloads: Iterable[Workload | Node],
    path: str | Path,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Compile many workloads into one shared library.

    Parameters
    ----------
    workloads
        What to compile; equal workloads are stored once. Nodes of a model, as `read_model` lists
        them, are compiled where their status is ``"compiled"``; the manifest says of every node
        which function serves it, or why none does.
    path
        The ``.so`` to write; its manifest is the ``.json`` beside it.
    target, tuning_logs
        As for `compile`. The target need not be one that this machine can run.
    progress
        Called with the number of steps done and of all steps.

    Returns
    -------
    Path
        The library's path.

    Raises
    ------
    ArgumentError
        If there is no workload, or none of the nodes has one.
    ArtifactError
        If the path cannot be written.
    """
    if isinstance(workloads, Workload) or not isinstance(workloads, Iterable):
        raise ArgumentError(f"workloads is {shown(workloads)}; expected a list of workloads")
    given = list(workloads)
    nodes = [item for item in given if isinstance(item, Node)]
    wanted = [item.workload if isinstance(item, Node) else _checked(item) for item in given]
    unique = list(dict.fromkeys(workload for workload in wanted if workload is not None))
    if not unique and nodes:
        statuses = ", ".join(sorted({node.status for node in nodes}))
        raise ArgumentError(
            f"none of the {len(nodes)} nodes has a workload to compile; they are {statuses}"
        )
    if not unique:
        raise ArgumentError("no workloads are given; a library holds at least one")
    with scratch.folder(scratch.ROOM + len(unique) * scratch.KERNEL_ROOM) as folder:
        built = folder / "library.so"
        resolved = resolve(target)
        step = progress or (lambda _done, _total: None)
        each = [(workload, level) for workload in unique for level in resolved.levels]
        chosen: list[Scheduled] = []
        for workload, level in each:
            step(len(chosen), len(each) + 1)  # the last step makes code of all of them
            chosen.append(schedule(workload, level, tuning_logs))
        step(len(chosen), len(each) + 1)
        build_scheduled(chosen, built, resolved, nodes)
        return stored.write(stored.read(built), path)


@forks.held_off()
def build_scheduled(
    chosen: Sequence[Scheduled],
    path: Path,
    target: ResolvedTarget,
    nodes: Sequence[Node] = (),
    **options: Any,
) -> None:
    """Build scheduled workloads; `export`, and a tuner that has chosen the configs itself.

    Parameters
    ----------
    chosen
        What `schedule` made; their workloads differ, and each is there for every level of the
        target.
    path
        The ``.so`` to write, into a folder of its own.
    target
        The target they were scheduled for.
    nodes
        The nodes of a model that they serve, which the manifest lists.
    options
        What the kind of machine takes besides: ``places`` of a family of CPU kernels.

    Raises
    ------
    ArgumentError
        If two workloads have one name, or TVM cannot lower one of them.
    """
    _check_names(chosen)
    kind = machine(target.kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(
        kernels=records(chosen, target.levels[-1].name),
        target={"name": target.name, **kind.requirements(target)},
        versions=versions() | kind.versions(),
        nodes=tuple(map(NodeRecord.of, nodes)),
    )
    kind.build(chosen, target, manifest, path, **options)


@forks.held_off()
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
        with limits.explained(workload):
            rules.apply(sch, pattern, target.tvm, variant.config)
        functions[variant] = sch.mod["main"]
    return Scheduled(workload, target.name, chosen, origin, why, functions)


@forks.held_off()
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
    if len(resolved.levels) > 1:
        names = " or ".join(each.name for each in resolved.levels)
        raise ArgumentError(f"target {resolved.name!r} has several levels; expected {names}")
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


def _check_names(chosen: Sequence[Scheduled]) -> None:
    """Refuse two workloads of one name; long names end in a digest of 40 bits."""
    by_name: dict[str, Workload] = {}
    for one in chosen:
        other = by_name.setdefault(one.workload.name, one.workload)
        if other != one.workload:
            raise ArgumentError(
                f"{other} and {one.workload} have one name, {other.name}; put them into two "
                "libraries, or rename a dim"
            )


def _checked(workload: Workload) -> Workload:
    if not isinstance(workload, Workload):
        raise ArgumentError(f"{shown(workload)} is not a te_select.Workload")
    return workload


def versions() -> dict[str, str]:
    """Versions of what takes part in every build."""
    return {
        "te_select": packages.version("te-select") or "not installed",
        "tvm": tvm.__version__,
        "tvm_ffi": packages.version("apache-tvm-ffi") or "not installed",
        "python": platform.python_version(),
    }


def _config_from_manifest(config: Mapping[str, Any], pattern: AccessPattern, rules: Any) -> Any:
    try:
        return rules.Config(**config).checked(pattern)
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"config {shown(dict(config))} is damaged: {error}") from error


@cache
def _build_folder(process: int) -> Path:
    """A folder for what a process compiles, removed when it ends; a forked child has its own."""
    folder = scratch.make()
    atexit.register(scratch.remove, folder)
    return folder
