"""Sizes known only at the call: polynomials over named sizes, with int coefficients.

Two expressions are equal if their canonical forms are: ``a*(b + 1)`` and ``a + a*b`` are one.
A name, a quotient, a remainder, a minimum and a maximum are atoms. Division by zero has no result,
because a model that divides by zero does not run.

A result that cannot be found, or would grow too long, is `UNKNOWN`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


class Unknown:
    """A number about which nothing is known."""

    def __repr__(self) -> str:
        """Write it as a question mark."""
        return "?"


UNKNOWN = Unknown()
_MOST_TERMS = 24
_LONGEST = 400  # characters of an atom; without a limit, nesting could grow without end
_HIGHEST_DEGREE = 8
_LARGEST = 2**62  # of a coefficient


@dataclass(frozen=True, order=True)
class Atom:
    """A factor that is not taken apart: a name, or a function of expressions.

    Parameters
    ----------
    key
        Its canonical text. Two atoms are equal if their keys are.
    nonneg
        Whether it is known to be >= 0. A name is a size, so it is >= 0.
    function, args
        For a function: its name and its arguments.
    """

    key: str
    nonneg: bool = field(default=True, compare=False)
    function: str = field(default="", compare=False)
    args: tuple[Dim, ...] = field(default=(), compare=False)


Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Expression:
    """A polynomial that is not an int: ``sum(coefficient * product(atoms))``.

    Parameters
    ----------
    terms
        Pairs of a monomial and its coefficient, sorted.
    is_size
        Whether it is the extent of an axis, and so >= 0 in any form.
    """

    terms: tuple[tuple[Monomial, int], ...]
    is_size: bool = field(default=False, compare=False)

    @functools.cached_property
    def atoms(self) -> frozenset[Atom]:
        """Every atom, including those inside functions."""
        found: set[Atom] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                found.add(atom)
                for arg in atom.args:
                    found |= arg.atoms if isinstance(arg, Expression) else set()
        return frozenset(found)

    @property
    def only_atom(self) -> Atom | None:
        """The atom if the whole expression is one; otherwise None."""
        if len(self.terms) != 1:
            return None
        ((monomial, count),) = self.terms
        return monomial[0] if count == 1 and len(monomial) == 1 else None

    @property
    def names(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(atom.key for atom in self.atoms if not atom.function)

    def __str__(self) -> str:
        """Write it as arithmetic: ``2*batch*heads - 1``."""
        constant_last = sorted(self.terms, key=lambda term: not term[0])
        text = " + ".join(_term_text(monomial, count) for monomial, count in constant_last)
        return text.replace("+ -", "- ")


Dim = int | Expression
Scalar = int | Expression | Unknown


def symbol(name: str) -> Expression:
    """A name as an expression."""
    return Expression((((Atom(name),), 1),))


def call(function: str, args: Iterable[Dim], *, nonneg: bool = False) -> Scalar:
    """Apply a function about which only its name is known."""
    args = tuple(args)
    if function in _INFIX:
        key = function.join(_operand(str(arg)) for arg in args)
    else:
        key = f"{function}({', '.join(map(str, args))})"
    if len(key) > _LONGEST:
        return UNKNOWN
    return Expression((((Atom(key, nonneg, function, args),), 1),))


_INFIX = ("//", "%")


def as_size(value: Scalar) -> Scalar:
    """Note that ``value`` is the extent of an axis, and so >= 0."""
    return Expression(value.terms, is_size=True) if isinstance(value, Expression) else value


def least(value: Scalar) -> int | None:
    """A lower bound of ``value``, or None if none is found."""
    if not isinstance(value, Expression):
        return value if isinstance(value, int) else None
    constant = 0
    for monomial, count in value.terms:
        if not monomial:
            constant = count
        elif count < 0 or not all(atom.nonneg for atom in monomial):
            return 0 if value.is_size else None
    return max(constant, 0) if value.is_size else constant


def known(function: Callable[[Dim, Dim], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    """Make a function return `UNKNOWN` if an argument is neither an int nor an expression."""

    @functools.wraps(function)
    def guarded(a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int | Expression) and isinstance(b, int | Expression):
            return function(a, b)
        return UNKNOWN

    return guarded


@known
def add(a: Dim, b: Dim) -> Scalar:
    """``a + b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return _collect([*_terms(a), *_terms(b)])


