"""From scheduled functions to a shared library."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tvm

from te_select import forks, kinds
from te_select.backends import build_key, machine
from te_select.backends.scheduled import Scheduled, records
from te_select.backends.targets import ResolvedTarget
from te_select.compiler.components import components
from te_select.errors import ArgumentError, TargetError
from te_select.operator.workload import Workload
from te_select.runtime.artifact import packages
from te_select.runtime.artifact.manifest import Manifest, ModelRecord, NodeRecord
from te_select.version import __version__


@forks.no_fork_during()
def build_scheduled(
    chosen: Sequence[Scheduled],
    path: Path,
    target: ResolvedTarget,
    nodes: Sequence[NodeRecord] = (),
    c_functions: Collection[Workload] | None = None,
    *,
    models: Sequence[ModelRecord] = (),
    names: Mapping[Workload, Sequence[str]] = MappingProxyType({}),
    **options: Any,
) -> None:
    """Build a library of scheduled workloads.

    Parameters
    ----------
    chosen
        Different workloads, each scheduled by `schedule` for every level of the target.
    path
        The ``.so`` to write, in a folder of its own.
    target
        The target that they were scheduled for.
    nodes, models
        The nodes that the library was asked for, and the models that they are of.
    c_functions
        The workloads that get a plain C function, if the kind of machine has them; None for all.
    names
        Other names of C functions, as `te_select.export` has them.
    options
        Further arguments of the kind of machine: ``static``, the path of a static library or an
        object to write as well, or ``places`` of a family of CPU kernels, and ``progress`` as
        `te_select.export` has it.

    Raises
    ------
    ArgumentError
        If two workloads have one name, or TVM cannot lower one of them.
    """
    _check_names(chosen)
    kind = machine(target.kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = chosen if c_functions is None else [o for o in chosen if o.workload in c_functions]
    plain = plain if kinds.kind(target.kind).c_functions else []
    used = versions() | kind.versions()
    manifest = Manifest(
        kernels=records(chosen, target.levels[-1].name, {one.workload for one in plain}, names),
        target={"name": target.name, **kind.requirements(target)},
        versions=used,
        nodes=tuple(nodes),
        components=components(target, used),
        models=tuple(models),
    )
    kind.build(chosen, target, manifest, path, **options)


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


def versions() -> dict[str, str]:
    """Versions of the packages that take part in every build, and the digest of our sources."""
    return {
        "te_select": __version__,
        "te_select_sources": build_key.of_sources(),
        "tvm": tvm.__version__,
        "tvm_ffi": packages.version("apache-tvm-ffi") or "not installed",
        "python": platform.python_version(),
    }


def _check_names(chosen: Sequence[Scheduled]) -> None:
    """Refuse two workloads with one name; long names end in a digest of 40 bits only."""
    by_name: dict[str, Workload] = {}
    for one in chosen:
        other = by_name.setdefault(one.workload.name, one.workload)
        if other != one.workload:
            raise ArgumentError(
                f"{other} and {one.workload} have one name, {other.name}; put them into two "
                "libraries, or rename a dim"
            )
