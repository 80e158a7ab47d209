"""Span kernels for x86, as LLVM IR: the leaf that a schedule's innermost loops become.

A span is ``span(out, cond, then, else, n, inner, stream)``: n rows of ``inner`` elements,
row-major; n is known at run time, inner when the span is made. A plain span has rows of one
element. How each operand moves is one letter:

    f  with every element        value of row r, column x is  operand[r * inner + x]
    o  with the rows only                                     operand[r]
    i  within a row only                                      operand[x]
    s  not at all                                             operand[0]

Rows are taken ``lanes`` at a time, which makes ``inner`` vectors whatever inner is: no row is too
short for a vector. What is left at the end is done by a last vector that overlaps the one before
it (writing the same bits again), so there is no scalar tail and no masked access. Nothing is
assumed to be aligned. Several vectors are loaded before any is stored, and where out lies just
ahead of an input, the walk is backwards (`aliasing_x86`). Where ``stream`` is not 0, whole vectors
are stored past the cache, from the first one on that is aligned; where none can be, the stores are
plain. The caller fences them. The text uses portable vector types only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import ClassVar, TypeAlias

from te_select.schedules.aliasing_x86 import backwards
from te_select.schedules.llvm_ir import IRWriter

_SYMBOL = re.compile(
    r"te_select_span_w(\d+)_([fois])([fois])([fois])_i(\d+)_v(\d+)_u(\d+)(_nt)?(_sk)?"
)
ARGUMENTS = "ptr %out, ptr %cond, ptr %then, ptr %else, i64 %n, i64 %inner, i64 %stream"
BATCH_BYTES = 256  # loaded before any is stored; 8 of the 16 registers of AVX2
STREAMED_ROW_BYTES = 1024  # at 128 bytes a span streaming took 1.5 times as long, at 4096 0.64


_Value: TypeAlias = tuple[str, str, int, int]  # what to store, first row, lanes, which vector
_Group: TypeAlias = Callable[[str, int], list[_Value]]  # of a first row and a number of rows


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
        Elements per row; 1 for a plain span, 0 where a call decides (`named_rows_x86`).
    vector_bytes
        Bytes per vector of elements.
    unroll
        Vectors in flight per iteration of a plain span's main loop.
    streaming
        Whether the span can store past the cache, which its last argument then decides.
    skipping
        Whether a plain span looks at the cond of a whole iteration first, and leaves a side that
        none of it selects unread.
    """

    METADATA: ClassVar[str] = "!0 = !{i32 1}\n"

    width: int
    cond: str
    then: str
    else_: str
    inner: int
    vector_bytes: int
    unroll: int
    streaming: bool
    skipping: bool

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
        )

    @classmethod
    def from_symbol(cls, symbol: str) -> Span:
        """Read the parameters back from a symbol."""
        match = _SYMBOL.fullmatch(symbol)
        if match is None:
            raise ValueError(f"{symbol!r} is not the symbol of a span")
        width, cond, then, else_, inner, vector_bytes, unroll, *flags = match.groups()
        numbers = (int(inner), int(vector_bytes), int(unroll))
        streaming, skipping = (flag is not None for flag in flags)
        return cls(int(width), cond, then, else_, *numbers, streaming, skipping)

    def llvm(self, metadata: bool = True) -> str:
        """The kernel as LLVM IR text; the metadata may stand once in a text."""
        return _Writer(self).text() + (f"\n{self.METADATA}" if metadata else "")


