"""Reads corpus files: every case becomes one run per element type, layout and set of shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from te_select.errors import ArgumentError, ArtifactError, SelectError
from te_select.operator.broadcast import Dim
from te_select.operator.systems import SHORT_TYPE_NAMES, system
from te_select.runtime.artifact import files
from te_select.verify.corpus.partial import Instance, instances

_OPEN = "dynamic"  # an element type left open in the source
_MALFORMED = (
    TypeError, ValueError, AttributeError, IndexError, ArithmeticError, MemoryError,
    RecursionError,
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One case with one element type, layout and set of shapes.

    Parameters
    ----------
    file
        The corpus file.
    case
        The case as the file has it.
    label
        A text that tells this run from the others of its case.
    then_dtype, else_dtype
        Element types, in te-select's names. They differ only in cases that must be refused.
    shapes
        Shapes of ``cond``, ``then`` and ``else``.
    out_shape
        The shape that must result; without meaning if an error is expected.
    accepts
        Whether te-select must accept the case.
    layout
        ``"C"`` or ``"F"``.
    sizes
        Sizes of the named dims.
    skip
        Why the case cannot be run; empty if it can.
    """

    file: Path
    case: Mapping[str, Any]
    label: str
    then_dtype: str
    else_dtype: str
    shapes: Mapping[str, tuple[Dim, ...]]
    out_shape: tuple[Dim, ...]
    accepts: bool
    layout: str = "C"
    sizes: Mapping[str, int] = field(default_factory=dict)
    skip: str = ""

    @property
    def case_id(self) -> str:
        """The case's identifier."""
        return str(self.case["id"])

    @property
    def op(self) -> str:
        """The case's system and operator."""
        return str(self.case["op"])


def read_corpus(path: Path, case_id: str | None = None) -> list[Run]:
    """Read a corpus file.

    Parameters
    ----------
    path
        The file: a JSON list of cases of static shapes, of partial shapes, or of both.
    case_id
        Read this case only.

    Returns
    -------
    list of Run
        The runs, including those that are skipped.

    Raises
    ------
    ArgumentError
        If the file cannot be read, is not a corpus, or does not hold the case.
    """
    try:
        cases = json.loads(files.read(path, "a JSON list of cases"))
    except ArtifactError as error:
        raise ArgumentError(str(error)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"{path} is not JSON: {error}") from error
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise ArgumentError(f"{path} is not a corpus; expected a JSON list of cases, [{{...}}]")
    chosen = [case for case in cases if case_id in (None, case.get("id"))]
    if case_id is not None and not chosen:
        raise ArgumentError(f"{path} has no case {case_id!r}; it has {len(cases)} others")
    runs: list[Run] = []
    for case in chosen:
        try:
            runs.extend(_runs(path, case))
        except SelectError as error:
            raise ArgumentError(f"{path}, case {case.get('id')!r}: {error}") from error
        except KeyError as error:
            raise ArgumentError(
                f"{path}, case {case.get('id')!r} has no {error}; docs/corpus.md has the fields"
            ) from error
        except _MALFORMED as error:
            raise ArgumentError(
                f"{path}, case {case.get('id')!r} is malformed: {type(error).__name__}: {error}"
            ) from error
    return runs


def _runs(path: Path, case: Mapping[str, Any]) -> Iterator[Run]:
    rules = system(case["op"])
    found, reason = _instances(case)
    if reason:
        found = [Instance("", {}, (), {})]
    accepts = case["expect"] == "ok" and not rules.obsolete_rule
    for instance in found:
        for dtype in case.get("dtypes") or [_then_dtype(case)]:
            run = Run(
                path, case, f"{dtype} {instance.label}".strip(), dtype, dtype, instance.shapes,
                instance.out, accepts, sizes=instance.sizes, skip=reason,
            )  # fmt: skip
            run = _typed(run)
            for layout in case["attrs"].get("layouts", ["C"]):
                label = run.label if layout == "C" else f"{run.label} {layout}"
                yield replace(run, label=label, layout=layout[0])


def _instances(case: Mapping[str, Any]) -> tuple[list[Instance], str]:
    if "cond_pshape" in case:
        return instances(case)
    shapes = {operand: tuple(case[f"{operand}_shape"]) for operand in ("cond", "then", "else")}
    return [Instance("", shapes, tuple(case.get("out_shape", ())), {})], ""


def _then_dtype(case: Mapping[str, Any]) -> str:
    """The element type of then; if it is open, that of the case; if both are open, float32."""
    for key in ("then_dtype", "dtype", "else_dtype"):
        if case.get(key, _OPEN) != _OPEN:
            return str(case[key])
    return "f32"


def _typed(run: Run) -> Run:
    """Translate the element types, or say why the run must be skipped."""
    dtype = run.then_dtype
    if run.skip:
        return run
    if ":" in dtype:
        return replace(run, skip="operands of different element types")
    if dtype not in SHORT_TYPE_NAMES:
        return replace(run, skip=f"{dtype} is not an element type of te-select")
    other = run.case.get("else_dtype", _OPEN)
    mixed = other not in (_OPEN, _then_dtype(run.case))
    if mixed and run.accepts:
        return replace(run, skip="operands of different element types")
    then = SHORT_TYPE_NAMES[dtype]
    else_ = SHORT_TYPE_NAMES[other] if mixed else then
    return replace(run, then_dtype=then, else_dtype=else_)
