"""`te_select.export`: many workloads, or the nodes of models, in one library."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from te_select.backends.scheduled import Scheduled
from te_select.backends.targets import ResolvedTarget, resolve_each
from te_select.base import forks, kinds, on_disk, scratch
from te_select.compiler.build import build_scheduled
from te_select.compiler.family_library import schedule_member, served_by_family
from te_select.compiler.scheduling import TuningLogs, checked, schedule
from te_select.errors import ArgumentError, ArtifactError
from te_select.operator import family
from te_select.operator.broadcast import shown
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.records import required
from te_select.records.required import Required
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.manifest import ModelRecord, NodeRecord, is_c_name

_Scheduling: TypeAlias = Callable[[Workload, ResolvedTarget], Scheduled]


@forks.no_fork_during()
def export(  # noqa: PLR0913 - one for each choice
    workloads: Iterable[Workload | ModelNode],
    path: str | Path,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
    *,
    config: Mapping[str, Any] | None = None,
    require_record: Required = False,
    static: bool | Literal["object"] = False,
    names: Mapping[str, str] = {},
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Compile many workloads into one shared library, or into one for each instruction set.

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
        As for `te_select.compile`. The target need not be one that this machine can run. A list
        may be of several instruction sets, such as ``"x86-64-v2,x86-64-v3,aarch64"``. For each of
        them there is a library then, ``mask.x86_64.so`` and ``mask.aarch64.so`` if `path` is
        ``mask.so``; all are written, or none is.
    require_record
        As for `te_select.compile`, for each workload. Kernels of `te_select.where` need no record.
    static
        True writes a static library with the same plain C functions, the ``.a`` beside it.
        ``"object"`` writes the ``.o``, one object file with the functions of tvm-ffi, which TVM
        links into the library of a model.
    names
        Names for the C header that stay when shapes change: ``{"masked": "graph#0"}`` calls the
        function of the node at that place ``te_masked``, too. A node may also be given by its name,
        and a workload by its own.
    progress
        Called with the number of steps done and of all steps.

    Returns
    -------
    Path
        The library's path; of several libraries `path`, by which `te_select.load` finds the one for
        its machine.

    Raises
    ------
    ArgumentError
        If there is no workload, or no node that a kernel serves; if a schedule cannot follow
        `config`; if `static` is another value; if one of `names` is not a C identifier, or not of
        one C function.
    ArtifactError
        If the path cannot be written, or has the name of a module of Python's standard library; if
        a file beside it was not written by an export; with several instruction sets, if there is a
        file at `path`.
    TuningError
        If a workload has no record where one is required; before anything is compiled.
    """
    required.check(require_record, tuning_logs, config)
    if isinstance(workloads, Workload) or not isinstance(workloads, Iterable):
        raise ArgumentError(f"workloads is {shown(workloads)}; expected a list of workloads")
    if static not in (False, True, "object"):
        raise ArgumentError(f'static is {shown(static)}; expected False, True or "object"')
    given = list(workloads)
    nodes = [item for item in given if isinstance(item, ModelNode)]
    wanted = [item.workload if isinstance(item, ModelNode) else checked(item) for item in given]
    unique = list(dict.fromkeys(workload for workload in wanted if workload is not None))
    targets = resolve_each(target)
    levels = [level for each in targets.values() for level in each.levels]
    required.require(require_record, unique, levels, tuning_logs)
    kind = kinds.kind(next(iter(targets.values())).kind)
    served = served_by_family(nodes) if kind.family else {}
    places = family.places(part for parts in served.values() for part in parts)
    by_records = partial(schedule, tuning_logs=tuning_logs, knobs=config)
    plan: dict[Workload, _Scheduling] = dict.fromkeys(unique, by_records)
    of_family = partial(schedule_member, knobs=None if tuning_logs is None else {})
    for member in places:
        plan.setdefault(member, of_family)
    if not plan:
        raise ArgumentError(_nothing_to_compile(nodes))
    if static and not kind.c_functions:
        raise ArgumentError(f"static code is not for targets of the kind {kind.name}")
    ending = stored.OBJECT if static == "object" else stored.ARCHIVE
    endings = [*stored.DERIVED, ending] if static else stored.DERIVED
    paths = [stored.check_path(each, endings) for each in _paths(path, targets)]
    records = [NodeRecord.of(node, family_serves=node.place in served) for node in nodes]
    named = _named(names, nodes, unique if kind.c_functions else [])
    options: dict[str, Any] = {"models": _models(nodes), "names": named}
    if places:
        options["places"] = places
    made: dict[Path, stored.Stored] = {}
    total = len(targets) * (len(plan) + 1)  # the last step of each compiles all of them
    step = progress or (lambda _done, _total: None)
    with scratch.folder(scratch.ROOM + len(plan) * len(targets) * scratch.KERNEL_ROOM) as folder:
        for one, resolved in zip(paths, targets.values(), strict=True):
            built = folder / str(len(made)) / "library.so"
            chosen: list[Scheduled] = []
            for done, (workload, apply) in enumerate(plan.items(), len(made) * (len(plan) + 1)):
                step(done, total)
                chosen += [apply(workload, level) for level in resolved.levels]
            step(done + 1, total)
            code = built.with_suffix(ending)
            if static:
                options["static"] = code
            build_scheduled(chosen, built, resolved, records, unique, **options)
            made[one] = stored.read(built)
            if static:
                made[one] = replace(made[one], static={ending: code.read_bytes()})
        stored.write_all(made)
    return Path(path)


