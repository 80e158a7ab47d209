"""Spans of rows that are walked end to end: the output is one run of aligned vectors.

The scalar loop that they stand for, here with a row-constant cond::

    for r in range(n):
        for x in range(inner):
            out[r * inner + x] = then[r * inner + x] if cond[r] else else_[r * inner + x]

Most rows begin and end inside a cache line of out. Walked row by row, a shared line is read before
it is written, and cannot be stored past the cache. Here vectors follow each other from the first
aligned one on, and a vector that two rows share takes its lanes from both. A row has at least two
vectors::

    head: the elements before the first aligned vector
    for r in range(n):
        for x in whole vectors of row r alone, from column (head - r * inner) % lanes on:
            out[r * inner + x : ...] = ...
        one vector of the last elements of row r and the first ones of row r + 1

A row-constant cond reads one side only. Sides alternate, so the CPU cannot predict the next lines.
If stores go past the cache, the lines of a later row are prefetched.
"""

from dataclasses import dataclass, replace

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.arguments import Arguments
from te_select.schedules.cpu.plain_span import choice, reader
from te_select.schedules.cpu.span import BATCH_BYTES, STREAM
from te_select.schedules.cpu.vectors import (
    ZERO,
    Array,
    Expr,
    branch,
    choose,
    is_true,
    let,
    repeated,
)
from te_select.schedules.cpu.walk import STREAMED_BYTES, Walk, loop

_SIDES = ("then", "else_")
_LINE_BYTES = 64
# Prefetch distance in a side. C code was fastest with 2 to 16 KB, for rows of 64 bytes to 4 KB.
# Prefetching makes rows of 36 to 100 floats 1.07-1.22x faster. Both on Zen 3.
_AHEAD_BYTES = 8192