class _Writer(IRWriter):
    """Writes the LLVM IR of one span."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span
        self.store_past_cache = False
        self.backwards = "false"
        self.stays: dict[str, str] = {}
        self.periods: dict[str, list[str]] = {}

    def text(self) -> str:
        span = self.span
        self.lines.append(
            f"define linkonce_odr void @{span.symbol}({ARGUMENTS}) alwaysinline nounwind {{"
        )
        self.start("entry")
        moves = {"cond": (span.cond, 1), "then": (span.then, span.width)}
        moves["else"] = (span.else_, span.width)
        level = [name for name, how in moves.items() if how == ("f", span.width)]
        self.backwards = backwards(self, level, span.width * span.inner)
        if span.cond == "s" and span.inner == 1:
            self._choose_then_copy()
        else:
            self._preload("cond", span.cond, 1)
            self._preload("then", span.then, span.width)
            self._preload("else", span.else_, span.width)
            self._rows(self._select)
        return "\n".join([*self.lines, "}"])

    def _choose_then_copy(self) -> None:
        """Cond is one value: read the side that it selects, and nothing of the other."""
        span = self.span
        byte = self.emit("load i8, ptr %cond, align 1")
        chosen = self.emit(f"icmp ne i8 {byte}, 0")
        if span.then == span.else_ == "f":
            side = self.emit(f"select i1 {chosen}, ptr %then, ptr %else")
            self._rows(partial(self._copy, side, "f"))
            return
        sides = {"then": span.then, "else": span.else_}
        blocks = {side: self.label() for side in sides}
        self.branch(chosen, blocks["then"], blocks["else"])
        for side, moves in sides.items():
            self.start(blocks[side])
            self._preload(side, moves, span.width)
            self._rows(partial(self._copy, side, moves))

    def _rows(self, group: _Group) -> None:
        """Cover rows 0..n-1 by calls of ``group(first row, number of rows)``, then return."""
        lanes = self.span.lanes
        vectors, short = self.label(), self.label()
        enough = self.emit(f"icmp uge i64 %n, {lanes}")
        self.branch(enough, vectors, short)

        self.start(vectors)
        if self.span.streaming:
            self._stream(group)
        done = self._vectors("0", group)
        rest, end = self.label(), self.label()
        complete = self.emit(f"icmp eq i64 {done}, %n")
        self.branch(complete, end, rest)
        self.start(rest)
        self._store(group(self.emit(f"sub i64 %n, {lanes}"), lanes))
        self.jump(end)
        self.start(end)
        self.line("ret void")

        self.start(short)
        self._few("0", "%n", group)
        self.line("ret void")

    def _few(self, first: str, count: str, group: _Group) -> None:
        """Cover ``count`` rows from row ``first`` on, fewer than a vector has lanes."""
        end = self.label()
        rows = self.span.lanes // 2
        while self.span.inner == 1 and rows > 0:
            fits, smaller = self.label(), self.label()
            enough = self.emit(f"icmp uge i64 {count}, {rows}")
            self.branch(enough, fits, smaller)
            self.start(fits)
            last = self.emit(f"sub i64 {count}, {rows}")
            last = self.emit(f"add i64 {first}, {last}")
            self._store([*group(first, rows), *group(last, rows)])
            self.jump(end)
            self.start(smaller)
            rows //= 2
        if self.span.inner > 1:
            stop = self.emit(f"add i64 {first}, {count}")
            self.loop(first, stop, 1, lambda at: self._store(group(at, 1)))
        self.jump(end)
        self.start(end)

    def _stream(self, group: _Group) -> None:
        """Cover the rows with stores past the cache and return, if that is asked for and can be.

        Vectors of a group lie a vector apart, so all are aligned where the first one is. That is so
        from row ``r`` on with ``(address + r * inner * width) % vector_bytes == 0``.
        """
        span = self.span
        twos = span.inner & -span.inner
        period = max(1, span.lanes // twos)
        inverse = pow(span.inner // twos, -1, period) if period > 1 else 0
        address = self.emit("ptrtoint ptr %out to i64")
        behind = self.emit(f"sub i64 0, {address}")
        missing = self.emit(f"and i64 {behind}, {span.vector_bytes - 1}")
        odd = self.emit(f"urem i64 {missing}, {min(span.vector_bytes, span.width * twos)}")
        can = self.emit(f"icmp eq i64 {odd}, 0")
        asked = self.emit("icmp ne i64 %stream, 0")
        past, through = self.label(), self.label()
        pays = self.emit(f"icmp uge i64 %n, {STREAMED_ROW_BYTES // (span.width * span.inner)}")
        worth = self.emit(f"and i1 {asked}, {pays}")
        both = self.emit(f"and i1 {can}, {worth}")
        self.branch(both, past, through)
        self.start(past)
        steps = self.emit(f"udiv i64 {missing}, {min(span.vector_bytes, span.width * twos)}")
        first = self.emit(f"mul i64 {steps}, {inverse}")
        first = self.emit(f"and i64 {first}, {period - 1}")
        # A plain store to a line that is stored past the cache costs more than is saved.
        self._few("0", first, group)
        self.store_past_cache = True
        done = self._vectors(first, group)
        self.store_past_cache = False
        self._few(done, self.emit(f"sub i64 %n, {done}"), group)
        self.line("ret void")
        self.start(through)

    def _vectors(self, first: str, group: _Group) -> str:
        """Cover rows from ``first`` on by whole vectors; the value is the first row left."""
        lanes = self.span.lanes
        single = partial(self._single, group=group)
        if self.span.inner > 1 or self.span.unroll == 1:
            return self.loop(first, "%n", lanes, single, self.backwards)
        unrolled = partial(self._unrolled, group=group)
        first = self.loop(first, "%n", self.span.unroll * lanes, unrolled, self.backwards)
        return self.loop(first, "%n", lanes, single)

    def _single(self, at: str, group: _Group) -> None:
        self._store(group(at, self.span.lanes))

    def _unrolled(self, at: str, group: _Group) -> None:
        if self.span.skipping:
            self._by_block(at)
        else:
            self._each(at, group)

    def _each(self, at: str, group: _Group) -> None:
        lanes = self.span.lanes
        batch = max(1, BATCH_BYTES // self.span.vector_bytes)
        for start in range(0, self.span.unroll, batch):
            values = []
            for k in range(start, min(start + batch, self.span.unroll)):
                values += group(self.emit(f"add i64 {at}, {k * lanes}"), lanes)
            self._store(values)

    def _by_block(self, at: str) -> None:
        """Copy one side where cond is one value for all vectors of the iteration, else select."""
        span = self.span
        count = span.unroll * span.lanes
        byte = self.load("cond", 1, at, 0, count)
        mask = self.emit(f"icmp ne <{count} x i8> {byte}, zeroinitializer")
        bits = self.emit(f"bitcast <{count} x i1> {mask} to i{count}")
        none = self.emit(f"icmp eq i{count} {bits}, 0")
        every = self.emit(f"icmp eq i{count} {bits}, -1")
        uniform, mixed, then, else_, end = (self.label() for _ in range(5))
        self.branch(self.emit(f"or i1 {none}, {every}"), uniform, mixed)
        self.start(uniform)
        self.branch(every, then, else_)
        for label, group in (
            (then, partial(self._copy, "then", span.then)),
            (else_, partial(self._copy, "else", span.else_)),
            (mixed, self._select),
        ):
            self.start(label)
            self._each(at, group)
            self.jump(end)
        self.start(end)

    def _select(self, at: str, rows: int) -> list[_Value]:
        """Select ``rows`` rows from row ``at`` on: one vector of ``rows`` lanes per column."""
        span = self.span
        base = self.emit(f"mul i64 {at}, {span.inner}")
        values = []
        for j in range(span.inner):
            byte = self._operand("cond", span.cond, 1, at, base, rows, j)
            mask = self.emit(f"icmp ne <{rows} x i8> {byte}, zeroinitializer")
            then = self._operand("then", span.then, span.width, at, base, rows, j)
            else_ = self._operand("else", span.else_, span.width, at, base, rows, j)
            element = f"<{rows} x i{8 * span.width}>"
            values.append(
                self.emit(f"select <{rows} x i1> {mask}, {element} {then}, {element} {else_}")
            )
        return [(value, base, rows, j) for j, value in enumerate(values)]

    def _copy(self, pointer: str, moves: str, at: str, rows: int) -> list[_Value]:
        return [(self._operand(pointer, moves, self.span.width, at, at, rows, 0), at, rows, 0)]

    def _operand(
        self, name: str, moves: str, width: int, at: str, base: str, rows: int, j: int
    ) -> str:
        """Vector j of ``rows`` lanes: lane l holds element ``j * rows + l`` of the group."""
        inner = self.span.inner
        if moves == "f":
            return self.load(name, width, base, j * rows, rows)
        if moves == "o":
            loaded = self.load(name, width, at, 0, rows)
            picks = [(j * rows + k) // inner for k in range(rows)]
            return self.shuffle(loaded, "poison", width, rows, picks)
        if moves == "i":
            return self._periodic(name, width, rows, j)
        return self.shuffle(self.stays[name], "poison", width, 1, [0] * rows)

    def _periodic(self, name: str, width: int, rows: int, j: int) -> str:
        """Lanes ``(j * rows + l) % inner`` of a row."""
        inner = self.span.inner
        if rows == self.span.lanes and inner <= rows and name in self.periods:
            return self.periods[name][j % len(self.periods[name])]
        first = j * rows % inner
        if first + rows <= inner:
            return self.load(name, width, "0", first, rows)
        if inner <= rows:
            loaded = self.load(name, width, "0", 0, inner)
            lanes = [(first + k) % inner for k in range(rows)]
            return self.shuffle(loaded, "poison", width, inner, lanes)
        end = self.load(name, width, "0", inner - rows, rows)
        begin = self.load(name, width, "0", 0, rows)
        skip = first - (inner - rows)
        return self.shuffle(end, begin, width, rows, [skip + k for k in range(rows)])

    def _preload(self, name: str, moves: str, width: int) -> None:
        """Load what repeats once: out may be one of the inputs, so LLVM cannot hoist the load."""
        lanes, inner = self.span.lanes, self.span.inner
        if moves == "s":
            self.stays[name] = self.load(name, width, "0", 0, 1)
        elif moves == "i" and inner <= lanes:
            count = inner // gcd(inner, lanes)
            self.periods[name] = [self._periodic(name, width, lanes, j) for j in range(count)]

    def _store(self, values: Sequence[_Value]) -> None:
        how = "align 1"
        if self.store_past_cache:
            how = f"align {self.span.vector_bytes}, !nontemporal !0"
        for value, base, rows, j in values:
            pointer = self.pointer("out", self.span.width, base, j * rows)
            self.line(f"store <{rows} x i{8 * self.span.width}> {value}, ptr {pointer}, {how}")
