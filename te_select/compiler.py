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
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import tvm
from tvm import s_tir, tirx

from te_select import lowering, toolchain
from te_select.access import AccessPattern, access_pattern
from te_select.broadcast import shown
from te_select.definition import definition
from te_select.errors import ArgumentError, ArtifactError
from te_select.records import lookup
from te_select.records.origin import DEFAULT
from te_select.runtime import artifact
from te_select.runtime.kernel import Kernel
from te_select.schedules import x86
from te_select.targets import ResolvedTarget, resolve
from te_select.workload import Workload

TuningLogs = str | Path | Literal[False] | None
SOURCES = ("te", "scheduled", "tir", "llvm", "asm")
_builds = itertools.count()


@dataclass(frozen=True)
class Scheduled:
    """A workload with the schedule chosen for it.

    Parameters
    ----------
    workload
        The workload.
    config
        The schedule's knobs.
    origin
        ``"default"``, or the record that it comes from.
    func
        The scheduled function.
    short_rows
        Another one for short rows, where a name decides how long rows are.
    """

    workload: Workload
    config: x86.Config
    origin: str
    func: tirx.PrimFunc
    short_rows: tirx.PrimFunc | None = None

    def lower(self, symbol: str) -> list[tirx.PrimFunc]:
        """Lower to a raw C function named ``symbol``, and what it calls."""
        names = self.workload.dim_names
        if self.short_rows is None:
            return [lowering.lower(self.func, symbol, names, x86.ANNOTATION, x86.span_source)]
        pattern = access_pattern(self.workload)
        short = lowering.ShortRows(
            f"{symbol}_short_rows", pattern.loops[-1].dims, x86.short_below(pattern)
        )
        return [
            lowering.lower(self.func, symbol, names, x86.ANNOTATION, x86.span_source, short),
            lowering.lower(self.short_rows, short.symbol, names, x86.ANNOTATION, x86.span_source),
        ]


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
        ``"native"``, ``"x86-64"`` to ``"x86-64-v4"``, an LLVM CPU name, or a TVM target as JSON.
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
        If the target is not known.
    ToolchainError
        If there is no working C compiler.
    ArtifactError
        If this CPU lacks what the target needs; `export` cross-compiles.
    TuningError
        If the folder of tuning logs is missing, or holds no record that can be used.
    """
    _checked(workload)
    path = _build_folder(os.getpid()) / f"build{next(_builds)}" / f"{workload.name}.so"
    build([workload], path, target, tuning_logs)
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
    with tempfile.TemporaryDirectory(prefix="te_select-") as folder:
        built = Path(folder) / "library.so"
        manifest = build(unique, built, target, tuning_logs)
        return artifact.export(built, manifest, Path(path))


def build(
    workloads: list[Workload],
    path: Path,
    target: str | dict[str, Any] = "native",
    tuning_logs: TuningLogs = None,
) -> artifact.Manifest:
    """Build a shared library and its manifest at ``path``.

    Parameters
    ----------
    workloads
        What to compile; they differ.
    path
        The ``.so`` to write, into a folder of its own.
    target, tuning_logs
        As for `compile`.

    Returns
    -------
    Manifest
        What was written beside it.
    """
    resolved = resolve(target)
    chosen = [schedule(workload, resolved, tuning_logs) for workload in workloads]
    return build_scheduled(chosen, path, resolved)


def build_scheduled(
    chosen: Sequence[Scheduled], path: Path, target: ResolvedTarget
) -> artifact.Manifest:
    """Build scheduled workloads; `build`, and a tuner that has chosen the configs itself.

    Parameters
    ----------
    chosen
        What `schedule` made; their workloads differ.
    path
        The ``.so`` to write, into a folder of its own.
    target
        The target they were scheduled for.

    Returns
    -------
    Manifest
        What was written beside it.
    """
    symbols = [f"te_select_kernel_{i}" for i in range(len(chosen))]
    functions = [
        function
        for one, symbol in zip(chosen, symbols, strict=True)
        for function in one.lower(symbol)
    ]
    module = lowering.build(functions, target.tvm)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="te_select-") as folder:
        object_file = Path(folder) / "kernels.o"
        module.write_to_file(str(object_file), "o")
        entries = [
            toolchain.KernelEntry(
                one.workload,
                symbol,
                x86.BYTES_PER_THREAD if one.config.parallel else 0,
                one.config.stream_from,
            )
            for one, symbol in zip(chosen, symbols, strict=True)
        ]
        toolchain.link(object_file, entries, path)
    manifest = artifact.Manifest(
        kernels=tuple(
            artifact.KernelRecord(one.workload, asdict(one.config), one.origin) for one in chosen
        ),
        target={"name": target.name, "cpu_features": list(target.cpu_features)},
        versions=versions(),
    )
    artifact.write(path, manifest)
    return manifest


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
    """
    pattern = access_pattern(workload)
    origin = DEFAULT
    if config is not None:
        chosen = _config_from_manifest(config, pattern)
    elif tuning_logs is not False and (found := lookup.find(workload, target, tuning_logs)):
        chosen, origin = found.config, found.origin
    else:
        chosen = x86.default_config(pattern, target.tvm)
    functions = []
    for variant in x86.variants(pattern, chosen):
        sch = s_tir.Schedule(definition(workload))
        x86.apply(sch, pattern, target.tvm, variant)
        functions.append(sch.mod["main"])
    return Scheduled(workload, chosen, origin, *functions)