def _models(nodes: Sequence[ModelNode]) -> list[ModelRecord]:
    """The models that nodes are of, with how many nodes of each."""
    counts = Counter(node.model for node in nodes if node.model is not None)
    return [ModelRecord(model.name, model.sha256, n) for model, n in counts.items()]


def _named(
    names: Mapping[str, str], nodes: Sequence[ModelNode], workloads: Sequence[Workload]
) -> dict[Workload, list[str]]:
    """The other names of C functions, by workload."""
    if not isinstance(names, Mapping):
        raise ArgumentError(f"names is {shown(names)}; expected a mapping of names to nodes")
    found: dict[Workload, list[str]] = {}
    for name, what in names.items():
        of_nodes = {node.workload for node in nodes if what in (node.place, node.name)}
        meant = [each for each in workloads if each in of_nodes or each.name == what]
        if not isinstance(name, str) or not is_c_name(name):
            raise ArgumentError(
                f"names has {shown(name)}, which is no name for C; expected an identifier that "
                "does not begin with select"
            )
        if len(meant) != 1:
            raise ArgumentError(
                f"names has {shown(name)} for {shown(what)}, of which there are {len(meant)} C "
                f"functions; expected the place or the name of a node, or the name of a workload "
                f"({', '.join(each.name for each in workloads[:9])})"
            )
        found.setdefault(meant[0], []).append(name)
    return found


def _paths(path: str | Path, machines: Collection[str]) -> list[Path]:
    """The paths of the libraries of an export, one for each machine."""
    path = on_disk.new_library_path(path)
    if len(machines) == 1:
        return [path]
    if on_disk.is_there(path):
        raise ArtifactError(
            f"{path} is there, so te_select.load would not look for the libraries beside it that "
            f"are for {' and '.join(machines)}; expected a path without a file"
        )
    return [on_disk.for_machine(path, machine) for machine in machines]


def _nothing_to_compile(nodes: Sequence[ModelNode]) -> str:
    if not nodes:
        return "no workloads are given; a library holds at least one"
    statuses = " or ".join(sorted({node.status for node in nodes}))
    return (
        f"none of the {len(nodes)} nodes is to be compiled: the status of each is {statuses}, as "
        "te-select inspect --model shows"
    )
