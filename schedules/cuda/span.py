"""Span kernels for CUDA, in CUDA C++: they take the place of a schedule's innermost loops.

The kernels themselves are templates (``span.cuh``, on ``vectors.cuh``). This module writes the part
that depends on the workload: how each operand moves, and how a flat index becomes the offset of
each operand.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from te_select.operator.access import AccessPattern, product
from te_select.schedules.leaf import letters

VECTOR_BYTES = 16  # bytes; the widest load and store that every arch has
_FUNCTION = "__device__ __forceinline__"
_MOVES = {"f": "FLAT", "i": "INNER", "o": "OUTER", "p": "PAIR", "s": "FIXED"}


@dataclass(frozen=True)
class Span:
    """One span kernel.

    How an operand moves along all loops is one letter of `te_select.schedules.leaf.letters`, or
    ``"p"``, a broadcast 16-byte element: it moves along an innermost loop of two 8-byte halves
    only.

    Parameters
    ----------
    width
        Bytes per element of then, else and out: 1, 2, 4 or 8.
    cond, then, else_
        How the operand moves.
    streaming
        Whether operands that are read once, and out, are the first to leave the caches.
    skipping
        Whether a vector of a side that cond does not select is left unread.
    """

    width: int
    cond: str
    then: str
    else_: str
    streaming: bool
    skipping: bool

    @property
    def lanes(self) -> int:
        """Elements per vector."""
        return VECTOR_BYTES // self.width

    @property
    def symbol(self) -> str:
        """The span's name; it holds every parameter."""
        flags = f"{'_cs' if self.streaming else ''}{'_sk' if self.skipping else ''}"
        return f"te_select_span_w{self.width}_{self.cond}{self.then}{self.else_}{flags}"


def moves(pattern: AccessPattern) -> list[str]:
    """How cond, then and else move, as the letters of a `Span`."""
    is_half = pattern.width == VECTOR_BYTES // 2
    pair = [loop for loop in pattern.loops[-1:] if is_half and loop.dims == (2,)]
    found = letters(pattern.loops)
    for k, operand in enumerate("cte"):
        if pair and pair == [loop for loop in pattern.loops if operand in loop.movers]:
            found[k] = "p"
    return found


@functools.cache
def prelude() -> str:
    """Read the templates that every kernel needs, once per translation unit."""
    here = Path(__file__).parent
    return "\n".join(
        (here / name).read_text(encoding="utf-8") for name in ("vectors.cuh", "span.cuh")
    )


def kernel(
    span: Span,
    symbol: str,
    pattern: AccessPattern,
    dim_names: Sequence[str],
    tiling: tuple[int, int, bool],
) -> str:
    """Write the kernel of one workload, without the prelude.

    Parameters
    ----------
    span
        The span that takes the leaf's place.
    symbol
        The kernel's name. Its parameters are cond, then, else_, out, the named dims, and operands
        passed by value.
    pattern
        The workload's access pattern.
    dim_names
        The named dims, in the order of their parameters.
    tiling
        Threads per block, vectors per thread, and whether a block may take more than one tile.

    Returns
    -------
    str
        CUDA C++: a class that describes the loops, and ``extern "C" __global__`` ``symbol``.
    """
    threads, vectors, strided = tiling
    names = {name: f"n{k}" for k, name in enumerate(dim_names)}
    moved = (span.cond, span.then, span.else_)
    rows = not {"i", "o", "p"}.isdisjoint(moved)
    inner = pattern.loops[-1].extent if pattern.loops else 1
    offsets = [
        _offset(operand, letter, pattern, names)
        for operand, letter in zip("cte", moved, strict=True)
    ]
    known_whole = not rows or (inner is not None and inner % span.lanes == 0)
    constants = {
        "bool STREAM": span.streaming,
        "bool SKIP": span.skipping,
        "bool STRIDED": strided,
        "bool NAMED": any(loop.extent is None for loop in pattern.loops),
        "bool WHOLE_ROWS": known_whole or inner is None,
        "bool BROKEN_ROWS": not known_whole,
    }
    lines = [
        f"static constexpr int WIDTH = {span.width}, THREADS = {threads}, VECTORS = {vectors};",
        *(f"static constexpr {name} = {str(is_so).lower()};" for name, is_so in constants.items()),
        *(f"te_select::u64 {name};" for name in names.values()),
        "",
        f"{_FUNCTION} static constexpr te_select::Moves moves(te_select::Operand operand) {{",
        f"  return operand == te_select::COND ? te_select::{_MOVES[span.cond]}",
        f"         : operand == te_select::THEN ? te_select::{_MOVES[span.then]}",
        f"                                      : te_select::{_MOVES[span.else_]};",
        "}",
        *_extents(pattern, names),
        *_position(symbol, pattern, rows, offsets),
    ]
    body = "\n".join(f"  {line}" if line else "" for line in lines)
    sizes = "".join(f", long long {name}" for name in names.values())
    given = ", ".join(f"static_cast<te_select::u64>({name})" for name in names.values())
    return f"""
struct {symbol}_loops {{
{body}
}};

extern "C" __global__ void __launch_bounds__({threads})
{symbol}(const void* cond, const void* then, const void* else_, void* out{sizes},
    const te_select_scalars scalars) {{
  te_select::select({symbol}_loops{{{given}}}, {{{{cond, then, else_}}, out, scalars}});
}}
"""


