"""Runs corpus cases: all workloads are compiled into one library, then called."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import te_select
from te_select.backends.targets import resolve
from te_select.compiler import check_runs_here
from te_select.errors import BroadcastError, SelectError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import format_shape
from te_select.operator.systems import SHORT_TYPE_NAMES, onnx_where, system
from te_select.operator.workload import Workload
from te_select.runtime.artifact import scratch
from te_select.verify.corpus.cases import Run, read_corpus
from te_select.verify.corpus.values import condition, laid_out, literal, operand_values
from te_select.verify.numpy_calls import with_numpy
from te_select.verify.reference import Array, first_difference, ints, placed

MEMORY_LIMIT = 2 << 30  # bytes of operands of one run

Kernels = Mapping[str, Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RunResult:
    """The result of one run.

    Parameters
    ----------
    op
        System and operator.
    case
        The case's identifier.
    label
        A text that tells the run from the others of its case.
    status
        ``"passed"``, ``"failed"`` or ``"skipped"``.
    reason
        Why it failed or was skipped.
    command
        The shell command that runs this case again.
    """

    op: str
    case: str
    label: str
    status: str
    reason: str
    command: str


def run_corpus(
    paths: Iterable[Path],
    target: str = "native",
    seed: int = 0,
    case_id: str | None = None,
    progress: Progress = lambda _done, _total: None,
) -> list[RunResult]:
    """Run the cases of corpus files.

    Parameters
    ----------
    paths
        The files.
    target
        What to compile for; this machine must be able to run it.
    seed
        Seed of the data that cases leave open.
    case_id
        Run this case only.
    progress
        Called with the number of finished runs and the number of all runs.

    Returns
    -------
    list of RunResult
        One per run, in the order of the files.

    Raises
    ------
    ArgumentError
        If a file is not a corpus.
    TargetError
        If the target is not known, or this CPU lacks what it needs.
    """
    runs = [run for path in paths for run in read_corpus(path, case_id)]
    workloads = {index: _workload(run) for index, run in enumerate(runs) if not run.skip}
    made = {index: w for index, w in workloads.items() if isinstance(w, Workload)}
    results = []
    unique = list(dict.fromkeys(made.values()))
    check_runs_here(resolve(target))
    with scratch.folder(scratch.ROOM + len(unique) * scratch.KERNEL_ROOM) as folder:
        kernels, errors = _build(unique, folder, target) if unique else ({}, {})
        for index, run in enumerate(runs):
            outcome = workloads.get(index)
            if run.skip:
                status, reason = "skipped", run.skip
            elif isinstance(outcome, Workload):
                status, reason = _called(run, outcome, kernels, errors, seed)
            else:
                status, reason = ("failed", str(outcome)) if run.accepts else ("passed", "")
            command = shlex.join(_command(run, target, seed))
            results.append(RunResult(run.op, run.case_id, run.label, status, reason, command))
            progress(index + 1, len(runs))
    return results


def _workload(run: Run) -> Workload | SelectError:
    """The run's workload under its system's rule, or the error that the rule raises."""
    attrs = run.case["attrs"]
    try:
        of = onnx_where(attrs["opset"]) if "opset" in attrs else system(run.op)
        workload = Workload.of_system(
            of, run.shapes["cond"], run.shapes["then"], run.shapes["else"], run.then_dtype,
            attrs.get("auto_broadcast", of.mode), attrs.get("axis", -1),
        )  # fmt: skip
        declared = tuple(attrs.get("dst_shape", workload.out_shape))
        if declared != workload.out_shape:
            raise BroadcastError(
                f"dst is {format_shape(declared)}, expected {format_shape(workload.out_shape)}"
            )
    except SelectError as error:
        return error
    return workload


def _build(
    workloads: list[Workload], folder: Path, target: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Compile all into one library; if that fails, halve until the failing ones are alone."""
    try:
        path = te_select.export(workloads, folder / f"{workloads[0].name}.so", target)
        loaded = te_select.load(path)
    except Exception as error:  # a failure to compile is the result of that workload's run
        if len(workloads) == 1:
            return {}, {workloads[0].name: f"{type(error).__name__}: {error}"}
        middle = len(workloads) // 2
        first = _build(workloads[:middle], folder, target)
        second = _build(workloads[middle:], folder, target)
        return first[0] | second[0], first[1] | second[1]
    if isinstance(loaded, te_select.Kernel):
        return {loaded.workload.name: with_numpy(loaded)}, {}
    return {name: with_numpy(kernel) for name, kernel in loaded.items()}, {}