def source(
    workload: Workload,
    target: str | dict[str, Any],
    config: Mapping[str, Any] | None,
    kind: str,
) -> str:
    """Show a kernel at one level.

    Parameters
    ----------
    workload, target
        What was compiled, and for what.
    config
        The config as a manifest holds it; None for the default.
    kind
        ``"te"``, the definition as TVM IR; ``"scheduled"``, tiled and with its leaf marked;
        ``"tir"``, lowered to a C function that calls span kernels; ``"llvm"``; or ``"asm"``.

    Returns
    -------
    str
        The source text.

    Raises
    ------
    ArgumentError
        If there is no such level.
    """
    if kind not in SOURCES:
        raise ArgumentError(f"source {kind!r} is not known; expected one of {', '.join(SOURCES)}")
    resolved = resolve(target)
    if kind == "te":
        return str(definition(workload).script())
    chosen = schedule(workload, resolved, False, config)
    if kind == "scheduled":
        functions = [chosen.func, *([chosen.short_rows] if chosen.short_rows else [])]
        return "\n\n".join(str(function.script()) for function in functions)
    lowered = chosen.lower("te_select_kernel_0")
    if kind == "tir":
        return "\n\n".join(str(function.script()) for function in lowered)
    module = lowering.build(lowered, resolved.tvm)
    return str(module.inspect_source("ll" if kind == "llvm" else "asm"))


def _checked(workload: Workload) -> Workload:
    if not isinstance(workload, Workload):
        raise ArgumentError(f"{shown(workload)} is not a te_select.Workload")
    return workload


def versions() -> dict[str, str]:
    """Versions of what takes part in a build."""
    return {
        "te_select": metadata.version("te-select"),
        "tvm": tvm.__version__,
        "tvm_ffi": metadata.version("apache-tvm-ffi"),
        "llvm": str(tvm.target.codegen.llvm_version_major()),
        "python": platform.python_version(),
    }


def _config_from_manifest(config: Mapping[str, Any], pattern: AccessPattern) -> x86.Config:
    try:
        return x86.Config(**config).checked(pattern)
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"config {shown(dict(config))} is damaged: {error}") from error


@cache
def _build_folder(process: int) -> Path:
    """A folder for what a process compiles, removed when it ends; a forked child has its own."""
    folder = Path(tempfile.mkdtemp(prefix="te_select-"))

    def remove() -> None:
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
