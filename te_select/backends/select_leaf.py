"""Reads the leaf of a scheduled function, and refuses it if it is not exactly a Select.

A lowering replaces a leaf by a span, and a span always computes a Select. So everything that a span
assumes is read from the definition here.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from tvm import ir, s_tir, tirx

from te_select.errors import SelectError
from te_select.operator.access import STAYS, AccessPattern, Step
from te_select.operator.broadcast import Dim

CONDITION = "uint8"
# Carried element types of then, else and out in the definition.
CARRIED = ("uint8", "uint16", "uint32", "uint64")

Steps = Mapping[str, tuple[Step, ...]]


def operands_of(store: Any) -> dict[str, ir.TensorLoad]:
    """Find the operands in a leaf's store.

    Parameters
    ----------
    store
        The statement of the innermost loop.

    Returns
    -------
    dict[str, TensorLoad]
        The loads of ``cond``, ``then`` and ``else``, and as ``out`` the element that is written.

    Raises
    ------
    SelectError
        If it is not ``out[...] = Select(cond[...] != 0, then[...], else_[...])``, with cond of
        uint8 and the others of one carried type. Other conditions are refused, because a span tests
        for not 0. TVM also writes ``x > 0`` as ``0 < x``.
    """
    if not isinstance(store, tirx.BufferStore):
        raise refused(store)
    select = store.value
    if not isinstance(select, tirx.Select) or not isinstance(select.condition, tirx.NE):
        raise refused(store)
    zero = select.condition.b
    if not isinstance(zero, tirx.IntImm) or zero.value != 0:
        raise refused(store)
    loads = {"cond": select.condition.a, "then": select.true_value, "else": select.false_value}
    if not all(isinstance(load, ir.TensorLoad) for load in loads.values()):
        raise refused(store)
    loads["out"] = tirx.BufferLoad(store.buffer, store.indices)
    types = {name: str(load.ty.dtype) for name, load in loads.items()}
    carried = {types["then"], types["else"], types["out"]}
    if types["cond"] != CONDITION or len(carried) > 1 or not carried <= set(CARRIED):
        raise refused(store)
    return loads


def block_of(leaf: tirx.For) -> s_tir.SBlock:
    """The block of a leaf, unchanged from the definition.

    Raises
    ------
    SelectError
        If the leaf is not one block inside loops.
    """
    body: Any = leaf.body
    while isinstance(body, tirx.For):
        body = body.body
    if not isinstance(body, s_tir.SBlockRealize):
        raise refused(body)
    return body.block


def steps_of(block: s_tir.SBlock, pattern: AccessPattern) -> Steps:
    """Each operand's stride along each loop, from the definition's own indices.

    Parameters
    ----------
    block
        The block of a leaf.
    pattern
        The workload's access pattern.

    Returns
    -------
    Mapping[str, tuple of Step]
        For ``cond``, ``then``, ``else`` and ``out``: elements from one iteration to the next of
        each loop of the pattern, outermost loop first.

    Raises
    ------
    SelectError
        If the block is not a Select, an index is neither a loop's variable nor 0, an operand does
        not move evenly along the axes of a loop, or out is not C-contiguous.
    """
    loads = operands_of(block.body)
    steps = {operand: _along_loops(load, block, pattern) for operand, load in loads.items()}
    if steps["out"] != _row_major(block, pattern):
        raise refused(block.body)
    return steps


def refused(statement: Any) -> SelectError:
    """The error for a leaf that no span can replace."""
    text = " ".join(str(statement).split())
    return SelectError(
        f"the leaf {text!r} has no span; expected out[...] = T.Select(cond[...] != "
        f"T.{CONDITION}(0), then[...], else_[...]) with cond of {CONDITION}, then, else_ and out "
        f"of one of {', '.join(CARRIED)}, and every index a loop's or 0"
    )


def _along_loops(
    load: ir.TensorLoad, block: s_tir.SBlock, pattern: AccessPattern
) -> tuple[Step, ...]:
    variables = [axis.var for axis in block.iter_vars]
    steps = [STAYS] * len(variables)
    shape = [_dim(extent) for extent in load.source.ty.shape]
    for k, index in enumerate(load.indices):
        if isinstance(index, tirx.IntImm) and index.value == 0:
            continue
        axis = next((i for i, var in enumerate(variables) if index.same_as(var)), None)
        if axis is None or steps[axis] != STAYS:
            raise refused(block.body)
        steps[axis] = _product(shape[k + 1 :])
    for loop in pattern.loops:
        for outer, inner in pairwise(loop.axes):
            if steps[outer] != _product([*steps[inner], _extent(block, inner)]):
                raise refused(block.body)
    return tuple(steps[loop.axes[-1]] for loop in pattern.loops)


def _row_major(block: s_tir.SBlock, pattern: AccessPattern) -> tuple[Step, ...]:
    """The steps of an operand that moves along every loop."""
    extents = [[_extent(block, axis) for axis in loop.axes] for loop in pattern.loops]
    return tuple(
        _product(dim for behind in extents[k + 1 :] for dim in behind) for k in range(len(extents))
    )


def _extent(block: s_tir.SBlock, axis: int) -> Dim:
    return _dim(block.iter_vars[axis].dom.extent)


def _dim(extent: ir.Expr) -> Dim:
    return extent.value if isinstance(extent, tirx.IntImm) else str(extent.name)


def _product(dims: Iterable[Dim]) -> Step:
    """A product of dims as a step: its number unless that is 1, and its names in order."""
    factors = list(dims)
    literal = math.prod(dim for dim in factors if isinstance(dim, int))
    names = sorted(dim for dim in factors if isinstance(dim, str))
    return STAYS if literal == 0 else (*([literal] if literal != 1 else []), *names)
