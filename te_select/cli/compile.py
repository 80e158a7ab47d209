"""``te-select compile``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import te_select
from te_select.cli import models
from te_select.cli.console import (
    ConfigOption,
    JsonFlag,
    LogsOption,
    TargetOption,
    UsageError,
    no_meaning,
    parse_knobs,
    print_json,
    print_line,
    progress,
    tuning_logs,
)
from te_select.cli.flags import with_groups
from te_select.cli.manifest import describe, print_kernels, read_manifest
from te_select.cli.paths import check_folder, check_output
from te_select.cli.workloads import WorkloadsFlags, gather

if TYPE_CHECKING:
    from te_select.frontends import ModelNode

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The .so to write; its .json and .h go beside it."),
]
Static = Annotated[bool, typer.Option("--static", help="Write a static library .a as well.")]
StaticObject = Annotated[
    bool, typer.Option("--static-object", help="Write an object file .o for TVM as well.")
]


@with_groups
def compile_command(  # noqa: PLR0913, PLR0917 - one per flag
    flags: WorkloadsFlags,
    model: models.Model = None,
    expand: models.Expand = False,
    target: TargetOption = "native",
    logs: LogsOption = None,
    config: ConfigOption = None,
    output: Output = None,
    static: Static = False,
    static_object: StaticObject = False,
    as_json: JsonFlag = False,
) -> None:
    """Compile workloads, or all that a model needs, into a library.

    With --model, every distinct workload of the model becomes a function. Nodes whose shapes only
    the call tells are served by te_select_where, which takes any shapes. The manifest says which
    function serves which node.

    Example: te-select compile --cond 1,1,128,128 --then 4,12,128,128 --else "" -o build/mask.so

    Example: te-select compile --model model.onnx -o build/model.so
    """
    output = check_output("-o", output)
    check_folder("--tuning-logs", logs, "none")
    if static and static_object:
        raise UsageError("--static and --static-object are given; expected one of them")
    nodes: list[ModelNode] = []
    if model is not None:
        no_meaning("--model", **flags.given)
        nodes = models.read_nodes(model, expand=expand)
    else:
        models.no_sizes(None, expand)
    wanted = nodes or gather(flags.given)
    start = time.perf_counter()
    with progress("compiling") as step:
        export = te_select.export  # imports TVM
        imported = time.perf_counter()
        path = export(
            wanted,
            output,
            target,
            tuning_logs(logs),
            config=parse_knobs(config),
            static="object" if static_object else static,
            progress=step,
        )
    end = time.perf_counter()
    manifest = read_manifest(path)
    document: dict[str, Any] = {
        "path": str(path),
        "bytes": path.stat().st_size,
        "seconds": round(end - imported, 3),
        "import_seconds": round(imported - start, 3),
        "target": manifest["target"],
        "kernels": [describe(entry, manifest["target"]) for entry in manifest["kernels"]],
    }
    if model is not None:
        document["model"] = str(model)
        served = {node["place"]: node["symbol"] for node in manifest["nodes"]}
        document["nodes"] = [
            models.describe(node, {}) | {"symbol": served[node.place]} for node in nodes
        ]
    if as_json:
        print_json(document)
        return
    print(
        f"{path}: {len(document['kernels'])} kernel(s) for {document['target']['name']}, "
        f"{document['bytes'] / 1024:.0f} KiB, {end - imported:.2f} s "
        f"(and {imported - start:.2f} s to import TVM)"
    )
    print_kernels(document["kernels"])
    if model is not None:
        print(f"{model}: {models.counted(nodes)}")
        for node in nodes:
            if node.status == "dispatched":
                by = served[node.place] or "not in the library"
                print_line(f"{node.place}: {by}; {node.reason}")
