"""Spans of rows that are walked end to end: the output is one run of aligned vectors.

Most rows begin and end inside a cache line of out. A line that two rows share is slow if each row
is walked for itself: it is read before it is written, and cannot be stored past the cache. So here
the vectors follow each other from the first aligned one on. A vector that two rows share takes its
lanes from both.

Let ``head`` be the number of elements before the first aligned vector. Then the first vector that
belongs to row r alone begins at column ``(head - r * inner) % lanes``. A row has at least two
vectors.

If cond is one value per row, only the side that it selects is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from te_select.schedules.cpu.span import BATCH_BYTES, STREAMED_BYTES, Span, SpanWriter, Value

_OfRow = Callable[[str, int], str]  # from a first column and a number of lanes to a vector
_SIDES = ("then", "else")


def source(span: Span) -> str:
    """Write the span as LLVM IR text, without `METADATA`."""
    return _Writer(span).text()


class _Writer(SpanWriter):
    """Writes the LLVM IR of one span."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.moves = {"cond": span.cond, "then": span.then, "else": span.else_}
        self.widths = {"cond": 1, "then": span.width, "else": span.width}
        self.cond_by_row = span.cond in "os"
        self.on_stack: dict[str, str] = {}
        self.head = ""

    def text(self) -> str:
        span = self.span
        self.begin()
        self._prepare()
        some, end = self.label(), self.label()
        self.branch(self.emit("icmp ne i64 %n, 0"), some, end)
        self.start(some)
        missing = self.bytes_to_line()
        odd = self.emit(f"urem i64 {missing}, {span.width}")
        can = self.emit(f"icmp eq i64 {odd}, 0")
        steps = self.emit(f"udiv i64 {missing}, {span.width}")
        self.head = self.emit(f"select i1 {can}, i64 {steps}, i64 0")
        if span.streaming:
            elements = self.emit("mul i64 %n, %inner")
            pays = self.emit(f"icmp uge i64 {elements}, {STREAMED_BYTES // span.width}")
            through = self.start_past_cache(can, pays)
            self._walk(past_cache=True)
            self.jump(end)
            self.start(through)
        self._walk(past_cache=False)
        self.jump(end)
        self.start(end)
        self.line("ret void")
        return "\n".join([*self.lines, "}"])

    def _prepare(self) -> None:
        """Put copies of some operands on the stack, so that one load can begin anywhere in a row.

        An operand that moves only within the row: its last lanes, followed by its first ones. A
        side that does not move within the row, if cond is one value per row: a vector of copies.
        """
        lanes = self.span.lanes
        for name, moves in self.moves.items():
            width = self.widths[name]
            if moves == "i":
                end = self.emit(f"sub i64 %inner, {lanes}")
                ends = [self.load(name, width, first, 0, lanes) for first in (end, "0")]
                self.on_stack[name] = self.emit(f"alloca [{2 * lanes} x i{8 * width}], align 64")
                for k, vector in enumerate(ends):
                    self._put(name, vector, k * lanes)
            elif name in _SIDES and moves in "os" and self.cond_by_row:
                self.on_stack[name] = self.emit(f"alloca [{lanes} x i{8 * width}], align 64")
                if moves == "s":
                    self._put(name, self._repeated(name, "0", lanes), 0)

    def _walk(self, past_cache: bool) -> None:
        self.store_past_cache = False
        self.few("0", self.head, self._group("0", "0"))
        self.loop("0", "%n", 1, partial(self._row, past_cache))

    def _row(self, past_cache: bool, r: str) -> None:
        """Cover the vectors of row r alone, and the vector that it shares with the next row."""
        lanes = self.span.lanes
        batch = BATCH_BYTES // self.span.width
        base = self.emit(f"mul i64 {r}, %inner")
        group = self._group(r, base)

        def store_batch(at: str) -> None:
            columns = [self.emit(f"add i64 {at}, {k}") for k in range(0, batch, lanes)]
            self.store([value for column in columns for value in group(column, lanes)])

        behind = self.emit(f"sub i64 {self.head}, {base}")
        own = self.emit(f"and i64 {behind}, {lanes - 1}")
        self.store_past_cache = past_cache
        done = self.loop(own, "%inner", batch, store_batch)
        done = self.loop(done, "%inner", lanes, lambda at: self.store(group(at, lanes)))
        more, shared, last, end = (self.label() for _ in range(4))
        left = self.emit(f"sub i64 %inner, {done}")
        self.branch(self.emit(f"icmp ne i64 {left}, 0"), more, end)
        self.start(more)
        following = self.emit(f"add i64 {r}, 1")
        self.branch(self.emit(f"icmp ult i64 {following}, %n"), shared, last)
        self.start(shared)
        at = self.emit(f"add i64 {base}, {done}")
        self.store([(self._shared((r, following), at, left), at, lanes, 0)])
        self.jump(end)
        self.start(last)
        self.store_past_cache = False
        self.few(done, left, group)
        self.jump(end)
        self.start(end)

    def _group(self, r: str, base: str) -> Callable[[str, int], list[Value]]:
        """What gives the values of row r, whose first element is ``base``, from a column on."""
        value = self._copied(r, base) if self.cond_by_row else self._selected(r, base)
        return lambda at, lanes: [(value(at, lanes), self.emit(f"add i64 {base}, {at}"), lanes, 0)]

    def _copied(self, r: str, base: str) -> _OfRow:
        width = self.span.width
        side, step = self._chosen(
            r, lambda name: self.pointer(name, width, base if self.moves[name] == "f" else "0", 0)
        )
        return lambda at, lanes: self.load(
            side, width, self.emit(f"mul i64 {at}, {step}"), 0, lanes
        )

    def _chosen(self, r: str, moving: Callable[[str], str]) -> tuple[str, str]:
        """The side that cond selects for row r: a pointer, and 1 if it moves within the row or 0.

        There is no branch, because cond cannot be predicted. ``moving`` gives the pointer to a side
        that moves within the row.
        """
        starts, steps = [], []
        for name in _SIDES:
            moves = self.moves[name]
            if moves == "o":
                self._put(name, self._repeated(name, r, self.span.lanes), 0)
            starts.append(moving(name) if moves in "fi" else self.on_stack[name])
            steps.append(int(moves in "fi"))
        mask = self.nonzero(self._repeated("cond", r, 1), 1)
        chosen = self.emit(f"extractelement <1 x i1> {mask}, i32 0")
        side = self.emit(f"select i1 {chosen}, ptr {starts[0]}, ptr {starts[1]}")
        step = self.emit(f"select i1 {chosen}, i64 {steps[0]}, i64 {steps[1]}")
        return side, step

    def _selected(self, r: str, base: str) -> _OfRow:
        def operand(name: str, at: str, lanes: int) -> str:
            moves = self.moves[name]
            if moves in "os":
                return self._repeated(name, r, lanes)
            index = self.emit(f"add i64 {base}, {at}") if moves == "f" else at
            return self.load(name, self.widths[name], index, 0, lanes)

        def value(at: str, lanes: int) -> str:
            mask = self.nonzero(operand("cond", at, lanes), lanes)
            then, else_ = (operand(name, at, lanes) for name in _SIDES)
            return self.select(mask, then, else_, self.span.width, lanes)

        return value

    def _shared(self, rows: tuple[str, str], at: str, left: str) -> str:
        """The vector from element ``at`` on: ``left`` elements of a row, the others of the next."""
        lanes, width = self.span.lanes, self.span.width
        limit = self.emit(f"trunc i64 {left} to i8")
        limit = self.emit(f"insertelement <1 x i8> poison, i8 {limit}, i32 0")
        limit = self.shuffle(limit, "poison", 1, 1, [0] * lanes)
        counted = ", ".join(f"i8 {lane}" for lane in range(lanes))
        of_first = self.emit(f"icmp ult <{lanes} x i8> <{counted}>, {limit}")
        wrapped = self.emit(f"sub i64 {lanes}, {left}")

        def moving(name: str) -> str:
            if self.moves[name] == "f":
                return self.pointer(name, self.widths[name], at, 0)
            return self.pointer(self.on_stack[name], self.widths[name], wrapped, 0)

        def copied(r: str) -> str:
            side, _ = self._chosen(r, moving)
            return self.load(side, width, "0", 0, lanes)

        def operand(name: str) -> str:
            if self.moves[name] in "fi":
                return self.load(moving(name), self.widths[name], "0", 0, lanes)
            first, second = (self._repeated(name, r, lanes) for r in rows)
            return self.select(of_first, first, second, self.widths[name], lanes)

        if self.cond_by_row:
            first, second = (copied(r) for r in rows)
            return self.select(of_first, first, second, width, lanes)
        mask = self.nonzero(operand("cond"), lanes)
        return self.select(mask, operand("then"), operand("else"), width, lanes)

    def _repeated(self, name: str, r: str, lanes: int) -> str:
        """A vector of copies of the element that belongs to row r."""
        row = r if self.moves[name] == "o" else "0"
        value = self.load(name, self.widths[name], row, 0, 1)
        return self.shuffle(value, "poison", self.widths[name], 1, [0] * lanes)

    def _put(self, name: str, vector: str, first: int) -> None:
        lanes, width = self.span.lanes, self.widths[name]
        pointer = self.pointer(self.on_stack[name], width, "0", first)
        self.line(f"store <{lanes} x i{8 * width}> {vector}, ptr {pointer}, align 1")