def rows_end_to_end(given: Arguments) -> None:
    """Write the span's statements."""
    span = given.span
    with T.If(given.n > 0), T.Then():
        missing = let("missing", given.bytes_to_line())
        aligned = missing % span.width == 0
        head = let("head", T.Select(aligned, missing // span.width, ZERO))
        rows = _Rows(given, _copies_on_stack(given), head)
        long = given.n * given.inner >= STREAMED_BYTES // span.width
        may = T.And(T.And(given.has_flag(STREAM), aligned), long)
        worth = may if span.streaming else tirx.const(False, "bool")
        branch(worth, lambda: rows.walk(past_cache=True), lambda: rows.walk(past_cache=False))


def _copies_on_stack(given: Arguments) -> dict[str, Array]:
    """Put copies of some operands on the stack, so that one load can begin anywhere in a row.

    An operand that moves only within the row: its last lanes, followed by its first ones. A side
    that does not move within the row, if cond is one value per row: a vector of copies.
    """
    lanes = given.span.lanes
    moves = given.moves
    found = {}
    for name in ("cond", *_SIDES):
        array: Array = getattr(given, name)
        if moves[name] == "i":
            found[name] = array.on_stack(2 * lanes)
            for k, first in enumerate((given.inner - lanes, ZERO)):
                found[name].store(k * lanes, array.load(first, lanes), lanes)
        elif name in _SIDES and moves[name] in "os" and moves["cond"] in "os":
            found[name] = array.on_stack(lanes)
            if moves[name] == "s":
                found[name].store(0, repeated(array.load(0, 1), lanes), lanes)
    return found


@dataclass(frozen=True)
class _Rows:
    """The rows, the copies of their operands, and the elements before the first whole line."""

    given: Arguments
    copies: dict[str, Array]
    head: Expr

    def walk(self, past_cache: bool) -> None:
        """Cover all rows."""
        self._within(self.given).halves(ZERO, self.head)
        ahead = None
        moves = self.given.moves
        if past_cache and self._cond_by_row and moves["then"] == moves["else_"] == "f":
            row_bytes = self.given.inner * self.given.span.width
            ahead = let("ahead", T.max(T.int64(1), _AHEAD_BYTES // row_bytes))
        loop(ZERO, self.given.n, 1, lambda r: self._row(r, past_cache, ahead))

    def _row(self, r: Expr, past_cache: bool, ahead: Expr | None) -> None:
        """Cover the vectors of row r alone, and the vector that it shares with the next row.

        Prefetch the row that is so many ahead.
        """
        span, inner = self.given.span, self.given.inner
        lanes = span.lanes
        batch = BATCH_BYTES // span.width
        here = self.given.from_row(r)
        walk = self._within(here)

        def store(at: Expr, elements: int) -> None:
            starts = [(walk.given, at + k) for k in range(0, elements, lanes)]
            walk.store(walk.group, starts, lanes, past_cache)

        if ahead is not None:
            later = let("later", r + ahead)
            branch(later < self.given.n, lambda: self._prefetch(self.given.from_row(later)))
        own = let("own", (self.head - r * inner) % lanes)
        loop(own, inner, batch, lambda at: store(at, batch))
        loop(inner - (inner - own) % batch, inner, lanes, lambda at: store(at, lanes))
        left = let("left", (inner - own) % lanes)
        done = let("done", inner - left)

        def share() -> None:
            shared = self._shared(here, self.given.from_row(r + 1), done, left)
            walk.store(lambda *_: [shared], [(walk.given, done)], lanes, past_cache)

        def rest() -> None:
            branch(r + 1 < self.given.n, share, lambda: walk.halves(done, left))

        branch(left > 0, rest)

    def _prefetch(self, here: Arguments) -> None:
        """Prefetch the lines of the side that is read in a later row."""
        side = here.then.or_else(is_true(here.cond.load(0, 1), 1), here.else_)
        step = _LINE_BYTES // here.span.width
        loop(ZERO, self.given.inner + step - 1, step, side.prefetch)

    def _within(self, here: Arguments) -> Walk:
        """The walk along one row, where operands begin at the row."""
        run = replace(here, span=replace(here.span, inner=1))
        if self._cond_by_row:
            side, step = self._chosen(here, {name: getattr(here, name) for name in _SIDES})
            return Walk(run, lambda _here, at, lanes: [side.load(at * step, lanes)])
        value = choice(*(reader(here, name) for name in ("cond", *_SIDES)))
        return Walk(run, lambda _here, at, lanes: [value(here, at, lanes)])

    @property
    def _cond_by_row(self) -> bool:
        return self.given.moves["cond"] in "os"

    def _chosen(self, here: Arguments, moving: dict[str, Array]) -> tuple[Array, Expr]:
        """The side that cond selects for a row, and its step within the row: 1, or 0 if constant.

        Without a branch, because cond cannot be predicted. ``moving`` holds the sides that move
        within the row.
        """
        lanes = here.span.lanes
        moves = here.moves
        for name in _SIDES:
            if moves[name] == "o":
                self.copies[name].store(0, repeated(getattr(here, name).load(0, 1), lanes), lanes)
        chosen = is_true(here.cond.load(0, 1), 1)
        then, else_ = (
            moving[name] if moves[name] in "fi" else self.copies[name] for name in _SIDES
        )
        steps = (T.int64(moves[name] in "fi") for name in _SIDES)
        return then.or_else(chosen, else_), let("step", T.Select(chosen, *steps))

    def _shared(self, here: Arguments, following: Arguments, done: Expr, left: Expr) -> Expr:
        """The vector of the ``left`` last elements of a row, and of the first ones of the next."""
        lanes = here.span.lanes
        number = T.ramp(T.uint8(0), T.uint8(1), lanes)
        of_first = number < repeated(left.astype("uint8"), lanes)

        def moving(name: str) -> Array:
            of_all = here.moves[name] == "f"
            array: Array = getattr(here, name) if of_all else self.copies[name]
            return array.from_element(done if of_all else lanes - left)

        def joined(name: str) -> Expr:
            if here.moves[name] in "fi":
                return moving(name).load(0, lanes)
            first, second = (getattr(row, name).load(0, 1) for row in (here, following))
            return T.Select(of_first, repeated(first, lanes), repeated(second, lanes))

        if not self._cond_by_row:
            return choose(joined("cond"), joined("then"), joined("else_"), lanes)
        sides = {name: moving(name) for name in _SIDES if here.moves[name] in "fi"}
        first, second = (
            let("part", self._chosen(row, sides)[0].load(0, lanes)) for row in (here, following)
        )
        return T.Select(of_first, first, second)
