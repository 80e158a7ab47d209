"""Reads corpus files: every case becomes one run per element type, layout and set of shapes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from te_select.operator.systems import TYPE_NAMES

# Our name of each element type by all short ones: f32, s8, boolean.
SHORT_NAMES = {
    **TYPE_NAMES["openvino"],
    **TYPE_NAMES["onednn"],
    **{"c64": "complex64", "c128": "complex128"},
}
OPEN = "dynamic"  # an element type left open in the source
# In 2020 the base of pdpd was the operand else; te-select refuses what only that rule allowed.
OBSOLETE = "ngraph.legacy_Select-1"


@dataclass(frozen=True)
class Instance:
    """One set of concrete shapes; its label tells it from the others of its case."""

    label: str
    shapes: Mapping[str, Any]
    out: tuple[int, ...]


def instances(case):
    """Concrete shapes of a case, and the reason if there are none."""
    if "targets" in case:
        return [
            Instance(f"target {i}", target, tuple(target["out"]))
            for i, target in enumerate(case["targets"])
        ], ""
    if "cond_pshape" in case:
        return [], "partial shapes, for which the case names no sizes"
    shapes = {operand: case[f"{operand}_shape"] for operand in ("cond", "then", "else")}
    return [Instance("", shapes, tuple(case.get("out_shape", ())))], ""


@dataclass(frozen=True)
class Run:
    """One case with one element type, layout and set of shapes, or the reason why it is skipped."""

    case: Mapping[str, Any]
    instance: Instance
    then_dtype: str
    else_dtype: str
    layout: str
    skip: str

    def __str__(self):
        words = self.case["op"], self.case["id"], self.then_dtype, self.instance.label, self.layout
        return " ".join(filter(None, words))

    @property
    def accepts(self):
        """Whether te-select must accept the case."""
        return self.case["expect"] == "ok" and self.case["op"] != OBSOLETE


def read(*paths):
    """The runs of corpus files, including those that are skipped."""
    return [run for path in paths for case in json.loads(path.read_text()) for run in _runs(case)]


def _runs(case):
    found, reason = instances(case)
    for instance in found or [Instance("", {}, ())]:
        for dtype in case.get("dtypes") or [_then_dtype(case)]:
            for layout in case["attrs"].get("layouts", ["C"]):
                yield _typed(case, instance, dtype, layout, reason)


def _then_dtype(case):
    """The element type of then; if it is open, that of the case; if both are open, float32."""
    given = (case.get(key, OPEN) for key in ("then_dtype", "dtype", "else_dtype"))
    return next((dtype for dtype in given if dtype != OPEN), "f32")


def _typed(case, instance, dtype, layout, skip):
    """Translate the element types, or say why the run must be skipped."""
    other = case.get("else_dtype", OPEN)
    is_mixed = other not in (OPEN, _then_dtype(case))
    then, else_ = (SHORT_NAMES.get(each, each) for each in (dtype, other if is_mixed else dtype))
    run = Run(case, instance, then, else_, layout, skip)
    if skip:
        return run
    if ":" in dtype or (is_mixed and run.accepts and dtype in SHORT_NAMES):
        return replace(run, skip="operands of different element types")
    if dtype not in SHORT_NAMES:
        return replace(run, skip=f"{dtype} is not an element type of te-select")
    return run
