"""What the span kernels of CPUs have in common: their parameters, and how they end and store.

A span is ``span(out, cond, then, else, n, inner, flags)``: n rows of ``inner`` elements,
row-major. How each operand moves is one letter:

    f  with every element        value of row r, column x is  operand[r * inner + x]
    o  with the rows only                                     operand[r]
    i  within a row only                                      operand[x]
    s  not at all                                             operand[0]

Each file writes one sort of them as LLVM IR: `plain_span` rows of one element, `short_rows` rows
that share vectors, `rows_end_to_end` longer ones, `rows_of_named_length` those whose length a call
tells. `span_source` knows which is which.
Nothing is assumed to be aligned, tails take vectors of half as many lanes and so on, no access is
masked, and the text uses portable vector types only. ``flags`` are those of
`te_select.schedules.cpu.flags`. Where they ask for it, whole vectors are stored past the cache,
from the first one on that is aligned; where none can be, the stores are plain. The caller fences
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from te_select.schedules.cpu.flags import STREAM
from te_select.schedules.cpu.llvm_ir import IRWriter

_SYMBOL = re.compile(
    r"te_select_span_w(\d+)_([fois])([fois])([fois])_i(\d+)_v(\d+)_u(\d+)"
    r"(_nt)?(_sk)?(_end_to_end)?(_forwards)?(_reduced)?"
)
ARGUMENTS = "ptr %out, ptr %cond, ptr %then, ptr %else, i64 %n, i64 %inner, i64 %flags"
BATCH_BYTES = 256  # loaded before any is stored; 8 of the 16 registers of AVX2
METADATA = "!0 = !{i32 1}\n"  # what stores past the cache refer to; it stands once in a text
STREAMED_BYTES = 1024  # at 128 bytes a span streaming took 1.5 times as long, at 4096 0.64

Value: TypeAlias = tuple[str, str, int, int]  # what to store, first row, lanes, which vector
Group: TypeAlias = Callable[[str, int], list[Value]]  # of a first row and a number of rows


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
        Elements per row; 1 for a plain span, 0 where a call decides.
    vector_bytes
        Bytes per vector of elements.
    unroll
        Vectors in flight per iteration of a plain span's main loop.
    streaming
        Whether the span can store past the cache, where its flags ask for it.
    skipping
        Whether a plain span can look at the cond of a whole iteration first, and leave a side that
        none of it selects unread, where its flags ask for it.
    end_to_end
        Whether rows, of two vectors or more, are walked end to end.
    forwards
        Whether a span that is not end to end never walks backwards.
    reduces
        Whether a skipping span tells by the largest and the smallest byte of a block of cond what
        is selected, and not by the bits of its mask.
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

    @property
    def lanes(self) -> int:
        """Elements per vector."""
        return self.vector_bytes // self.width

    @property
    def symbol(self) -> str:
        """The function's name; it holds every parameter, since equal symbols must be equal code."""
        moves = self.cond + self.then + self.else_
        return (
            f"te_select_span_w{self.width}_{moves}_i{self.inner}"
            f"_v{self.vector_bytes}_u{self.unroll}"
            f"{'_nt' if self.streaming else ''}{'_sk' if self.skipping else ''}"
            f"{'_end_to_end' if self.end_to_end else ''}"
            f"{'_forwards' if self.forwards else ''}{'_reduced' if self.reduces else ''}"
        )

    def in_words(self) -> str:
        """What it computes, as lines of Python for whoever reads the function that calls it."""
        at = {"f": "r * inner + x", "o": "r", "i": "x", "s": "0"}
        cond, then, else_ = (at[letter] for letter in (self.cond, self.then, self.else_))
        how = [f"elements of {self.width} bytes", f"vectors of {self.vector_bytes} bytes"]
        how += [f"{self.unroll} in flight"] if self.inner == 1 else []
        how += ["rows end to end"] if self.end_to_end else []
        how += ["past the cache where flags & 1"] if self.streaming else []
        how += [
            "a side that a block of cond does not select unread where flags & 4"
        ] * self.skipping
        how += (
            []
            if self.forwards or self.end_to_end
            else ["backwards where flags & 8 and out lies just ahead of an input"]
        )
        rows = f", here {self.inner}" if self.inner else ""
        return (
            f"{self.symbol}(out, cond, then, else_, n, inner, flags):\n"
            f"  for r in range(n):\n    for x in range(inner):  # rows of inner elements{rows}\n"
            f"      out[r * inner + x] = then[{then}] if cond[{cond}] != 0 else else_[{else_}]\n"
            + "\n".join(f"  {line}" for line in how)
        )

    @classmethod
    def from_symbol(cls, symbol: str) -> Span:
        """Read the parameters back from a symbol."""
        match = _SYMBOL.fullmatch(symbol)
        if match is None:
            raise ValueError(f"{symbol!r} is not the symbol of a span")
        width, cond, then, else_, inner, vector_bytes, unroll, *flags = match.groups()
        streaming, skipping, end_to_end, forwards, reduces = (flag is not None for flag in flags)
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
        )


class SpanWriter(IRWriter):
    """Writes the LLVM IR of one span."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span
        self.store_past_cache = False

    def begin(self) -> None:
        """Open the function."""
        self.lines.append(
            f"define linkonce_odr void @{self.span.symbol}({ARGUMENTS}) alwaysinline nounwind {{"
        )
        self.start("entry")

    def few(self, first: str, count: str, group: Group) -> None:
        """Cover ``count`` elements from ``first`` on, fewer than a vector has lanes.

        Two vectors of half as many lanes, which may overlap, or two of a quarter, and so on.
        """
        end = self.label()
        lanes = self.span.lanes // 2
        while lanes > 0:
            fits, smaller = self.label(), self.label()
            enough = self.emit(f"icmp uge i64 {count}, {lanes}")
            self.branch(enough, fits, smaller)
            self.start(fits)
            last = self.emit(f"sub i64 {count}, {lanes}")
            last = self.emit(f"add i64 {first}, {last}")
            self.store([*group(first, lanes), *group(last, lanes)])
            self.jump(end)
            self.start(smaller)
            lanes //= 2
        self.jump(end)
        self.start(end)

    def asked(self, flag: int) -> str:
        """Whether the caller has set a flag."""
        return self.emit(f"icmp ne i64 {self.emit(f'and i64 %flags, {flag}')}, 0")

    def bytes_to_line(self) -> str:
        """Bytes from out to the first address that a store past the cache may have."""
        address = self.emit("ptrtoint ptr %out to i64")
        behind = self.emit(f"sub i64 0, {address}")
        return self.emit(f"and i64 {behind}, {self.span.vector_bytes - 1}")

    def start_past_cache(self, can: str, pays: str) -> str:
        """Begin what stores past the cache: where that is asked for, ``can`` be and ``pays``.

        Returns
        -------
        str
            The label of what comes where it is not so.
        """
        past, through = self.label(), self.label()
        asked = self.asked(STREAM)
        worth = self.emit(f"and i1 {asked}, {pays}")
        self.branch(self.emit(f"and i1 {can}, {worth}"), past, through)
        self.start(past)
        return through

    def store(self, values: Sequence[Value]) -> None:
        """Write the stores of what a group gave."""
        how = "align 1"
        if self.store_past_cache:
            how = f"align {self.span.vector_bytes}, !nontemporal !0"
        for value, base, lanes, j in values:
            pointer = self.pointer("out", self.span.width, base, j * lanes)
            self.line(f"store <{lanes} x i{8 * self.span.width}> {value}, ptr {pointer}, {how}")
