"""The arguments of a span, which a walk moves from row to row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.span import Span
from te_select.schedules.cpu.vectors import Array, Expr


@dataclass(frozen=True)
class Arguments:
    """The arguments of a span.

    Parameters
    ----------
    span
        Says how the arrays move.
    out, cond, then, else_
        The arrays.
    n, inner
        How many rows there are, and elements in each.
    flags
        Of the call.
    """

    span: Span
    out: Array
    cond: Array
    then: Array
    else_: Array
    n: Expr
    inner: Expr
    flags: Expr

    @property
    def moves(self) -> dict[str, str]:
        """How each array moves."""
        span = self.span
        return {"out": "f", "cond": span.cond, "then": span.then, "else_": span.else_}

    def from_row(self, row: Expr) -> Arguments:
        """The same arguments from a row on."""
        steps = {"f": row * self.inner, "o": row}
        arrays = {
            name: getattr(self, name).from_element(steps[moves])
            for name, moves in self.moves.items()
            if moves in steps
        }
        return replace(self, **arrays)

    def has_flag(self, flag: int) -> Expr:
        """Whether the caller has set a flag."""
        return (self.flags & flag) != 0

    def bytes_to_line(self) -> Expr:
        """Bytes from out to the first address that a store past the cache may have."""
        address = T.reinterpret("int64", self.out.address())
        return -address & (self.span.vector_bytes - 1)