def _called(
    run: Run, workload: Workload, kernels: Kernels, errors: Mapping[str, str], seed: int
) -> tuple[str, str]:
    """Status and reason of a run whose workload is valid."""
    if workload.name in errors:
        return "failed", errors[workload.name]
    if run.accepts and workload.out_shape != run.out_shape:
        return "failed", f"out_shape is {workload.out_shape}, expected {run.out_shape}"
    bound = workload.bind(run.sizes)
    if access_pattern(bound).bytes_moved() > MEMORY_LIMIT:
        return "skipped", f"needs more than {MEMORY_LIMIT >> 30} GiB"
    reason = _call(run, bound, kernels[workload.name], seed)
    return ("failed", reason) if reason else ("passed", "")


def _call(run: Run, workload: Workload, kernel: Callable[..., Array], seed: int) -> str:
    """Call the kernel; returns what is wrong with its result, or an empty string."""
    try:
        # Not hash(): it differs from process to process, and then nothing could be reproduced.
        key = zlib.crc32(f"{run.case_id} {run.label}".encode())
        random = np.random.Generator(np.random.SFC64([seed, key]))
        operands = _operands(run, workload, random)
        out = kernel(*operands)
        if run.accepts:
            return _difference(run, workload, operands, out)
    except Exception as error:  # as above: the result of this run
        refused = isinstance(error, SelectError) and not run.accepts
        return "" if refused else f"{type(error).__name__}: {error}"
    return f"accepted, with out_shape {workload.out_shape}; expected an error"


def _operands(run: Run, workload: Workload, random: np.random.Generator) -> tuple[Array, ...]:
    cond_dtype = run.case["cond_dtype"]
    sides = (workload.cond_shape, workload.then_shape, workload.else_shape)
    shapes = [ints(shape) for shape in sides]
    if cond_dtype in ("boolean", "dynamic", *system(run.op).numeric_cond):
        name = SHORT_TYPE_NAMES.get(cond_dtype, "bool")
        cond = condition(run.case, name, shapes[0], random)
    else:  # the case is not legal, so the kernel gets the shape unchanged and must refuse it
        cond = operand_values(run.case, "cond", SHORT_TYPE_NAMES[cond_dtype], shapes[0], random)
    then = operand_values(run.case, "then", run.then_dtype, shapes[1], random)
    else_ = operand_values(run.case, "else", run.else_dtype, shapes[2], random)
    return tuple(laid_out(each, run.case["attrs"], run.layout) for each in (cond, then, else_))


def _difference(run: Run, workload: Workload, operands: tuple[Array, ...], out: Array) -> str:
    """Compare with NumPy, and with the case's own values if it has any."""
    if out.shape != workload.out_shape or out.dtype != operands[1].dtype:
        return f"out is {out.dtype} {out.shape}, expected {operands[1].dtype} {workload.out_shape}"
    if found := first_difference(out, *placed(workload, *operands)):
        return found
    values = literal(run.case, "out", workload.dtype)
    if values is None:
        return ""
    expected = values.reshape(out.shape)
    found = first_difference(out, np.ones(out.shape, np.bool_), expected, expected)
    return found.replace("NumPy selects", "the case expects")


def _command(run: Run, target: str, seed: int) -> list[str]:
    words = ["te-select", "verify", "--corpus", str(run.file), "--case", run.case_id]
    words += ["--seed", str(seed)] if seed else []
    return words + (["--target", target] if target != "native" else [])
