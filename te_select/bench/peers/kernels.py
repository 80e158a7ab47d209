"""Peers that get loops instead of an operator: Halide and IREE.

Both get the merged loops, as somebody who wants speed would write them. Elements are plain words,
because neither has all of the element types.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.bench.peers.base import Call, Peer, UnsupportedError, load
from te_select.operator.access import LARGEST_INTEGER, AccessPattern, access_pattern
from te_select.operator.workload import Workload
from te_select.timing.cores import threads
from te_select.timing.inputs import Operands
from te_select.verify.reference import Array

_VECTOR = 64  # bytes; Halide splits it if the CPU's vectors are shorter
_CHUNK = 1 << 15  # elements of one Halide task, if there is only one loop
_TASKS = 16  # Halide tasks per thread, if there are more loops


class Halide(Peer):
    """A Halide pipeline: vectors of 64 bytes on the innermost loop, tasks on the outer ones."""

    name = "halide"
    modules = ("halide",)
    install = "halide"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Compile the pipeline, and bind a buffer to each of its operands."""
        hl = load("halide")
        pattern, _ = _merged(sets[0])
        if not pattern.loops:
            raise UnsupportedError("the pipeline has no loop")
        compiled = _pipeline(hl, pattern)

        def bind(arrays: tuple[Array, ...]) -> Call:
            # Halide knows 8-byte words only as unsigned long long, not as unsigned long.
            buffers = [
                hl.Buffer(array.view("Q") if pattern.width == LARGEST_INTEGER and k else array)
                for k, array in enumerate(map(np.atleast_1d, arrays))
            ]
            return lambda: compiled(*buffers)

        return [bind(_merged(operands)[1]) for operands in sets]


def _merged(operands: Operands) -> tuple[AccessPattern, tuple[Array, Array, Array, Array]]:
    """The merged loops, and the operands as plain bytes and words with an axis for each loop.

    Operands lack their broadcast axes; out has all of them.
    """
    pattern = access_pattern(operands.workload)
    word = np.dtype(f"u{pattern.width}")

    def shaped(operand: Array, letter: str, dtype: np.dtype[Any]) -> Array:
        shape = [loop.bound({}) for loop in pattern.loops if letter in loop.movers + "o"]
        return operand.reshape(-1).view(dtype).reshape(shape)

    return pattern, (
        shaped(operands.cond, "c", np.dtype(np.uint8)),
        shaped(operands.then, "t", word),
        shaped(operands.else_, "e", word),
        shaped(operands.out, "o", word),
    )


def _pipeline(hl: Any, pattern: AccessPattern) -> Any:
    """A callable of cond, then, else and out."""
    loops = [hl.Var(f"i{k}") for k in range(len(pattern.loops))]
    word = hl.UInt(8 * pattern.width)
    arguments, elements = [], []
    for letter, kind in (("c", hl.UInt(8)), ("t", word), ("e", word)):
        # Halide counts dims from the innermost.
        moving = [
            var
            for var, loop in zip(reversed(loops), reversed(pattern.loops), strict=True)
            if letter in loop.movers
        ]
        image = hl.ImageParam(kind, max(1, len(moving)), letter)
        arguments.append(image)
        elements.append(image[tuple(moving)] if moving else image[0])

    # The algorithm.
    cond, then, else_ = elements
    select = hl.Func("select")
    select[tuple(reversed(loops))] = hl.select(cond != 0, then, else_)

    # How to schedule it.
    extents = [loop.bound({}) for loop in pattern.loops]
    for var, extent in zip(loops, extents, strict=True):
        select.bound(var, 0, extent)
    lanes = _VECTOR // pattern.width
    inner, outer = loops[-1], loops[0]
    if len(loops) == 1 and extents[0] > _CHUNK:
        outer, inner = hl.Var("outer"), hl.Var("inner")
        select.split(loops[0], outer, inner, _CHUNK, hl.TailStrategy.ShiftInwards)
        select.parallel(outer)
    elif len(loops) > 1:
        for middle in loops[1:-1]:
            select.fuse(middle, outer, outer)
        if math.prod(extents) > _CHUNK:
            rows = max(1, math.prod(extents[:-1]) // (_TASKS * threads()))
            select.parallel(outer, rows, hl.TailStrategy.GuardWithIf)
    if extents[-1] >= lanes:
        select.vectorize(inner, lanes, hl.TailStrategy.GuardWithIf)
    target = hl.get_jit_target_from_environment()
    return select.compile_to_callable(arguments, target)


class Iree(Peer):
    """A linalg.generic compiled by IREE; the runtime allocates the output."""

    name = "iree"
    modules = ("iree.compiler", "iree.runtime")
    install = "iree-base-compiler iree-base-runtime"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Compile for this CPU, and copy the operands to the runtime's buffers."""
        pattern, _ = _merged(sets[0])
        if not pattern.loops:
            raise UnsupportedError("the program has no loop")
        compiled = load("iree.compiler").compile_str(
            _mlir(pattern),
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host"],
        )
        runtime = load("iree.runtime")
        config = runtime.Config("local-task")
        module = runtime.load_vm_module(
            runtime.VmModule.copy_buffer(config.vm_instance, compiled), config
        )

        def bind(arrays: tuple[Array, ...]) -> Call:
            moved = [runtime.asdevicearray(config.device, array) for array in arrays[:3]]
            return lambda: module.select(*moved)

        return [bind(_merged(operands)[1]) for operands in sets]

    def result(self, value: Any, operands: Operands) -> Array:
        """The array that was allocated, in the element type of the workload."""
        out = operands.out
        # `to_host` maps memory that is freed together with the value.
        return np.array(value.to_host()).reshape(-1).view(out.dtype).reshape(out.shape)


def _mlir(pattern: AccessPattern) -> str:
    """The loops as MLIR; cond is bytes, because IREE's own booleans are bytes too."""
    word = f"i{8 * pattern.width}"
    loops = [f"d{k}" for k in range(len(pattern.loops))]
    maps, types = [], []
    for letter, element in (("c", "i8"), ("t", word), ("e", word), ("o", word)):
        moving = [k for k, loop in enumerate(pattern.loops) if letter in loop.movers + "o"]
        maps.append(f"affine_map<({', '.join(loops)}) -> ({', '.join(loops[k] for k in moving)})>")
        shape = "".join(f"{pattern.loops[k].bound({})}x" for k in moving)
        types.append(f"tensor<{shape}{element}>")
    cond, then, else_, out = types
    kinds = ", ".join('"parallel"' for _ in loops)
    return f"""
func.func @select(%c: {cond}, %t: {then}, %e: {else_}) -> {out} {{
  %empty = tensor.empty() : {out}
  %out = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{kinds}]}}
      ins(%c, %t, %e : {cond}, {then}, {else_}) outs(%empty : {out}) {{
    ^bb0(%ci: i8, %ti: {word}, %ei: {word}, %old: {word}):
      %zero = arith.constant 0 : i8
      %true = arith.cmpi ne, %ci, %zero : i8
      %chosen = arith.select %true, %ti, %ei : {word}
      linalg.yield %chosen : {word}
  }} -> {out}
  return %out : {out}
}}
"""
