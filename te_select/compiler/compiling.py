"""`compile` and `export`.

`compile` builds a library in a temporary folder and loads it by `load`, as users load a library
that was shipped. So what is measured is what ships. The folder is removed when the process ends.
"""

from __future__ import annotations

import atexit
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from te_select import forks, kinds
from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import ResolvedTarget, resolve
from te_select.compiler.building import build_scheduled, check_runs_here
from te_select.compiler.family import schedule_member, served_by_family
from te_select.compiler.scheduling import TuningLogs, schedule
from te_select.errors import ArgumentError, ArtifactError
from te_select.operator import family
from te_select.operator.broadcast import shown
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.runtime.artifact import scratch, stored
from te_select.runtime.artifact.manifest import NodeRecord
from te_select.runtime.call import loading
from te_select.runtime.call.kernel import Kernel

_builds = itertools.count()
_Scheduling: TypeAlias = Callable[[Workload, ResolvedTarget], Scheduled]


@forks.no_fork_during()
def compile(
    workload: Workload,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
    *,
    config: Mapping[str, Any] | None = None,
) -> Kernel:
    """Build a workload's kernel, whatever the cache holds.

    Parameters
    ----------
    workload, target, tuning_logs, config
        As for `te_select.compile`.

    Returns
    -------
    Kernel
        The kernel, ready to be called.

    Raises
    ------
    SelectError
        As `te_select.compile` does.
    """
    checked(workload)
    _check_one_source(tuning_logs, config)
    resolved = resolve(target)
    check_runs_here(resolved)
    path = _build_folder(os.getpid()) / f"build{next(_builds)}" / f"{workload.name}.so"
    chosen = [schedule(workload, level, tuning_logs, knobs=config) for level in resolved.levels]
    build_scheduled(chosen, path, resolved)
    loaded = loading.load(path)
    if not isinstance(loaded, Kernel):
        raise ArtifactError(f"{path} holds several kernels; expected one")
    return loaded


@forks.no_fork_during()
def export(
    workloads: Iterable[Workload | ModelNode],
    path: str | Path,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
    *,
    config: Mapping[str, Any] | None = None,
    static: bool | Literal["object"] = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Compile many workloads into one shared library.

    Parameters
    ----------
    workloads
        What to compile; equal workloads are stored once. Nodes of a model, as `read_model` lists
        them, get a kernel if their status is ``"compiled"``. For nodes that are ``"dispatched"``,
        a library for CPUs holds the kernels of `te_select.where` for their element types. The
        manifest says for every node which function serves it, or why none does.
    path
        The ``.so`` to write; its manifest is the ``.json`` beside it, and its C header the ``.h``.
    target, tuning_logs, config
        As for `te_select.compile`. The target need not be one that this machine can run.
    static
        True writes a static library with the same plain C functions, the ``.a`` beside it.
        ``"object"`` writes the ``.o``, one object file with the functions of tvm-ffi, which TVM
        links into the library of a model.
    progress
        Called with the number of steps done and of all steps.

    Returns
    -------
    Path
        The library's path.

    Raises
    ------
    ArgumentError
        If there is no workload, no kernel can serve any of the nodes, the schedule of one of the
        workloads cannot follow `config`, or `static` is none of these.
    ArtifactError
        If the path cannot be written or has the name of a module of Python's standard library, or
        a file beside it exists that no export wrote.
    """
    if isinstance(workloads, Workload) or not isinstance(workloads, Iterable):
        raise ArgumentError(f"workloads is {shown(workloads)}; expected a list of workloads")
    _check_one_source(tuning_logs, config)
    if static not in (False, True, "object"):
        raise ArgumentError(f'static is {shown(static)}; expected False, True or "object"')
    given = list(workloads)
    nodes = [item for item in given if isinstance(item, ModelNode)]
    wanted = [item.workload if isinstance(item, ModelNode) else checked(item) for item in given]
    unique = list(dict.fromkeys(workload for workload in wanted if workload is not None))
    resolved = resolve(target)
    served = served_by_family(nodes) if kinds.kind(resolved.kind).family else {}
    places = family.places(part for parts in served.values() for part in parts)
    by_records = partial(schedule, tuning_logs=tuning_logs, knobs=config)
    plan: dict[Workload, _Scheduling] = dict.fromkeys(unique, by_records)
    of_family = partial(schedule_member, knobs=None if tuning_logs is None else {})
    for member in places:
        plan.setdefault(member, of_family)
    if not plan:
        raise ArgumentError(_nothing_to_compile(nodes))
    has_c = bool(unique) and kinds.kind(resolved.kind).c_functions
    if static and not has_c:
        raise ArgumentError(
            "static code holds functions of workloads, and there is none; expected a workload of "
            "its own"
        )
    ending = stored.OBJECT if static == "object" else stored.ARCHIVE
    path = stored.check_path(path, [".json", *[".h"] * has_c, *[ending] * bool(static)])
    with scratch.folder(scratch.ROOM + len(plan) * scratch.KERNEL_ROOM) as folder:
        built = folder / "library.so"
        step = progress or (lambda _done, _total: None)
        chosen: list[Scheduled] = []
        for done, (workload, apply) in enumerate(plan.items()):
            step(done, len(plan) + 1)  # the last step compiles all of them
            chosen += [apply(workload, level) for level in resolved.levels]
        step(len(plan), len(plan) + 1)
        records = [NodeRecord.of(node, family_serves=node.place in served) for node in nodes]
        code = built.with_suffix(ending)
        beside = {"static": code} if static else {}
        options = {"places": places} if places else {}
        build_scheduled(chosen, built, resolved, records, unique, **options, **beside)
        made = stored.read(built)
        if static:
            made = replace(made, static={ending: code.read_bytes()})
        return stored.write(made, path)


def _nothing_to_compile(nodes: Sequence[ModelNode]) -> str:
    if not nodes:
        return "no workloads are given; a library holds at least one"
    statuses = " or ".join(sorted({node.status for node in nodes}))
    return (
        f"none of the {len(nodes)} nodes is to be compiled: the status of each is {statuses}, as "
        "te-select inspect --model shows"
    )


def _check_one_source(tuning_logs: TuningLogs, config: Mapping[str, Any] | None) -> None:
    if config and tuning_logs not in (None, False):
        raise ArgumentError(
            f"config is {shown(config)} and tuning_logs is {shown(tuning_logs)}; expected one of "
            "them: a config by hand uses no records"
        )


def checked(workload: Any) -> Workload:
    """Return what is given if it is a workload.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if not isinstance(workload, Workload):
        raise ArgumentError(
            f"{shown(workload)} is not a te_select.Workload; expected "
            "te_select.Workload(cond_shape, then_shape, else_shape)"
        )
    return workload


@cache
def _build_folder(process: int) -> Path:
    """The folder for the libraries of a process; it is removed when the process ends."""
    folder = scratch.make()
    atexit.register(scratch.remove, folder)
    return folder
