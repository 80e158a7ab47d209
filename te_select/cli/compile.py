"""``te-select compile``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import te_select
from te_select.cli import workloads
from te_select.cli.console import (
    JsonFlag,
    LogsOption,
    TargetOption,
    print_json,
    progress,
    tuning_logs,
)
from te_select.cli.manifest import describe, print_kernel, read_manifest
from te_select.cli.paths import check_folder, check_output

Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="The .so to write; the manifest lies beside.")
]


def compile_command(  # noqa: PLR0913, PLR0917 - one per flag
    cond: workloads.Cond = None,
    then: workloads.Then = None,
    else_: workloads.Else = None,
    dtype: workloads.DType = None,
    op: workloads.Op = None,
    auto_broadcast: workloads.AutoBroadcast = None,
    axis: workloads.Axis = None,
    workload: workloads.WorkloadJson = None,
    workloads_file: workloads.WorkloadsFile = None,
    target: TargetOption = "native",
    logs: LogsOption = None,
    output: Output = None,
    as_json: JsonFlag = False,
) -> None:
    """Compile workloads into one shared library.

    Example: te-select compile --cond 1,1,128,128 --then 4,12,128,128 --else "" -o build/select.so
    """
    output = check_output("-o", output)
    check_folder("--tuning-logs", logs, "none")
    flags = workloads.fields(cond, then, else_, dtype, op, auto_broadcast, axis)
    wanted = workloads.gather(flags, workload, workloads_file)
    start = time.perf_counter()
    with progress(f"compiling {len(wanted)} workloads"):
        export = te_select.export  # imports TVM
        imported = time.perf_counter()
        path = export(wanted, output, target, tuning_logs(logs))
    end = time.perf_counter()
    manifest = read_manifest(path)
    document: dict[str, Any] = {
        "path": str(path),
        "bytes": path.stat().st_size,
        "seconds": round(end - imported, 3),
        "import_seconds": round(imported - start, 3),
        "target": manifest["target"],
        "kernels": [describe(entry) for entry in manifest["kernels"]],
    }
    if as_json:
        print_json(document)
        return
    print(
        f"{path}: {len(document['kernels'])} kernel(s) for {document['target']['name']}, "
        f"{document['bytes'] / 1024:.0f} KiB, {end - imported:.2f} s "
        f"(and {imported - start:.2f} s to import TVM)"
    )
    for kernel in document["kernels"]:
        print_kernel(kernel)
