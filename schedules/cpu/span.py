"""What all spans have in common: their parameters, how they end, and how they store.

A span is a kernel ``span(out, cond, then, else, n, inner, flags)`` for n rows of ``inner``
elements, row-major. One letter says how an operand moves:

    f  with every element        value of row r, column x is  operand[r * inner + x]
    o  with the rows only                                     operand[r]
    i  within a row only                                      operand[x]
    s  not at all                                             operand[0]

Each kind of rows has a file that writes LLVM IR: `plain_span` for rows of one element, `short_rows`
for rows that share vectors, `rows_end_to_end` for longer rows, `rows_of_named_length` for rows
whose length a call says. `span_source` chooses the file.

- Operands may lie at any address.
- No access is masked: a rest takes vectors of half as many lanes, then of a quarter, and so on.
- The text uses portable vector types only.
- ``flags`` are those of `te_select.schedules.cpu.flags`. If they ask for it, whole vectors are
  stored past the cache from the first aligned one on; if no vector can be aligned, stores are
  plain. The caller fences them.
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
BATCH_BYTES = 256  # loaded before any are stored; they take 8 of the 16 registers of AVX2
METADATA = "!0 = !{i32 1}\n"  # stores past the cache refer to it; a text has it once
# Of a span that stores past the cache. Its time, as a multiple of that with plain stores, was 1.5
# for spans of 128 bytes and 0.64 for spans of 4096 bytes (Emerald Rapids).
STREAMED_BYTES = 1024

Value: TypeAlias = tuple[str, str, int, int]  # what to store, first row, lanes, which vector
Group: TypeAlias = Callable[[str, int], list[Value]]  # from a first row and a number of rows


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
    def in_flight(self) -> int:
        """Vectors of elements that an iteration takes; short rows take one for each column."""
        return self.unroll if self.inner == 1 else 1

    @property
    def kind(self) -> str:
        """Which rows it walks; `span_source` says which file writes it."""
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
        )

    def in_words(self) -> str:
        """What the span computes, as lines of Python, for readers of the function that calls it."""
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
        """Cover ``count`` elements from ``first`` on; a vector has more lanes than that.

        It takes two vectors of half as many lanes, which may overlap, or two of a quarter, and so
        on.
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
        """Begin the block that stores past the cache.

        It runs if the flags ask for it and both i1 values are true: ``can``, some vector is
        aligned; ``pays``, the span is long enough.

        Returns
        -------
        str
            The label of the block that runs otherwise. The caller starts it.
        """
        past, through = self.label(), self.label()
        asked = self.asked(STREAM)
        worth = self.emit(f"and i1 {asked}, {pays}")
        self.branch(self.emit(f"and i1 {can}, {worth}"), past, through)
        self.start(past)
        return through

    def store(self, values: Sequence[Value]) -> None:
        """Write the stores of a group's values."""
        how = "align 1"
        if self.store_past_cache:
            how = f"align {self.span.vector_bytes}, !nontemporal !0"
        for value, base, lanes, j in values:
            pointer = self.pointer("out", self.span.width, base, j * lanes)
            self.line(f"store <{lanes} x i{8 * self.span.width}> {value}, ptr {pointer}, {how}")
