"""``te-select verify``."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from te_select.cli import console, flags, paths

if TYPE_CHECKING:
    from te_select import Kernel

KernelName = Annotated[str | None, Option(help="Check this kernel only.")]
Check = Annotated[
    list[str] | None, Option(help="Only this check, such as random or bounds; repeatable.")
]
Seed = Annotated[int, Option(min=0, help="Seed of the random data.")]


def verify_command(
    path: Annotated[Path, Argument(metavar="LIBRARY", help="Such as build/mask.so.")],
    kernel: KernelName = None,
    check: Check = None,
    seed: Seed = 0,
    level: flags.Level = None,
    as_json: flags.Json = False,
) -> None:
    """Compare the kernels of a library with NumPy bit for bit.

    The library is loaded, which runs its code.

    Example: te-select verify build/mask.so
    """
    from te_select.verify.checks import CHECKS  # noqa: PLC0415 - imports NumPy
    from te_select.verify.verify import verify_kernel, with_numpy  # noqa: PLC0415 - as above

    for name in check or ():
        flags.check_known("--check", name, CHECKS)
    path = paths.check_library(path)
    chosen = _loaded(path, kernel, level)
    here, levels = chosen[0].level, chosen[0].levels
    results: list[dict[str, Any]] = []
    with console.progress("verifying") as step:
        for i, each in enumerate(chosen):
            results += map(asdict, verify_kernel(with_numpy(each), seed, check))
            step(i + 1, len(chosen))
    failed = [result for result in results if not result["passed"]]
    for result in results if len(levels) > 1 else ():
        result["command"] += f" --level {here}"
    found: dict[str, Any] = {"results": results}
    if not as_json:
        checks = f"{len(results) - len(failed)} of {len(results)} passed"
        found = {"kernels": len(chosen), "checks": checks, "failed": failed}
    document = {"path": path, "passed": not failed, "seed": seed, "level": here}
    console.show({**document, "levels": list(levels), **found}, as_json)
    if failed:
        raise Exit(console.FAILED)


def _loaded(path: Path, name: str | None, level: str | None) -> list[Kernel]:
    """The kernels to verify, of a library that runs at the level that is asked for."""
    import te_select  # noqa: PLC0415 - imports tvm_ffi
    from te_select.runtime.artifact.stored import read  # noqa: PLC0415 - kept off --help
    from te_select.runtime.call.kernel import FORCED_LEVEL  # noqa: PLC0415 - imports tvm_ffi

    if level is not None:
        target = read(path).manifest.target
        levels = target.get("levels", [target["name"]])
        flags.check_known("--level", level, levels, f"is not in {path}")
        os.environ[FORCED_LEVEL] = level  # the library reads it at its first use
    loaded = te_select.load(path)
    kernels: dict[str, Kernel] = (
        {loaded.workload.name: loaded} if isinstance(loaded, te_select.Kernel) else dict(loaded)
    )
    flags.check_known("--kernel", name, kernels, f"is not in {path}")
    return [kernels[name]] if name else list(kernels.values())
