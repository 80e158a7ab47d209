"""From scheduled functions to a shared library, and what its manifest says of the compilers.

`kernel` builds a library in a temporary folder and loads it by `load`, as users load a library that
was shipped. So what is measured is what ships. The folder is removed when the process ends.
"""

import atexit
import functools
import itertools
import os
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm

from te_select.backends import build_key, builder
from te_select.backends.c_compiler import compiler_for
from te_select.backends.programs import first_line
from te_select.backends.scheduled import Scheduled, records
from te_select.backends.targets import ResolvedTarget, resolve
from te_select.base import forks, kinds, scratch, variables
from te_select.base.version import __version__, installed
from te_select.compiler.scheduling import TuningLogs, checked, schedule
from te_select.errors import ArgumentError, TargetError
from te_select.operator.stages import Stage
from te_select.operator.workload import Workload
from te_select.records import required
from te_select.records.required import Required
from te_select.runtime.artifact.fields import Component
from te_select.runtime.artifact.manifest import Manifest, ModelRecord, NodeRecord
from te_select.runtime.call import loading
from te_select.runtime.call.kernel import Kernel

_builds = itertools.count()
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_KNOWN = {  # by the names that versions have: the component's name, its licence, and its part
    "te_select": ("te-select", "Apache-2.0", "code"),
    "tvm_ffi": ("Apache TVM FFI", "Apache-2.0", "code"),  # its C header
    "tvm": ("Apache TVM", "Apache-2.0", "compiler"),
}
_LICENCES = {  # by a word of the line that they print
    "clang": ("Clang", "Apache-2.0 WITH LLVM-exception"),
    "gcc": ("GCC", "GPL-3.0-or-later WITH GCC-exception-3.1"),
}


@forks.no_fork_during()
def kernel(
    workload: Workload,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
    *,
    config: Mapping[str, Any] | None = None,
    require_record: Required = False,
) -> Kernel:
    """Build a workload's kernel, whatever the cache holds.

    Parameters
    ----------
    workload, target, tuning_logs, config, require_record
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
    name = checked(workload).name
    resolved = resolve(target)
    check_here(resolved)
    path = _folder(os.getpid()) / f"build{next(_builds)}" / f"{name}.so"
    required.require(require_record, [workload], resolved.levels, tuning_logs)
    chosen = [schedule(workload, level, tuning_logs, knobs=config) for level in resolved.levels]
    build_scheduled(chosen, path, resolved)
    loaded = loading.load(path)
    assert isinstance(loaded, Kernel)
    return loaded


def check_here(target: ResolvedTarget) -> None:
    """Refuse a target that this machine cannot run."""
    if missing := builder(target.kind).missing(target):
        raise TargetError(
            f"target {target.name!r} needs {', '.join(missing)}, which this CPU lacks; expected "
            "one that it can run (te_select.export compiles for other CPUs)"
        )


@forks.no_fork_during()
def build_scheduled(
    chosen: Sequence[Scheduled],
    path: Path,
    target: ResolvedTarget,
    nodes: Sequence[NodeRecord] = (),
    c_functions: Collection[Workload] | None = None,
    *,
    models: Sequence[ModelRecord] = (),
    names: Mapping[Workload, Sequence[str]] = {},
    stages: Sequence[Stage] = (),
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
    stages
        The stages that a family of CPU kernels gets.
    options
        Further arguments of the kind of machine: ``static``, the path of a static library or an
        object to write as well, or ``places`` of a family of CPU kernels, and ``progress`` as
        `te_select.export` has it.

    Raises
    ------
    ArgumentError
        If two workloads have one name, or TVM cannot lower one of them.
    """
    variables.check_building("a library")
    _check_names(chosen)
    kind = builder(target.kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {one.workload for one in chosen} if c_functions is None else set(c_functions)
    plain = plain if kinds.kind(target.kind).c_functions else set()
    used = versions() | kind.versions()
    manifest = Manifest(
        kernels=records(chosen, target.levels[-1].name, plain, names),
        target={"name": target.name, **kind.requirements(target)},
        versions=used,
        nodes=tuple(nodes),
        components=_components(target, used),
        models=tuple(models),
        stages=tuple(stage.name for stage in stages),
    )
    if stages:
        options["stages"] = stages
    kind.write_library(chosen, target, manifest, path, **options)


def versions() -> dict[str, str]:
    """Versions of the packages that take part in every build, and the digest of our sources."""
    return {
        "te_select": __version__,
        "te_select_sources": build_key.of_sources(),
        "tvm": tvm.__version__,
        "tvm_ffi": installed("apache-tvm-ffi") or "not installed",
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


def _components(target: ResolvedTarget, versions: dict[str, str]) -> tuple[Component, ...]:
    """What a library is made of and by: te-select, TVM, LLVM and the compilers."""
    known = [
        Component(name, versions[key], part, licence)
        for key, (name, licence, part) in _KNOWN.items()
    ]
    return (*known, *builder(target.kind).components(), _c_compiler(compiler_for(target.triple)))


@functools.cache
def _c_compiler(command: tuple[str, ...]) -> Component:
    line = first_line(*command, "--version") or ""
    # The line of GCC has the name under which it was called, such as cc; only GCC has this option.
    text = "gcc" if first_line(*command, "-dumpfullversion") and "clang" not in line else line
    known = (each for word, each in _LICENCES.items() if word in text.lower())
    name, licence = next(known, (Path(command[0]).name, ""))
    found = _NUMBER.findall(line)
    return Component(name, found[-1] if found else "unknown", "compiler", licence)


@functools.cache
def _folder(process: int) -> Path:
    """The folder for the libraries of a process; it is removed when the process ends."""
    folder = scratch.make()
    atexit.register(scratch.remove, folder)
    return folder
