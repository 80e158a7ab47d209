"""``te-select verify``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from te_select.cli import console, paths
from te_select.operator import family

if TYPE_CHECKING:
    from te_select import Kernel
    from te_select.verify.verify import CheckResult

KernelName = Annotated[str | None, typer.Option(help="Check this kernel only.")]
Check = Annotated[
    list[str] | None,
    typer.Option(
        help="Run this check: random, all_true, all_false, blocked, bytes, misaligned, special, "
        "in_place or bounds; repeatable."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random data.")]


def verify_command(
    path: Annotated[Path, typer.Argument(metavar="LIBRARY", help="Such as build/mask.so.")],
    kernel: KernelName = None,
    check: Check = None,
    seed: Seed = 0,
    level: console.LevelOption = None,
    as_json: console.JsonFlag = False,
) -> None:
    """Compare the kernels of a library with NumPy bit for bit.

    The library is loaded, which runs its code.

    Example: te-select verify build/mask.so
    """
    from te_select.verify.checks import CHECKS  # noqa: PLC0415 - imports NumPy
    from te_select.verify.numpy_calls import with_numpy  # noqa: PLC0415
    from te_select.verify.verify import verify_kernel  # noqa: PLC0415 - imports NumPy

    for name in check or ():
        if name not in CHECKS:
            raise console.UsageError(f"--check {name!r} is not known; expected {', '.join(CHECKS)}")
    path = paths.check_library(path)
    chosen = _loaded(path, kernel, level)
    here, levels = chosen[0].level, chosen[0].levels
    results = []
    with console.progress("verifying") as step:
        for i, each in enumerate(chosen):
            found = verify_kernel(with_numpy(each), seed, check)
            results.append([_at_level(result, here, levels) for result in found])
            step(i + 1, len(chosen))
    passed = all(result.passed for group in results for result in group)
    if as_json:
        flat = [asdict(result) for group in results for result in group]
        document = {"path": str(path), "passed": passed, "seed": seed, "level": here}
        console.print_json({**document, "results": flat})
    else:
        _print(chosen, results)
        if len(levels) > 1 and level is None:
            others = ", ".join(other for other in levels if other != here)
            print(f"this was level {here}; give --level for {others}")
        elif level is not None:
            print(f"this was level {here}")
    if not passed:
        raise typer.Exit(console.FAILED)


def _print(chosen: Sequence[Kernel], results: Sequence[Sequence[CheckResult]]) -> None:
    """A line for each kernel, and for the family of where() one line for all of its kernels."""
    members = family.members(kernel.workload for kernel in chosen)
    of_family = [0, 0]
    for kernel, group in zip(chosen, results, strict=True):
        good = sum(result.passed for result in group)
        if kernel.workload in members and good == len(group):
            of_family = [of_family[0] + 1, of_family[1] + good]
            continue
        print(f"{kernel.workload.name}: {good} of {len(group)} checks passed")
        for result in group:
            if not result.passed:
                at = "".join(f" {k}={v}" for k, v in result.sizes.items())
                print(f"  FAILED {result.check}{at}: {result.message}\n    {result.command}")
    if of_family[0]:
        kernels, checks = of_family
        print(f"{family.FUNCTION}, {kernels} kernels: {checks} of {checks} checks passed")


def _loaded(path: Path, name: str | None, level: str | None) -> list[Kernel]:
    """The kernels to verify, of a library that runs at the level that is asked for."""
    import te_select  # noqa: PLC0415 - imports tvm_ffi
    from te_select.runtime.artifact.stored import read  # noqa: PLC0415 - kept off --help
    from te_select.runtime.call.kernel import FORCED_LEVEL  # noqa: PLC0415 - imports tvm_ffi

    if level is not None:
        target = read(path).manifest.target
        levels = list(target.get("levels", [target["name"]]))
        if level not in levels:
            raise console.UsageError(
                f"--level {level!r} is not in {path}; expected {' or '.join(levels)}"
            )
        os.environ[FORCED_LEVEL] = level  # the library reads it at its first use
    loaded = te_select.load(path)
    kernels: dict[str, Kernel] = (
        {loaded.workload.name: loaded} if isinstance(loaded, te_select.Kernel) else dict(loaded)
    )
    console.check_known("--kernel", name, kernels, f"is not in {path}")
    return [kernels[name]] if name is not None else list(kernels.values())


def _at_level(result: CheckResult, level: str, levels: Sequence[str]) -> CheckResult:
    """A result whose command checks the same level of several again."""
    if len(levels) == 1:
        return result
    return replace(result, command=f"{result.command} --level {level}")
