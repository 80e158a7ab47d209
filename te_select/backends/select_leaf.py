"""Reads the leaf of a scheduled function, and refuses it if it is not exactly a Select.

A lowering replaces a leaf by a span, and a span always computes a Select. So everything that a span
assumes is read from the definition here.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tvm import ir, s_tir, tirx

from te_select.operator.access import STAYS, AccessPattern, Step, product
from te_select.operator.broadcast import Dim
from te_select.schedules.leaf import CARRIED, CONDITION, is_zero, parts_of, refused

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
    loads = parts_of(store)
    condition = loads.get("cond")
    if not isinstance(condition, tirx.NE) or not is_zero(condition.b):
        raise refused(store)
    loads["cond"] = condition.a
    if not all(isinstance(load, ir.TensorLoad) for load in loads.values()):
        raise refused(store)
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
        If the block is not a Select, an index is neither a loop's variable nor 0, or an operand
        does not move as the pattern has it: along its loops alone, C-contiguous.
    """
    loads = operands_of(block.body)
    steps = {operand: _along_loops(load, block, pattern) for operand, load in loads.items()}
    if steps != {operand: pattern.steps(operand[0]) for operand in loads}:
        raise refused(block.body)
    return steps


def _along_loops(
    load: ir.TensorLoad, block: s_tir.SBlock, pattern: AccessPattern
) -> tuple[Step, ...]:
    variables = [axis.var for axis in block.iter_vars]
    steps = [STAYS] * len(variables)
    shape = [_dim(extent) for extent in load.source.ty.shape]
    for k, index in enumerate(load.indices):
        if is_zero(index):
            continue
        axis = next((i for i, var in enumerate(variables) if index.same_as(var)), None)
        if axis is None or steps[axis] != STAYS:
            raise refused(block.body)
        steps[axis] = product(shape[k + 1 :])
    for loop in pattern.loops:
        for outer, inner in pairwise(loop.axes):
            extent = _dim(block.iter_vars[inner].dom.extent)
            if steps[outer] != product([*steps[inner], extent]):
                raise refused(block.body)
    return tuple(steps[loop.axes[-1]] for loop in pattern.loops)


def _dim(extent: ir.Expr) -> Dim:
    return extent.value if isinstance(extent, tirx.IntImm) else str(extent.name)
