"""Asks a scheduled function where it reads and writes, by computing its own indices."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import tvm_ffi
from tvm import ir, s_tir, tirx

from te_select.backends.select_leaf import operands_of
from te_select.schedules.leaf import leaves

_OPERATORS = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.FloorDiv: "//",
    tirx.FloorMod: "%",
    tirx.LT: "<",
    tirx.LE: "<=",
    tirx.EQ: "==",
    tirx.And: "and",
}


def python(expr: Any) -> str:
    """An expression of TIR over integers, in Python over the names of its variables."""
    if isinstance(expr, ir.Var):
        return str(expr.name)
    if isinstance(expr, tirx.IntImm):
        return str(expr.value)
    if isinstance(expr, tirx.Cast):
        return python(expr.value)
    return f"({python(expr.a)} {_OPERATORS[type(expr)]} {python(expr.b)})"


def offsets(
    func: tirx.PrimFunc, sizes: Mapping[str, int], points: int, seed: int = 0
) -> Iterator[dict[str, int]]:
    """Where a scheduled function reads and writes at points of its loops, drawn at random.

    Yields
    ------
    dict
        For ``cond``, ``then``, ``else`` and ``out``: the offset in elements, as the function's own
        indices and the shapes of its buffers say it. Points beyond the end are left out; half of
        the loops are at their first iteration, so that few are.
    """
    random = Random(seed)
    loops: list[tirx.For] = []
    tvm_ffi.structural_walk(func.body, (tirx.For, loops.append), order="pre")
    extents = {loop.loop_var.name: eval(python(loop.extent), dict(sizes)) for loop in loops}
    code = compile(_program(func), "<indices>", "exec")
    for _ in range(points):
        at: dict[str, Any] = dict(sizes)
        for name, extent in extents.items():
            at[name] = random.choice((0, random.randrange(extent)))
        exec(code, at)
        if at["inside"]:
            yield at["found"]


def _program(func: tirx.PrimFunc) -> str:
    """Python that computes the offsets from the loops' variables."""
    (leaf,) = leaves(func.body)
    body = leaf.body
    while isinstance(body, tirx.For):
        body = body.body
    assert isinstance(body, s_tir.SBlockRealize)
    lines = [f"inside = {python(body.predicate)}", "found = {}"]
    for axis, index in zip(body.block.iter_vars, body.iter_values, strict=True):
        lines.append(f"{axis.var.name} = {python(index)}")
    for operand, load in operands_of(body.block.body).items():
        offset = "0"
        for index, extent in zip(load.indices, load.source.ty.shape, strict=True):
            offset = f"({offset} * {python(extent)} + {python(index)})"
        lines.append(f"found[{operand!r}] = {offset}")
    return "\n".join(lines)
