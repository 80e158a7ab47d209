"""``te-select where`` and ``te-select onnxruntime``: build, which is one library for both."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from te_select.cli.console import JsonFlag, UsageError, print_json, progress
from te_select.cli.paths import check_output
from te_select.levels import NAMES
from te_select.operator import family

Target = Annotated[
    str,
    typer.Option(
        help=f"A CPU, as for compile: native, {NAMES[0]} to {NAMES[-1]} or several, aarch64, ..."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The .so to write, to ship it; default into the cache."),
]


def _only_verbs() -> None:
    """Make ``build`` a word of its own, though it is the only one."""


where_app = typer.Typer(
    callback=_only_verbs,
    help="The kernels of te_select.where.\n\n"
    "They are built by themselves when they are first needed; this is for doing it beforehand, or "
    "for another machine.\n\n"
    "Example: te-select where build",
    rich_markup_mode=None,
)

onnxruntime_app = typer.Typer(
    callback=_only_verbs,
    help="The execution provider for ONNX Runtime.\n\n"
    "Python programs need only te_select.onnxruntime.register(session_options).\n\n"
    "Example: te-select onnxruntime build -o build/libte_select_ort.so",
    rich_markup_mode=None,
)


@where_app.command("build")
def build_command(
    target: Target = "native", output: Output = None, as_json: JsonFlag = False
) -> None:
    """Build all kernels of te_select.where.

    A program takes a library that was written by -o with te_select.where.use("where.so"); it needs
    no compiler then.

    Example: te-select where build

    Example: te-select where build --target x86-64-v2,x86-64-v3,x86-64-v4 -o build/where.so
    """
    if output is not None:
        output = check_output("-o", output)
    elif target != "native":
        raise UsageError(
            f"--target {target} needs -o: the cache holds kernels for this CPU only; expected "
            "native, or -o and the .so to write"
        )
    start = time.perf_counter()
    from te_select.numpy_where.kernels import building  # noqa: PLC0415 - imports tvm
    from te_select.tuning.runners import measure_profile  # noqa: PLC0415

    imported = time.perf_counter()
    if output is None and not as_json and (line := measure_profile()):
        print(line)
    with progress("building", lines=not as_json) as step:
        path = building.build(output, target, step)
    end = time.perf_counter()
    document = {
        "path": str(path),
        "bytes": path.stat().st_size,
        "kernels": sum(len(part) for part in family.parts().values()),
        "target": target,
        "seconds": round(end - imported, 3),
        "import_seconds": round(imported - start, 3),
    }
    if as_json:
        print_json(document)
        return
    print(
        f"{path}: {document['kernels']} kernels for {target}, {path.stat().st_size / 1024:.0f} "
        f"KiB, {end - imported:.1f} s (and {imported - start:.1f} s to import TVM)"
    )


@onnxruntime_app.command("build")
def build_provider_command(
    target: Target = "native", output: Output = None, as_json: JsonFlag = False
) -> None:
    """Build the library that programs in any language register with ONNX Runtime.

    It is the library of te-select where build. It exports CreateEpFactories, and needs neither
    Python nor TVM. A program registers it by RegisterExecutionProviderLibrary, or by the function
    of that name in its language, and adds the provider TeSelectExecutionProvider to its sessions.

    Example: te-select onnxruntime build -o build/libte_select_ort.so

    Example: te-select onnxruntime build --target aarch64 -o build/aarch64/libte_select_ort.so
    """
    build_command(target, output, as_json)
