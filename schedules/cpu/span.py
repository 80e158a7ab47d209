"""The parameters of a span, which its name holds, and how its operands move.

A span selects n rows of ``inner`` elements, row-major. One letter says how an operand moves:

    f  with every element        value of row r, column x is  operand[r * inner + x]
    o  with the rows only                                     operand[r]
    i  within a row only                                      operand[x]
    s  not at all                                             operand[0]

Each kind of rows has a file that writes TIR: `plain_span` for rows of one element, `short_rows` for
rows that share vectors, `rows_end_to_end` for longer rows, `rows_of_named_length` for rows whose
length a call says. `statements` chooses the file.

- Operands may lie at any address.
- No access is masked: a rest takes vectors of half as many lanes, then of a quarter, and so on.
- Vectors are of any width that LLVM knows.
- Flags are those of `te_select.schedules.cpu.flags`. If they ask for it, whole vectors are stored
  past the cache from the first aligned one on; if no vector can be aligned, stores are plain. The
  caller fences them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SYMBOL = re.compile(
    r"te_select_span_w(\d+)_([fois])([fois])([fois])_i(\d+)_v(\d+)_u(\d+)"
    r"(_nt)?(_sk)?(_end_to_end)?(_forwards)?(_reduced)?(_reloaded)?"
)


@dataclass(frozen=True)
class Span:
    """One span kernel.

    Parameters
    ----------
    width
        Bytes per element of then, else and out: 1, 2, 4 or 8.
    cond, then, else_
        How the operand moves: ``"f"``, ``"o"``, ``"i"`` or ``"s"``.
    inner
        Elements per row; 1 for a plain span, 0 if the call says how many.
    vector_bytes
        Bytes per vector of elements.
    unroll
        Vectors in flight per iteration of a plain span's main loop.
    streaming
        Whether the span can store past the cache. It does so if its flags ask for it.
    skipping
        Whether a plain span can look at the cond of a whole iteration first, and not read a side
        that is not selected. It does so if its flags ask for it.
    end_to_end
        Whether rows are walked end to end; they have at least two vectors.
    forwards
        Whether a span that is not end to end never walks backwards.
    reduces
        Whether a skipping span tests a block of cond by its largest and its smallest byte, instead
        of by the bits of its mask.
    reloads
        Whether a skipping span loads a block of cond again, vector by vector, after its test.
    """

    width: int
    cond: str
    then: str
    else_: str
    inner: int
    vector_bytes: int
    unroll: int
    streaming: bool
    skipping: bool
    end_to_end: bool = False
    forwards: bool = False
    reduces: bool = False
    reloads: bool = False

    @property
    def lanes(self) -> int:
        """Elements per vector."""
        return self.vector_bytes // self.width

    @property
    def in_flight(self) -> int:
        """Unroll factor: vectors per iteration; for short rows, groups of ``inner`` vectors."""
        return self.unroll if self.inner == 1 else 1

    @property
    def kind(self) -> str:
        """Which rows it walks; `statements` says which file writes it."""
        if self.end_to_end:
            return "rows end to end"
        return {0: "rows of named length", 1: "plain run"}.get(self.inner, "short rows")

    @property
    def symbol(self) -> str:
        """The function's name. It holds every parameter: equal names must mean equal code."""
        moves = self.cond + self.then + self.else_
        return (
            f"te_select_span_w{self.width}_{moves}_i{self.inner}"
            f"_v{self.vector_bytes}_u{self.unroll}"
            f"{'_nt' if self.streaming else ''}{'_sk' if self.skipping else ''}"
            f"{'_end_to_end' if self.end_to_end else ''}"
            f"{'_forwards' if self.forwards else ''}{'_reduced' if self.reduces else ''}"
            f"{'_reloaded' if self.reloads else ''}"
        )

    @classmethod
    def from_symbol(cls, symbol: str) -> Span:
        """Read the parameters back from a symbol."""
        match = _SYMBOL.fullmatch(symbol)
        if match is None:
            raise ValueError(f"{symbol!r} is not the symbol of a span")
        width, cond, then, else_, inner, vector_bytes, unroll, *flags = match.groups()
        streaming, skipping, end_to_end, forwards, reduces, reloads = (
            flag is not None for flag in flags
        )
        return cls(
            width=int(width),
            cond=cond,
            then=then,
            else_=else_,
            inner=int(inner),
            vector_bytes=int(vector_bytes),
            unroll=int(unroll),
            streaming=streaming,
            skipping=skipping,
            end_to_end=end_to_end,
            forwards=forwards,
            reduces=reduces,
            reloads=reloads,
        )
