"""Which of two expressions is larger, as far as that holds for all sizes."""

from __future__ import annotations

from collections.abc import Callable

from te_select.frontends.symbolic.expressions import (
    UNKNOWN,
    Dim,
    Expression,
    Scalar,
    Unknown,
    add,
    call,
    is_nonneg,
    known,
    least,
    subtract,
)


@known
def minimum(a: Dim, b: Dim) -> Scalar:
    """The smaller of the two."""
    if at_least(a, b):
        return b
    if at_least(b, a):
        return a
    if (joined := _joined(min, a, b)) is not None:
        return minimum(*joined)
    return call("min", _sorted(a, b), nonneg=is_nonneg(a) and is_nonneg(b))


@known
def maximum(a: Dim, b: Dim) -> Scalar:
    """The larger of the two."""
    if at_least(a, b):
        return a
    if at_least(b, a):
        return b
    if (joined := _joined(max, a, b)) is not None:
        return maximum(*joined)
    return call("max", _sorted(a, b), nonneg=is_nonneg(a) or is_nonneg(b))


def at_least(a: Scalar, b: Scalar) -> bool:
    """Whether ``a >= b`` for all sizes; False if that is not known."""
    low, bound = (least(a), b) if isinstance(b, int) else (least(subtract(a, b)), 0)
    return low is not None and low >= bound


def equal(a: Scalar, b: Scalar) -> bool | Unknown:
    """Whether the two are equal for all sizes; `UNKNOWN` if that is not known."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    if a == b:
        return True
    if at_least(a, add(b, 1)) or at_least(b, add(a, 1)):
        return False
    return UNKNOWN


def less(a: Scalar, b: Scalar) -> bool | Unknown:
    """Whether ``a < b`` for all sizes; `UNKNOWN` if that is not known."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    if at_least(b, add(a, 1)):
        return True
    return False if at_least(a, b) else UNKNOWN


def _sorted(a: Dim, b: Dim) -> list[Dim]:
    """Two arguments in a fixed order; an int comes first."""
    return sorted((a, b), key=lambda arg: (not isinstance(arg, int), str(arg)))


def _joined(function: Callable[[int, int], int], a: Dim, b: Dim) -> tuple[int, Dim] | None:
    """Join the ints of ``min(int, min(int, x))``; None if the arguments have another form."""
    number, other = (a, b) if isinstance(a, int) else (b, a)
    atom = other.only_atom if isinstance(other, Expression) else None
    if not isinstance(number, int) or atom is None or atom.function != function.__name__:
        return None
    limit, rest = atom.args
    return (function(number, limit), rest) if isinstance(limit, int) else None
