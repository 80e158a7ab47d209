"""``te-select inspect``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from te_select import kinds
from te_select.cli import console, models, paths
from te_select.cli.flags import with_groups
from te_select.cli.manifest import cyclonedx, describe, print_kernels, read_manifest
from te_select.cli.workloads import WorkloadFlags, gather
from te_select.errors import ArtifactError, SelectError
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.artifact import scratch, stored

if TYPE_CHECKING:
    from te_select.runtime.call.kernel import Kernel

Library = Annotated[Path | None, typer.Argument(help="A library; without it, give workload flags.")]
Source = Annotated[str | None, typer.Option(help=f"{', '.join(kinds.sources())}.")]
KernelName = Annotated[str | None, typer.Option(help="A kernel of a library with several.")]

Sbom = Annotated[
    bool, typer.Option("--sbom", help="Print a library's bill of materials, as CycloneDX JSON.")
]
Load = Annotated[
    bool, typer.Option("--load", help="Load the library, which runs its code, and ask it more.")
]


@with_groups
def inspect_command(  # noqa: PLR0913, PLR0917 - one per flag
    flags: WorkloadFlags,
    of_model: models.ModelFlags,
    path: Library = None,
    target: console.OptionalTarget = None,
    logs: console.LogsOption = None,
    config: console.ConfigOption = None,
    source: Source = None,
    level: console.LevelOption = None,
    kernel: KernelName = None,
    load: Load = False,
    sbom: Sbom = False,
    as_json: console.JsonFlag = False,
) -> None:
    """Show what a library or a workload is; what a model becomes.

    For a library and a workload: the config with its reason, and the source at each level. For a
    model: a table of its Where or Select nodes, with what te-select does with each. By --size
    it tells how many bytes a call of a node with named dims reads and writes.

    A library is read, and its code does not run. With --load it does: what the library decides on
    this machine is shown, too.

    Example: te-select inspect build/mask.so --source asm
    (or sass, for a library for CUDA)

    Example: te-select inspect --model model.onnx --size batch=8 --size sequence=512
    """
    console.check_known("--source", source, kinds.sources())
    if of_model.model is not None:
        other = {"level": level, "config": config, "load": load, "sbom": sbom, "library": path}
        other |= {"tuning_logs": logs, "source": source, "kernel": kernel, "target": target}
        console.no_meaning("beside --model", **other, **flags.given)
        _show_model(of_model.model, of_model.size, of_model.expand, as_json)
        return
    console.no_meaning("without --model", size=of_model.size, expand=of_model.expand)
    if path is not None and (flags.given or logs is not None):
        raise console.UsageError(
            "a library and workload flags are given; expected one or the other"
        )
    if path is not None:
        console.no_meaning("beside a library", target=target, config=config)
        path = paths.check_library(path)
        if sbom:
            console.print_json(cyclonedx(path, read_manifest(path)))
            return
        document = _of_library(path)
        document |= _here(path, document["kernels"], load=load)
        document |= _written_beside(path)
    else:
        paths.check_folder("--tuning-logs", logs, "none")
        if not flags.given:
            raise console.UsageError(
                "nothing to inspect is given; expected a library, --cond, --then and --else, or "
                "--model"
            )
        console.no_meaning("beside workload flags", load=load, sbom=sbom)
        workload = gather(flags.given)[0]
        of_target = "native" if target is None else target
        document = _of_workload(workload, of_target, logs, console.parse_knobs(config))
    document["kernels"] = _chosen(document["kernels"], kernel)
    if source is not None:
        _add_source(document, source, level)
    elif level is not None:
        raise console.UsageError("--level needs --source; expected --source beside it")
    if as_json:
        console.print_json(document)
    elif source is not None:
        print(document["kernels"][0]["source"])
    else:
        _print(document)
    raise typer.Exit(console.FAILED if path and "files_written" not in document else 0)


def _show_model(path: Path, size: list[str] | None, expand: bool, as_json: bool) -> None:
    nodes = models.read_nodes(path, expand=expand)
    sizes = models.parse_sizes(size, nodes)
    if as_json:
        described = [models.describe(node, sizes) for node in nodes]
        console.print_json({"model": str(path), "sizes": sizes, "nodes": described})
        return
    print(f"{path}: {models.counted(nodes)}")
    models.print_nodes(nodes, sizes)


def _of_library(path: Path) -> dict[str, Any]:
    manifest = read_manifest(path, check=False)
    return {
        "path": str(path),
        "target": manifest["target"],
        "versions": manifest["versions"],
        "components": manifest.get("components", []),
        "models": manifest.get("models", []),
        "kernels": [describe(entry, manifest["target"]) for entry in manifest["kernels"]],
        "nodes": manifest.get("nodes", []),
    }


def _of_workload(
    workload: Workload, target: str, logs: str | None, knobs: dict[str, Any]
) -> dict[str, Any]:
    import te_select  # noqa: PLC0415 - tvm is slow to import
    from te_select.backends.targets import resolve  # noqa: PLC0415 - imports tvm

    with scratch.folder() as folder:
        path, one = folder / "kernel.so", resolve(target).name
        made = te_select.export([workload], path, one, console.tuning_logs(logs), config=knobs)
        document = _of_library(made)
        document |= _here(made, document["kernels"])
    del document["path"]
    return document


def _written_beside(path: Path) -> dict[str, list[str]]:
    """Write the manifest and the header beside a library again, if they differ from it."""
    try:
        written, left = stored.write_beside(stored.read(path), path)
    except ArtifactError:  # it was changed, as "loads here" says
        return {}
    return {"files_written": written, "files_left": left}


def _here(path: Path, kernels: list[dict[str, Any]], *, load: bool = True) -> dict[str, Any]:
    """Whether a library would load here, or why not, and the level that would run.

    If it is loaded, also what it decides; this completes its kernels.
    """
    import te_select  # noqa: PLC0415 - imports tvm_ffi
    from te_select.runtime.call import loading  # noqa: PLC0415 - as above

    try:
        manifest = stored.read(path).manifest
        found = loading.class_here(manifest, path)
        level = found.level_here(manifest.target)
        loaded: Any = te_select.load(path) if load else {}
    except SelectError as error:
        return {"loads_here": f"no: {error}", "in_effect": {}}
    library = {loaded.workload.name: loaded} if isinstance(loaded, te_select.Kernel) else loaded
    in_effect: Mapping[str, str] = {}
    for entry in kernels if load else ():
        kernel = library[entry["symbol"]]
        plan, leaf, in_effect = kernel.plan(), _leaf(kernel), kernel.in_effect
        if leaf and "plain run" not in leaf and plan:  # only plain runs leave a side unread
            plan["looks_at_cond"] = False
        entry["here"] = {**plan, "leaf": leaf}
    named = {"level_here": level} if "levels" in manifest.target else {}
    why = found.calls_fail()
    loads = f"yes, but calls fail: {why}" if why else "yes"
    return {"loads_here": loads, "in_effect": dict(in_effect), **named}


def _leaf(kernel: Kernel) -> list[str]:
    """What walks the innermost run of elements, in the words of docs/schedules.md."""
    from te_select.backends import schedule_of  # noqa: PLC0415 - kept off --help

    pattern = access_pattern(kernel.workload)
    try:
        schedule = schedule_of(kernel.kind)  # imports tvm
        config = schedule.config_from(kernel.config).checked(pattern)
    except (ImportError, ValueError):  # te-select-runtime has none; another version's config
        return []
    return list(dict.fromkeys(each.leaf for each in schedule.variants(pattern, config)))


def _chosen(kernels: list[dict[str, Any]], name: str | None) -> list[dict[str, Any]]:
    symbols = [kernel["symbol"] for kernel in kernels]
    console.check_known("--kernel", name, symbols, "is not there")
    return [kernel for kernel in kernels if name in (None, kernel["symbol"])]


def _add_source(document: dict[str, Any], form: str, level: str | None) -> None:
    kernels, target = document["kernels"], document["target"]
    if len(kernels) > 1:
        names = ", ".join(kernel["symbol"] for kernel in kernels)
        raise console.UsageError(
            f"--source wants one kernel; expected --kernel with one of {names}"
        )
    from te_select.compiler import source  # noqa: PLC0415 - tvm is slow to import

    levels = kernels[0].get("levels", {target["name"]: kernels[0]})
    of_level = level or document.get("level_here", list(levels)[-1])
    if of_level not in levels:
        raise console.UsageError(f"--level {level!r} is not there; expected {' or '.join(levels)}")
    workload = Workload.from_json(kernels[0]["workload"])
    config = levels[of_level]["config"]
    kernels[0]["source"] = source(workload, of_level, config, form)


def _print(document: dict[str, Any]) -> None:
    target = document["target"]
    general = {
        "library": document.get("path", "(compiled here)"),
        "target": target["name"],
        **kinds.load(kinds.kind(target["kind"]).kernel).needs(target),
        "versions": ", ".join(f"{k} {v}" for k, v in document["versions"].items()),
    }
    if made_by := [
        f"{c['name']} {c['version']} ({c['license'] or '?'})" for c in document["components"]
    ]:
        general["made by"] = ", ".join(made_by)
    for model in document["models"]:
        general["made for"] = f"{model['name']}, SHA-256 {model['sha256']}"
    for name in ("loads_here", "level_here"):
        if name in document:
            general[name.replace("_", " ")] = document[name]
    console.print_fields(general)
    if document.get("in_effect"):
        print("here, if a knob is -1")
        console.print_fields(document["in_effect"], "  ")
    for name in document.get("files_written", ()):
        print(f"{name} was gone or did not fit, and was written again")
    for problem in document.get("files_left", ()):
        console.print_line(problem)
    print()
    print_kernels(document["kernels"])
    for node in document["nodes"]:
        console.print_line(f"{node['place']} {node['name']}: {node['symbol'] or node['reason']}")