@known
def multiply(a: Dim, b: Dim) -> Scalar:
    """``a * b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    left, right = _terms(a), _terms(b)
    if len(left) * len(right) > _MOST_TERMS:
        return UNKNOWN
    return _collect([(tuple(sorted(m + n)), p * q) for m, p in left for n, q in right])


def subtract(a: Scalar, b: Scalar) -> Scalar:
    """``a - b``."""
    return add(a, multiply(b, -1))


def product(values: Iterable[Scalar]) -> Scalar:
    """Multiply all of them."""
    one: Scalar = 1
    return functools.reduce(multiply, values, one)


def total(values: Iterable[Scalar]) -> Scalar:
    """Add all of them."""
    zero: Scalar = 0
    return functools.reduce(add, values, zero)


@known
def floor_divide(a: Dim, b: Dim) -> Scalar:
    """``a // b``, rounded down; ``b`` is not zero."""
    if isinstance(b, Expression):
        return _divide_by_expression(a, b)
    if isinstance(a, int) or b <= 0:
        return a // b if b and isinstance(a, int) else UNKNOWN
    whole = _collect([(monomial, count // b) for monomial, count in a.terms])
    rest = _collect([(monomial, count % b) for monomial, count in a.terms])
    if isinstance(rest, int | Unknown):
        return whole if isinstance(rest, int) else UNKNOWN
    inner = _only_quotient(rest)
    if inner is not None:  # (x // a + k) // b is (x + a*k) // (a*b)
        numerator, denominator, constant = inner
        shifted = add(numerator, multiply(denominator, constant))
        return add(whole, floor_divide(shifted, multiply(denominator, b)))
    rest = rest if whole else a  # a may be known to be a size
    return add(whole, call("//", (rest, b), nonneg=is_nonneg(rest)))


@known
def modulo(a: Dim, b: Dim) -> Scalar:
    """``a % b`` for ``b > 0``, >= 0."""
    if isinstance(b, Expression):
        return 0 if a == b else call("%", (a, b), nonneg=is_nonneg(a) and is_nonneg(b))
    if b <= 0:
        return UNKNOWN
    if isinstance(a, int):
        return a % b
    rest = _collect([(monomial, count % b) for monomial, count in a.terms])
    if isinstance(rest, Unknown):
        return UNKNOWN
    return rest % b if isinstance(rest, int) else call("%", (rest, b), nonneg=True)


def is_nonneg(value: Scalar) -> bool:
    """Whether ``value`` is >= 0 for all sizes; False if that is not known."""
    low = least(value)
    return low is not None and low >= 0


def _terms(value: Dim) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(value, Expression):
        return value.terms
    return (((), int(value)),) if value else ()


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Scalar:
    """Add up the terms of each monomial; returns an int if only a constant is left."""
    sums: dict[Monomial, int] = {}
    for monomial, count in terms:
        sums[monomial] = sums.get(monomial, 0) + count
    kept = {monomial: count for monomial, count in sums.items() if count}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    if len(kept) > _MOST_TERMS or any(
        len(monomial) > _HIGHEST_DEGREE or abs(count) > _LARGEST for monomial, count in kept.items()
    ):
        return UNKNOWN
    return Expression(tuple(sorted(kept.items())))


def _divide_by_expression(a: Dim, b: Expression) -> Scalar:
    if a == b:
        return 1
    if a == 0:
        return 0
    if len(b.terms) == 1 and b.terms[0][1] > 0:
        ((divisor, count),) = b.terms
        exact = [
            (rest, c // count)
            for monomial, c in _terms(a)
            if c % count == 0 and (rest := _without(monomial, divisor)) is not None
        ]
        if len(exact) == len(_terms(a)):
            return _collect(exact)
    return call("//", (a, b), nonneg=is_nonneg(a) and is_nonneg(b))


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The monomial divided by another, or None if that leaves a remainder."""
    rest = Counter(monomial)
    rest.subtract(divisor)
    return None if min(rest.values(), default=0) < 0 else tuple(rest.elements())


def _only_quotient(value: Expression) -> tuple[Dim, int, int] | None:
    """``(x, a, k)`` if ``value`` is ``x // a + k`` with ints a and k; otherwise None."""
    terms = dict(value.terms)
    constant = terms.pop((), 0)
    atom = Expression(tuple(terms.items())).only_atom
    if atom is None or atom.function != "//":
        return None
    numerator, denominator = atom.args
    return (numerator, denominator, constant) if isinstance(denominator, int) else None


def _operand(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _term_text(monomial: Monomial, count: int) -> str:
    if not monomial:
        return str(count)
    alone = len(monomial) == 1 and count == 1
    text = "*".join(
        atom.key if alone or atom.function not in _INFIX else f"({atom.key})" for atom in monomial
    )
    return text if count == 1 else f"-{text}" if count == -1 else f"{count}*{text}"