def _extents(pattern: AccessPattern, names: Mapping[str, str]) -> list[str]:
    """The loops' extents, their product, and that of the innermost loop."""
    factors = [
        " * ".join(names[dim] if isinstance(dim, str) else f"{dim}ull" for dim in loop.dims)
        for loop in pattern.loops
    ]
    values = {f"extent{k}": factor for k, factor in enumerate(factors)}
    values["total"] = " * ".join(factors) or "1"
    values["inner"] = factors[-1] if factors else "1"
    return [
        f"{_FUNCTION} constexpr te_select::u64 {name}() const {{ return {value}; }}"
        for name, value in values.items()
    ]


def _position(symbol: str, pattern: AccessPattern, rows: bool, offsets: Sequence[str]) -> list[str]:
    """A class that converts a flat index to one index per loop, and these to offsets."""
    indices = [f"i{k}" for k in range(len(pattern.loops))] if rows else []
    split = [
        f"    i{k} = f % static_cast<Index>(loops.extent{k}()), "
        f"f /= static_cast<Index>(loops.extent{k}());"
        for k in range(len(indices) - 1, 0, -1)
    ]
    carry = [
        f"    if (++i{k} != static_cast<Index>(loops.extent{k}())) return;\n      i{k} = 0;"
        for k in range(len(indices) - 1, 0, -1)
    ]
    return [
        "",
        "template <class Index>",
        "struct Position {",
        f"  const {symbol}_loops& loops;",
        f"  Index {', '.join(['flat', *indices])};",
        "",
        f"  {_FUNCTION} Position(const {symbol}_loops& k, Index f) : loops(k), flat(f) {{",
        *split,
        *(["    i0 = f;"] if indices else []),
        "  }",
        f"  {_FUNCTION} void step() {{",
        "    ++flat;",
        *carry,
        *(["    ++i0;"] if indices else []),
        "  }",
        "  template <te_select::Operand OPERAND>",
        f"  {_FUNCTION} Index offset() const {{",
        *(
            f"    if constexpr (OPERAND == te_select::{name}) return {offset};"
            for name, offset in zip(("COND", "THEN", "ELSE"), offsets, strict=True)
        ),
        "  }",
        "};",
    ]


def _offset(operand: str, letter: str, pattern: AccessPattern, names: Mapping[str, str]) -> str:
    """The offset of an operand's element, over the flat index or the indices of the loops."""
    if letter in "fs":
        return "flat" if letter == "f" else "0"
    offset = ""
    for k, loop in enumerate(pattern.loops):
        if operand not in loop.movers:
            continue
        if offset:
            factors = " * ".join(
                f"loops.{names[dim]}" if isinstance(dim, str) else f"{dim}ull"
                for dim in product(loop.dims)
            )
            offset = f"({offset}) * static_cast<Index>({factors}) + "
        offset += f"i{k}"
    return offset
