"""Lowering of stages: from their definition to raw C functions."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tvm import IRModule, ir, tirx, transform
from tvm.target import Target

from te_select.backends.cpu import lowering
from te_select.operator.stage_definition import definition
from te_select.operator.stages import Stage


def write(
    stages: Sequence[Stage], symbol: Callable[[Stage], str], target: Target, path: Path
) -> None:
    """Write an object file with the functions of stages, whose names `symbol` tells."""
    functions = [lower(stage, symbol(stage)) for stage in stages]
    lowering.build(functions, target).write_to_file(str(path), "o")


def lower(stage: Stage, symbol: str) -> tirx.PrimFunc:
    """Lower a stage to ``int32_t symbol(void* source, void* made, int64_t n, int64_t flags)``.

    It is one serial loop, which LLVM vectorizes. A loop that is split and vectorized here had 2 to
    4 times the code, and was slower (Zen 5).
    """
    func = definition(stage)
    to_loops = transform.Sequential([make() for make in lowering.TO_LOOPS])
    flat = to_loops(IRModule({"main": func}))["main"]
    *buffers, flags = flat.params
    pointers = [ir.Var(f"{each.name}_data", ir.PointerType(each.ty.dtype)) for each in buffers]
    both = zip(buffers, pointers, strict=True)
    declared = [tirx.DeclBuffer(buffer, data=pointer) for buffer, pointer in both]
    n = buffers[-1].ty.shape[0]
    attrs = {"global_symbol": symbol, "calling_conv": 2, "tirx.noalias": True}
    body = tirx.SeqStmt([*declared, flat.body])
    return tirx.PrimFunc([*pointers, n, flags], body, ir.PrimType("int32")).with_attr(attrs)
