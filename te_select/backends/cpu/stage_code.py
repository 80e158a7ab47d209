"""Lowering of stages: from their definition to raw C functions."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tvm import tirx
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
    flat = lowering.to_loops(definition(stage))
    *buffers, flags = flat.params
    raw = lowering.raw(buffers, flat.body, symbol, ["n"], [flags])
    return raw.with_attr("tirx.noalias", True)
