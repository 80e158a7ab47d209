"""``te-select inspect``."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from te_select.base import kinds, scratch
from te_select.cli import console, flags, models
from te_select.cli.manifest import cyclonedx, describe, for_people, read_manifest
from te_select.cli.paths import check_library
from te_select.cli.workloads import WorkloadFlags, gather
from te_select.errors import ArtifactError, SelectError
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.artifact import stored

if TYPE_CHECKING:
    from te_select.runtime.call.kernel import Kernel

Library = Annotated[Path | None, Argument(help="A library; without it, give workload flags.")]
Source = Annotated[str | None, Option(help=f"{', '.join(kinds.sources())}.")]
KernelName = Annotated[str | None, Option(help="A kernel of a library with several.")]
_COLUMNS = (
    "name", "cond_shape", "then_shape", "else_shape", "out_shape", "dtype", "status",
    "cond_producer", "bytes_per_call",
)  # fmt: skip
_OF_MANIFEST = ("target", "versions", "components", "models", "kernels", "nodes")
Sbom = Annotated[bool, Option("--sbom", help="A bill of materials, as CycloneDX JSON.")]
Load = Annotated[bool, Option("--load", help="Load the library: its code runs.")]


def inspect_command(  # noqa: PLR0913, PLR0917 - one per flag
    given: WorkloadFlags,
    of_model: models.ModelFlags,
    path: Library = None,
    target: flags.OptionalTarget = None,
    logs: flags.Logs = None,
    config: flags.Config = None,
    source: Source = None,
    level: flags.Level = None,
    kernel: KernelName = None,
    load: Load = False,
    sbom: Sbom = False,
    as_json: flags.Json = False,
) -> None:
    """Show what a library or a workload is; what a model becomes.

    For a library and a workload: the config with its reason, and the source at each level. For a
    model: a table of its Where or Select nodes, with what te-select does with each. By --size
    it tells how many bytes a call of a node with named dims reads and writes.

    A library is read, and its code does not run. The .json and .h beside it are written again if
    they differ. With --load it does: what the library decides on
    this machine is shown, too.

    Example: te-select inspect build/mask.so --source asm
    (or sass, for a library for CUDA)

    Example: te-select inspect --model model.onnx --size batch=8 --size sequence=512
    """
    flags.check_known("--source", source, kinds.sources())
    if of_model.model:
        flags.no_meaning(
            "beside --model",
            level=level,
            config=config,
            load=load,
            sbom=sbom,
            library=path,
            tuning_logs=logs,
            source=source,
            kernel=kernel,
            target=target,
            **given.given,
        )
        _show_model(of_model.model, of_model.size, as_json)
        return
    flags.no_meaning("without --model", size=of_model.size)
    if path:
        flags.no_meaning(
            "beside a library", target=target, config=config, tuning_logs=logs, **given.given
        )
        path = check_library(path)
        if sbom:
            flags.no_meaning("beside --sbom", load=load, source=source, level=level, kernel=kernel)
            console.show(cyclonedx(path, read_manifest(path)), as_json=True)
            return
        document = _of_library(path, load=load)
        with contextlib.suppress(ArtifactError):  # it was changed, as loads_here says
            written, left = stored.write_beside(stored.read(path), path)
            document |= {"files_written": written, "files_left": left}
    else:
        flags.no_meaning("beside workload flags", load=load, sbom=sbom)
        document = _of_workload(gather(given)[0][1], target or "native", logs, config)
    flags.check_known("--kernel", kernel, [each["symbol"] for each in document["kernels"]])
    if kernel:
        document["kernels"] = [each for each in document["kernels"] if each["symbol"] == kernel]
    if source:
        _add_source(document, source, level)
    elif level is not None:
        raise console.UsageError("--level needs --source; expected --source beside it")
    if source and not as_json:
        print(document["kernels"][0]["source"])
    elif as_json:
        console.show(document, as_json)
    else:
        known = {name: said for name, said in document.items() if said not in ([], {})}
        console.show({**known, "kernels": for_people(document["kernels"])}, as_json)
    raise Exit(console.FAILED if path and "files_written" not in document else 0)


def _show_model(path: Path, size: list[str] | None, as_json: bool) -> None:
    nodes = models.read_nodes(path)
    ranges = models.parse_sizes(size, {name for node in nodes for name in node.dims})
    if wide := [name for name, (least, most) in ranges.items() if least < most]:
        raise console.UsageError(f"--size {wide[0]} is a range; expected one size")
    sizes = {name: least for name, (least, _) in ranges.items()}
    described = [models.describe(node, sizes) for node in nodes]
    found = models.document(path, described, as_json, *_COLUMNS)
    console.show({**found, "sizes": sizes}, as_json)


def _of_library(path: Path, *, load: bool = True) -> dict[str, Any]:
    manifest = read_manifest(path, check=False)
    kernels = [describe(entry, manifest["target"]) for entry in manifest["kernels"]]
    said = {name: manifest.get(name, []) for name in _OF_MANIFEST}
    return {"path": path, **said, "kernels": kernels, **_here(path, kernels, load=load)}


def _of_workload(
    workload: Workload, target: str, logs: str | None, config: list[str] | None
) -> dict[str, Any]:
    import te_select  # noqa: PLC0415 - tvm is slow to import
    from te_select.backends.targets import resolve  # noqa: PLC0415 - imports tvm

    with scratch.folder() as folder:
        path = folder / "kernel.so"
        one = resolve(target).name
        made = te_select.export([workload], path, one, logs, config=flags.parse_knobs(config))
        document = _of_library(made)
    del document["path"]
    return document


def _here(path: Path, kernels: list[dict[str, Any]], *, load: bool) -> dict[str, Any]:
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
        plan = kernel.plan()
        leaf = _leaf(kernel)
        in_effect = kernel.in_effect
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


def _add_source(document: dict[str, Any], form: str, level: str | None) -> None:
    kernels, target = document["kernels"], document["target"]
    if len(kernels) > 1:
        raise console.UsageError(
            "--source wants one kernel; expected --kernel with one of "
            f"{', '.join(kernel['symbol'] for kernel in kernels)}"
        )
    from te_select.compiler.sources import source  # noqa: PLC0415 - tvm is slow to import

    levels = kernels[0].get("levels", {target["name"]: kernels[0]})
    flags.check_known("--level", level, levels, "is not there")
    of_level = level or document.get("level_here", list(levels)[-1])
    workload = Workload.from_json(kernels[0]["workload"])
    kernels[0]["source"] = source(workload, of_level, levels[of_level]["config"], form)
