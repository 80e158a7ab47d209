"""``te-select torch``: build."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from te_select.cli.console import JsonFlag, print_json, progress
from te_select.cli.paths import check_output
from te_select.cli.where import Target

Output = Annotated[Path, typer.Option("-o", "--output", help="The .so to write.")]

torch_app = typer.Typer(
    help="The operator te_select::where for C++ programs of torch.\n\n"
    "Example: te-select torch build -o build/libte_select_torch.so",
    rich_markup_mode=None,
)


@torch_app.callback()
def _only_verbs() -> None:
    """Make ``build`` a word of its own, though it is the only one."""


@torch_app.command("build")
def build_command(output: Output, target: Target = "native", as_json: JsonFlag = False) -> None:
    """Build a library of the operator and its kernels for CPUs.

    A C++ program that is linked with it, or opens it, runs models of AOTInductor that have the
    operator. It needs libtorch, of whose stable ABI it is, but neither te-select nor Python.

    Example: te-select torch build -o build/libte_select_torch.so

    Example: te-select torch build --target x86-64-v2,x86-64-v3 -o build/libte_select_torch.so
    """
    output = check_output("-o", output)
    start = time.perf_counter()
    from te_select.backends.cpu.link import TORCH  # noqa: PLC0415 - imports tvm
    from te_select.numpy_where.kernels import building  # noqa: PLC0415 - imports tvm

    with progress("building", lines=not as_json) as step:
        path = building.build(output, target, step, half=TORCH)
    seconds = time.perf_counter() - start
    size = path.stat().st_size
    if as_json:
        print_json({"path": str(path), "bytes": size, "target": target, "seconds": seconds})
        return
    print(f"{path}: te_select::where for {target}, {size / 1024:.0f} KiB, {seconds:.1f} s")
