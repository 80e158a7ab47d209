"""Conditions for the C half: trees of comparisons, computed by NumPy and by kernels.

A tree is a name of an operator with its trees, or a relation with its operands:
``("and", ("less", a, b), ("not", ("equal", a, c)))``.
"""

import ctypes
from typing import Any

import numpy as np

from te_select.operator.stages import NUMBERS, RELATIONS, STEPS
from tests.support.where_recorder import Call, axes, call_of, strides_along

LEAVES = 8
NUMPYS = {
    **{"less": np.less, "less_equal": np.less_equal, "equal": np.equal, "is_finite": np.isfinite},
    **{"and": np.logical_and, "or": np.logical_or, "not": np.logical_not},
}


class _Operand(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("strides", type(axes())))


class _Leaf(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int32) for name in ("relation", "kind")),
        ("operands", _Operand * 2),
    )


class Condition(ctypes.Structure):
    """A te_select_where_condition of ``where.h``."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("leaf_count", "step_count")),
        ("steps", ctypes.c_int8 * 24),
        ("leaves", _Leaf * LEAVES),
    )


class Sources(ctypes.Structure):
    """A te_select_where_sources."""

    _fields_ = (
        ("kinds", ctypes.c_int32 * 3),
        *((name, ctypes.c_int32) for name in ("out_kind", "flags")),
        *((name, ctypes.c_void_p) for name in ("bits", "condition")),
    )


def condition_of(tree: Any, shape: tuple[int, ...]) -> Condition:
    """A tree for the C half; operands broadcast to the shape, and stay alive with it."""
    made = Condition()
    made.kept = []
    _add(made, tree, shape)
    return made


def _add(made: Condition, tree: Any, shape: tuple[int, ...]) -> None:
    name, *inner = tree
    if name in STEPS:
        for each in inner:
            _add(made, each, shape)
        step = -1 - STEPS.index(name)
    else:
        step = made.leaf_count
        leaf = made.leaves[step]
        leaf.relation = RELATIONS.index(name)
        leaf.kind = NUMBERS.index(inner[0].dtype.name)
        for operand, array in zip(leaf.operands, inner, strict=False):
            operand.data = array.__array_interface__["data"][0]
            operand.strides[: len(shape)] = strides_along(array, shape)
            made.kept.append(array)
        made.leaf_count += 1
    made.steps[made.step_count] = step
    made.step_count += 1


def computed(tree: Any) -> Any:
    """What NumPy makes of a tree."""
    name, *inner = tree
    given = map(computed, inner) if name in STEPS else inner
    with np.errstate(all="ignore"):
        return NUMPYS[name](*given)


def call(tree: Any, x: Any, y: Any, out: Any) -> tuple[Call, Sources, Condition]:
    """A call by a condition, whose sides are of numbers."""
    condition = condition_of(tree, out.shape)
    made = call_of(np.zeros((), bool), x, y, out)
    made.data[0] = None
    sources = Sources((-1, *(_kind(each, out) for each in (x, y))), _kind(out, None), 0, None)
    sources.condition = ctypes.addressof(condition)
    return made, sources, condition


def _kind(array: Any, out: Any) -> int:
    return -1 if out is not None and array.dtype == out.dtype else NUMBERS.index(array.dtype.name)
