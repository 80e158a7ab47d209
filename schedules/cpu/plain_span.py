"""The plain span: one run of elements, along which each operand moves or stays.

The main loop takes several vectors at a time, and loads several before it stores any. If out lies
just ahead of an input, it walks backwards (`aliasing`).

If less than a vector is left at the end, a last vector overlaps the one before it, and writes some
bits a second time. Stores past the cache do not overlap, because no line may be stored twice there.

`short_rows` is the same walk with rows instead of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from te_select.schedules.cpu.aliasing import backwards_text
from te_select.schedules.cpu.flags import BACKWARDS, SKIP
from te_select.schedules.cpu.span import BATCH_BYTES, STREAMED_BYTES, Group, Span, SpanWriter, Value


def source(span: Span) -> str:
    """Write the span as LLVM IR text, without `METADATA`."""
    return PlainWriter(span).text()


class PlainWriter(SpanWriter):
    """Writes the LLVM IR of a span whose rows are single elements; a subclass may have others."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.backwards = "false"
        self.stays: dict[str, str] = {}

    def text(self) -> str:
        """The whole function."""
        span = self.span
        self.begin()
        if not span.forwards:
            self._choose_direction()
        if span.cond == "s" and span.inner == 1:
            self._choose_then_copy()
        else:
            self.preload("cond", span.cond, 1)
            self.preload("then", span.then, span.width)
            self.preload("else", span.else_, span.width)
            self._rows(self._select)
        return "\n".join([*self.lines, "}"])

    def _choose_direction(self) -> None:
        span = self.span
        sides = {"then": span.then, "else": span.else_}
        level = [name for name, moves in sides.items() if moves == "f"]
        if span.cond == "f" and span.width == 1:
            level.append("cond")
        self.backwards = backwards_text(self, self.asked(BACKWARDS), level, span.width * span.inner)

    def _choose_then_copy(self) -> None:
        """Cond is one value: read only the side that it selects."""
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
            self.preload(side, moves, span.width)
            self._rows(partial(self._copy, side, moves))

    def _rows(self, group: Group) -> None:
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
        self.store(group(self.emit(f"sub i64 %n, {lanes}"), lanes))
        self.jump(end)
        self.start(end)
        self.line("ret void")

        self.start(short)
        self.few("0", "%n", group)
        self.line("ret void")

    def _stream(self, group: Group) -> None:
        """Cover the rows with stores past the cache and return, if the flags ask for it.

        Some row r must also begin at an aligned address, that is
        ``(address + r * inner * width) % vector_bytes == 0``. From that row on, every vector is
        aligned.
        """
        span = self.span
        twos = span.inner & -span.inner
        period = max(1, span.lanes // twos)
        inverse = pow(span.inner // twos, -1, period) if period > 1 else 0
        missing = self.bytes_to_line()
        odd = self.emit(f"urem i64 {missing}, {min(span.vector_bytes, span.width * twos)}")
        can = self.emit(f"icmp eq i64 {odd}, 0")
        pays = self.emit(f"icmp uge i64 %n, {STREAMED_BYTES // (span.width * span.inner)}")
        through = self.start_past_cache(can, pays)
        steps = self.emit(f"udiv i64 {missing}, {min(span.vector_bytes, span.width * twos)}")
        first = self.emit(f"mul i64 {steps}, {inverse}")
        first = self.emit(f"and i64 {first}, {period - 1}")
        # A plain store to a line that is stored past the cache costs more than is saved.
        self.few("0", first, group)
        self.store_past_cache = True
        done = self._vectors(first, group)
        self.store_past_cache = False
        self.few(done, self.emit(f"sub i64 %n, {done}"), group)
        self.line("ret void")
        self.start(through)

    def _vectors(self, first: str, group: Group) -> str:
        """Cover rows from ``first`` on by whole vectors; return the first row that is left."""
        lanes = self.span.lanes
        single = partial(self._single, group=group)
        if self.span.inner > 1 or self.span.unroll == 1:
            return self.loop(first, "%n", lanes, single, self.backwards)
        step = self.span.unroll * lanes
        each = partial(self._each, group=group)
        if self.span.skipping:
            first = self._looking(first, step, each)
        else:
            first = self.loop(first, "%n", step, each, self.backwards)
        return self.loop(first, "%n", lanes, single)

    def _looking(self, first: str, step: int, each: Callable[[str], None]) -> str:
        """Write two loops, of which the flags choose: only one looks at cond before it reads."""
        look, take, end = (self.label() for _ in range(3))
        self.branch(self.asked(SKIP), look, take)
        ends = []
        for label, body in ((look, self._by_block), (take, each)):
            self.start(label)
            left = self.loop(first, "%n", step, body, self.backwards)
            ends.append(f"[ {left}, %{self.block} ]")
            self.jump(end)
        self.start(end)
        return self.emit(f"phi i64 {', '.join(ends)}")

    def _single(self, at: str, group: Group) -> None:
        self.store(group(at, self.span.lanes))

    def _each(self, at: str, group: Group) -> None:
        lanes = self.span.lanes
        batch = max(1, BATCH_BYTES // self.span.vector_bytes)
        for start in range(0, self.span.unroll, batch):
            values = []
            for k in range(start, min(start + batch, self.span.unroll)):
                values += group(self.emit(f"add i64 {at}, {k * lanes}"), lanes)
            self.store(values)

    def _by_block(self, at: str) -> None:
        """Copy one side if all vectors of the iteration have one value of cond; else select."""
        span = self.span
        count = span.unroll * span.lanes
        byte = self.load("cond", 1, at, 0, count)
        none, every = (self._extremes if span.reduces else self._bits)(byte, count)
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

    def _bits(self, byte: str, count: int) -> tuple[str, str]:
        """Whether all bytes of a vector are zero, and whether none is."""
        mask = self.nonzero(byte, count)
        bits = self.emit(f"bitcast <{count} x i1> {mask} to i{count}")
        none = self.emit(f"icmp eq i{count} {bits}, 0")
        return none, self.emit(f"icmp eq i{count} {bits}, -1")

    def _extremes(self, byte: str, count: int) -> tuple[str, str]:
        """The same, by the largest and the smallest byte."""
        largest, smallest = (
            self.emit(f"call i8 @llvm.vector.reduce.{which}.v{count}i8(<{count} x i8> {byte})")
            for which in ("umax", "umin")
        )
        none = self.emit(f"icmp eq i8 {largest}, 0")
        return none, self.emit(f"icmp ne i8 {smallest}, 0")

    def _select(self, at: str, rows: int) -> list[Value]:
        """Select ``rows`` rows from row ``at`` on: one vector of ``rows`` lanes per column."""
        span = self.span
        base = self.emit(f"mul i64 {at}, {span.inner}")
        values = []
        for j in range(span.inner):
            byte = self.operand("cond", span.cond, 1, at, base, rows, j)
            mask = self.nonzero(byte, rows)
            then = self.operand("then", span.then, span.width, at, base, rows, j)
            else_ = self.operand("else", span.else_, span.width, at, base, rows, j)
            values.append(self.select(mask, then, else_, span.width, rows))
        return [(value, base, rows, j) for j, value in enumerate(values)]

    def _copy(self, pointer: str, moves: str, at: str, rows: int) -> list[Value]:
        return [(self.operand(pointer, moves, self.span.width, at, at, rows, 0), at, rows, 0)]

    def operand(
        self, name: str, moves: str, width: int, at: str, base: str, rows: int, j: int
    ) -> str:
        """Vector j of a group of ``rows`` rows from row ``at``, element ``base``, on."""
        if moves == "f":
            return self.load(name, width, base, j * rows, rows)
        return self.shuffle(self.stays[name], "poison", width, 1, [0] * rows)

    def preload(self, name: str, moves: str, width: int) -> None:
        """Load once, before the loop, what stays the same.

        LLVM cannot move the load itself, because out may be one of the inputs.
        """
        if moves == "s":
            self.stays[name] = self.load(name, width, "0", 0, 1)
