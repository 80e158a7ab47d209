"""The loop over memory of a span: head, main loop, tail. `plain_span` and `short_rows` fill it.

For n rows of ``inner`` elements, ``lanes`` rows at a time::

    if n < lanes:                                remainder(0, n)
    elif stores go past the cache and may:       head: remainder(0, first aligned row)
                                                 main loop: whole vectors, past the cache
                                                 tail: remainder(rest)
    else:                                        main loop: whole vectors
                                                 tail: the last vector, overlapping the one before

An iteration of the main loop takes `Span.groups_per_iteration` groups of ``inner`` vectors, and
loads `Span.groups_per_batch` of them before it stores the first. If out lies just ahead of an
input, the loop runs backwards (`aliasing`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.aliasing import LEAST_BYTES, backwards
from te_select.schedules.cpu.arguments import Arguments
from te_select.schedules.cpu.span import BACKWARDS, SKIP, STREAM, Span
from te_select.schedules.cpu.vectors import ZERO, Expr, branch, let, stack_buffer, unknown

# Of a span that stores past the cache. Its time, as a multiple of that with plain stores, was 1.5
# for spans of 128 bytes and 0.64 for spans of 4096 bytes (Emerald Rapids).
STREAMED_BYTES = 1024

# The vectors of some rows, one after another: from arguments, a first row and a number of rows.
Group: TypeAlias = Callable[[Arguments, Expr, int], list[Expr]]
_Body: TypeAlias = Callable[[Arguments, bool], None]  # from arguments, and whether past the cache


def loop(
    first: Expr, stop: Expr, step: int, body: Callable[[Expr], None], back: Expr | None = None
) -> Expr:
    """A loop of whole steps: run ``body(at)`` from ``first`` on; return where the remainder begins.

    If ``back`` is true, it runs backwards.

    Rows are opaque to LLVM, so it leaves the loop as it is. Else it would spend most of its time
    there, unroll the tail, and vectorize over single rows.
    """
    left = stop - (stop - first) % step
    known = isinstance(left, tirx.IntImm)
    if known and left.value <= first.value + step:  # a loop would hide a known number
        if left.value > first.value:
            body(first)
        return left
    mirror = None if back is None else let("mirror", left - step + first)
    row = stack_buffer(1, "int64")
    IRBuilder.name("row", row)
    T.buffer_store(row, first, [0])
    with T.While(row[0] + step <= stop):
        at = row[0]
        body(let("at", at if back is None else T.Select(back, mirror - at, at)))
        T.buffer_store(row, unknown(row[0] + step), [0])
    return left if known else let("left", row[0])


@dataclass(frozen=True)
class Walk:
    """How the rows of a span are covered.

    Parameters
    ----------
    given
        The arguments. Rows have a literal number of elements.
    group
        What to store.
    remainder
        Covers head or tail, rows fewer than lanes; by default `halves` does.
    skipping
        An iteration that tests its cond first and skips a side. Calls with the flag run it instead.
        It is told whether stores go past the cache.
    """

    given: Arguments
    group: Group
    remainder: Callable[[Expr, Expr], None] | None = None
    skipping: _Body | None = None

    @property
    def span(self) -> Span:
        """The span."""
        return self.given.span

    def cover(self) -> None:
        """Cover all rows, as this module's docstring says."""
        branch(
            self.given.n < self.span.lanes,
            lambda: self._cover_remainder(ZERO, self.given.n),
            self._whole_vectors,
        )

    def store(
        self,
        group: Group,
        starts: Sequence[tuple[Arguments, Expr]],
        rows: int,
        past_cache: bool = False,
    ) -> None:
        """Load groups of rows, then store them; a start is arguments and a row."""
        values = [
            (here.out, k * self.span.inner + j * rows, let("value", vector))
            for here, k in starts
            for j, vector in enumerate(group(here, k, rows))
        ]
        for out, element, value in values:
            (out.store_past_cache if past_cache else out.store)(element, value, rows)

    def store_iteration(self, group: Group, here: Arguments, past_cache: bool) -> None:
        """One iteration of the main loop: load and store its groups, batch by batch."""
        span = self.span
        starts = [(here, k * span.lanes) for k in range(span.groups_per_iteration)]
        batch = span.groups_per_batch
        for k in range(0, len(starts), batch):
            self.store(group, starts[k : k + batch], span.lanes, past_cache)

    def _cover_remainder(self, first: Expr, count: Expr) -> None:
        (self.remainder or self.halves)(first, count)

    def halves(self, first: Expr, count: Expr, lanes: int = 0) -> None:
        """Two vectors of half as many lanes, which may overlap, or two of a quarter, and so on."""
        lanes = (lanes or self.span.lanes) // 2
        smaller = partial(self.halves, first, count, lanes) if lanes > 1 else None
        starts = [(self.given, first), (self.given, first + (count - lanes))]
        branch(count >= lanes, lambda: self.store(self.group, starts, lanes), smaller)

    def _whole_vectors(self) -> None:
        """Cover at least as many rows as lanes.

        Past the cache the main loop begins at the first row r whose address is aligned, that is
        ``(address + r * inner * width) % vector_bytes == 0``. A plain store to a line that is
        stored past the cache costs more than is saved, so nothing overlaps there.
        """
        span = self.span
        n = self.given.n
        back = self._backwards()
        if not span.streaming:
            self._plain_stores(back)
            return
        twos = span.inner & -span.inner
        unit = min(span.vector_bytes, span.width * twos)
        period = max(1, span.lanes // twos)
        inverse = pow(span.inner // twos, -1, period) if period > 1 else 0
        missing = let("missing", self.given.bytes_to_line())
        worth = T.And(self.given.has_flag(STREAM), n >= STREAMED_BYTES // (span.width * span.inner))

        def past_cache() -> None:
            first = let("first", missing // unit * inverse % period)
            self._cover_remainder(ZERO, first)
            done = self._main_loop(first, back, past_cache=True)
            self._cover_remainder(done, n - done)

        branch(T.And(worth, missing % unit == 0), past_cache, lambda: self._plain_stores(back))

    def _plain_stores(self, back: Expr | None) -> None:
        n = self.given.n
        lanes = self.span.lanes
        done = self._main_loop(ZERO, back, past_cache=False)
        branch(done < n, lambda: self.store(self.group, [(self.given, n - lanes)], lanes))

    def _main_loop(self, first: Expr, back: Expr | None, past_cache: bool) -> Expr:
        """The main loop, from row ``first`` on; return the first row of the tail."""
        span = self.span
        n = self.given.n
        skipping = self.skipping
        groups = span.groups_per_iteration
        step = groups * span.lanes

        def steps(first: Expr, rows: int, body: _Body, back: Expr | None = None) -> Expr:
            return loop(first, n, rows, lambda at: body(self.given.from_row(at), past_cache), back)

        body = partial(self.store_iteration, self.group)
        if skipping is None:
            done = steps(first, step, body, back)
        else:
            loops = (partial(steps, first, step, each, back) for each in (skipping, body))
            branch(self.given.has_flag(SKIP), *loops)
            done = let("done", n - (n - first) % step)
        if groups == 1:
            return done
        store = partial(self.store, self.group)
        return steps(done, span.lanes, lambda here, past: store([(here, 0)], span.lanes, past))

    def _backwards(self) -> Expr | None:
        """Whether to go backwards, by the inputs that are read as fast as out is written."""
        given, span = self.given, self.span
        names = ["then", "else_"]
        if span.width == 1:
            names.append("cond")
        inputs = [getattr(given, name) for name in names if given.moves[name] == "f"]
        n = given.n
        row_bytes = span.width * span.inner
        is_short = isinstance(n, tirx.IntImm) and n.value < LEAST_BYTES // row_bytes
        if span.forwards or is_short or not inputs:
            return None
        return backwards(given.has_flag(BACKWARDS), given.out, inputs, n, row_bytes)
