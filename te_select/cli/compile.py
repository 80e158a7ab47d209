"""``te-select compile``."""

import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import te_select
from te_select.base import on_disk
from te_select.cli import console, flags, models
from te_select.cli.manifest import describe, for_people, read_manifest
from te_select.cli.paths import check_output
from te_select.cli.workloads import WorkloadsFlags, gather, source_of
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.records import required

Output = Annotated[
    Path,
    Option("-o", "--output", help="The .so to write; its .json and .h go beside it."),
]
Static = Annotated[bool, Option("--static", help="Write a static library .a as well.")]
StaticObject = Annotated[
    bool, Option("--static-object", help="Write an object file .o for TVM as well.")
]
Names = Annotated[
    list[str] | None, Option("--name", help="masked=graph#0: te_masked, too; repeatable.")
]


def compile_command(  # noqa: PLR0913, PLR0917 - one per flag
    given: WorkloadsFlags,
    output: Output,
    model: models.Model = None,
    target: flags.Target = "native",
    logs: flags.Logs = None,
    config: flags.Config = None,
    require_record: flags.RequireRecord = None,
    static: Static = False,
    static_object: StaticObject = False,
    names: Names = None,
    as_json: flags.Json = False,
) -> None:
    """Compile workloads, or all that a model needs, into a library.

    If --target lists several instruction sets, as x86-64-v3,aarch64 does, there is a library for
    each, such as mask.x86_64.so and mask.aarch64.so for -o mask.so.

    With --model, every distinct workload of the model becomes a function. Nodes whose shapes only
    the call tells are served by te_select_where, which takes any shapes. The manifest says which
    function serves which node.

    Example: te-select compile --cond 1,1,128,128 --then 4,12,128,128 --else "" -o build/mask.so

    Example: te-select compile --model model.onnx -o build/model.so
    """
    output = check_output(output)
    if static and static_object:
        raise console.UsageError("--static and --static-object are given; expected one of them")
    wanted: list[Workload] | list[ModelNode]
    if model:
        flags.no_meaning("beside --model", **given.given)
        wanted = nodes = models.read_nodes(model)
    else:
        wanted = [workload for _, workload in gather(given)]
    start = time.perf_counter()
    source = source_of(given, model, None)
    with console.progress("compiling") as step, required.named_by(source):
        export = te_select.export  # imports TVM
        imported = time.perf_counter()
        path = export(
            wanted,
            output,
            target,
            logs,
            config=flags.parse_knobs(config),
            require_record=flags.parse_required(require_record),
            static="object" if static_object else static,
            names=flags.parse_pairs("--name", names, "masked=graph#0"),
            progress=step,
        )
    end = time.perf_counter()
    libraries = [_described(each, as_json) for each in _written(path, target)]
    several = {"path": path, "libraries": libraries}
    document = {
        **(several if len(libraries) > 1 else libraries[0]),
        "seconds": round(end - imported, 3),
        "import_seconds": round(imported - start, 3),
    }
    if model:
        manifest = read_manifest(Path(libraries[0]["path"]))
        served = {node["place"]: node["symbol"] for node in manifest["nodes"]}
        found = [models.describe(node, {}) | {"symbol": served[node.place]} for node in nodes]
        document = models.document(model, found, as_json, "name", "status", "symbol") | document
    console.show(document, as_json)


def _written(path: Path, target: str) -> list[Path]:
    """The libraries of an export."""
    if not on_disk.is_missing(path):
        return [path]
    from te_select.backends.targets import resolve_each  # noqa: PLC0415 - imports TVM

    return [on_disk.for_machine(path, machine) for machine in resolve_each(target)]


def _described(path: Path, as_json: bool) -> dict[str, Any]:
    """A library that was written, as JSON types."""
    manifest = read_manifest(path)
    kernels = [describe(entry, manifest["target"]) for entry in manifest["kernels"]]
    return {
        "path": path,
        "bytes": path.stat().st_size,
        "target": manifest["target"],
        "kernels": kernels if as_json else for_people(kernels),
    }
