"""The peer that gets loops instead of an operator: Halide.

It gets the merged loops, as somebody who wants speed would write them. Elements are plain words,
because it lacks some of the element types.
"""

import math
from collections.abc import Iterator, Sequence
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
        pattern = access_pattern(workload)
        if not pattern.loops:
            raise UnsupportedError("the pipeline has no loop")
        compiled = _pipeline(hl, pattern)

        def bind(operands: Operands) -> Call:
            buffers = [hl.Buffer(np.atleast_1d(array)) for array in _merged(operands, pattern)]
            return lambda: compiled(*buffers)

        return [bind(operands) for operands in sets]


def _merged(operands: Operands, pattern: AccessPattern) -> Iterator[Array]:
    """The operands as plain bytes and words with an axis for each merged loop.

    Operands lack their broadcast axes; out has all of them.
    """
    # Halide knows 8-byte words only as unsigned long long, not as unsigned long.
    word = "Q" if pattern.width == LARGEST_INTEGER else f"u{pattern.width}"
    kinds = ("u1", word, word, word)
    for letter, array, kind in zip("cteo", operands.arrays(), kinds, strict=True):
        shape = [loop.bound({}) for loop in pattern.loops if letter in loop.movers + "o"]
        yield array.reshape(-1).view(kind).reshape(shape)


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
