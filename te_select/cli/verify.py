"""``te-select verify``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from te_select.cli.console import (
    FAILED,
    JsonFlag,
    LevelOption,
    OptionalTarget,
    UsageError,
    no_meaning,
    print_json,
    print_line,
    print_table,
    progress,
)
from te_select.cli.paths import check_library
from te_select.operator import family

if TYPE_CHECKING:
    from te_select import Kernel
    from te_select.verify.corpus import RunResult
    from te_select.verify.verify import CheckResult

Paths = Annotated[
    list[Path] | None, typer.Argument(help="A library; after --corpus, more corpus files.")
]
Corpus = Annotated[list[Path] | None, typer.Option(help="A JSON list of cases; repeatable.")]
KernelName = Annotated[str | None, typer.Option(help="Check this kernel only.")]
Check = Annotated[
    list[str] | None,
    typer.Option(
        help="Run this check: random, all_true, all_false, blocked, bytes, misaligned, special, "
        "in_place or bounds; repeatable."
    ),
]
Case = Annotated[str | None, typer.Option(help="Run only this case of the corpus.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random data.")]


def verify_command(  # noqa: PLR0913, PLR0917 - one per flag
    paths: Paths = None,
    corpus: Corpus = None,
    kernel: KernelName = None,
    check: Check = None,
    case: Case = None,
    seed: Seed = 0,
    target: OptionalTarget = None,
    level: LevelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare kernels with NumPy bit for bit; run a corpus of cases.

    A library is loaded, which runs its code.

    A corpus is a JSON list of conformance cases, such as [{"id": "a", "op": "numpy.where",
    "attrs": {}, "cond_dtype": "boolean", "dtype": "f32", "cond_shape": [2], "then_shape": [2],
    "else_shape": [], "expect": "ok", "out_shape": [2]}]; docs/corpus.md has all fields.

    Examples: te-select verify build/mask.so;  te-select verify --corpus cases.json dynamic.json
    """
    files = list(paths or ())
    if corpus:
        no_meaning("--corpus", kernel=kernel, check=check, level=level)
        wanted = "native" if target is None else target
        _verify_corpus([*corpus, *files], wanted, seed, case, as_json)
        return
    if len(files) != 1:
        raise UsageError(
            f"{len(files)} libraries are given; expected one, such as build/mask.so, or "
            "--corpus FILE"
        )
    no_meaning("a library", case=case, target=target)
    _verify_library(files[0], kernel, seed, check, level, as_json)


def _verify_library(
    path: Path,
    name: str | None,
    seed: int,
    checks: Sequence[str] | None,
    level: str | None,
    as_json: bool,
) -> None:
    from te_select.verify.checks import CHECKS  # noqa: PLC0415 - imports NumPy
    from te_select.verify.numpy_calls import with_numpy  # noqa: PLC0415
    from te_select.verify.verify import verify_kernel  # noqa: PLC0415 - imports NumPy

    for check in checks or ():
        if check not in CHECKS:
            raise UsageError(f"--check {check!r} is not known; expected {', '.join(CHECKS)}")
    path = check_library(path)
    chosen = _loaded(path, name, level)
    here, levels = chosen[0].level, chosen[0].levels
    results = []
    with progress("verifying") as step:
        for i, kernel in enumerate(chosen):
            found = verify_kernel(with_numpy(kernel), seed, checks)
            results.append([_at_level(result, here, levels) for result in found])
            step(i + 1, len(chosen))
    passed = all(result.passed for group in results for result in group)
    if as_json:
        flat = [asdict(result) for group in results for result in group]
        document = {"path": str(path), "passed": passed, "seed": seed, "level": here}
        print_json({**document, "results": flat})
    else:
        _print(chosen, results)
        if len(levels) > 1 and level is None:
            others = ", ".join(other for other in levels if other != here)
            print(f"this was level {here}; give --level for {others}")
        elif level is not None:
            print(f"this was level {here}")
    if not passed:
        raise typer.Exit(FAILED)


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
            raise UsageError(f"--level {level!r} is not in {path}; expected {' or '.join(levels)}")
        os.environ[FORCED_LEVEL] = level  # the library reads it at its first use
    loaded = te_select.load(path)
    kernels: dict[str, Kernel] = (
        {loaded.workload.name: loaded} if isinstance(loaded, te_select.Kernel) else dict(loaded)
    )
    if name is not None and name not in kernels:
        known = ", ".join(kernels)
        raise UsageError(f"--kernel {name!r} is not in {path}; expected one of {known}")
    chosen = [kernels[name]] if name is not None else list(kernels.values())
    return chosen


def _at_level(result: CheckResult, level: str, levels: Sequence[str]) -> CheckResult:
    """A result whose command checks the same level of several again."""
    if len(levels) == 1:
        return result
    return replace(result, command=f"{result.command} --level {level}")


def _verify_corpus(
    files: Sequence[Path], target: str, seed: int, case: str | None, as_json: bool
) -> None:
    from te_select.verify.corpus import run_corpus  # noqa: PLC0415 - imports NumPy and tvm

    with progress("running the corpus") as step:
        results = run_corpus(files, target, seed, case, step)
    count = Counter(result.status for result in results)
    skipped = Counter(result.reason for result in results if result.status == "skipped")
    systems = _by_system(results)
    failures = [result for result in results if result.status == "failed"]
    if as_json:
        print_json(
            {
                "files": [str(file) for file in files],
                "passed": not failures,
                "seed": seed,
                "systems": systems,
                "skip_reasons": dict(skipped),
                "results": [asdict(result) for result in results],
            }
        )
    else:
        rows = [[op, *(str(value) for value in row.values())] for op, row in systems.items()]
        print_table(["system", "cases", "passed", "failed", "skipped"], rows)
        for reason, number in skipped.most_common():
            print_line(f"skipped {number}: {reason}")
        for result in failures:
            print_line(f"FAILED {result.op} {result.case} ({result.label}): {result.reason}")
            print_line(f"  {result.command}")
        print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    if failures:
        raise typer.Exit(FAILED)


def _by_system(results: Sequence[RunResult]) -> dict[str, dict[str, int]]:
    """Number of cases, and of runs that passed, failed and were skipped, by system."""
    systems: dict[str, dict[str, int]] = {}
    cases: dict[str, set[str]] = {}
    for result in results:
        row = systems.setdefault(result.op, {"cases": 0, "passed": 0, "failed": 0, "skipped": 0})
        row[result.status] += 1
        cases.setdefault(result.op, set()).add(result.case)
        row["cases"] = len(cases[result.op])
    return systems
