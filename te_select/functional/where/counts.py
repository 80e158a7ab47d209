"""Counts of the calls that go to kernels from Python; the extension counts its own."""

from __future__ import annotations

from te_select.functional.where.kernels import library
from te_select.functional.where.taken import LARGE
from te_select.operator import family

_WORTH = 1 << 22  # elements that a kernel of rows must serve, as in the extension

_counted = [0, 0, 0]
_wishes: dict[int, int] = {}


def count(elements: int, outcome: int) -> None:
    """Count a call that kernels have done, of one of the outcomes in ``where.h``.

    If they lacked a kernel of rows, it is fetched when it would have served many elements.
    """
    _counted[0] += 1
    _counted[1] += elements
    if elements > LARGE:
        _counted[2] += 1
    if outcome:
        _note_wish(outcome - 1, elements)


def fetch_rows(wish: int) -> bool:
    """Load a kernel of rows that would have served many elements."""
    return library.fetch(family.wished_part(wish))


def served() -> tuple[int, int, int]:
    """The calls, the elements, and the calls of many elements so far."""
    calls, elements, large = _counted
    return calls, elements, large


def _note_wish(wish: int, elements: int) -> None:
    before = _wishes.get(wish, 0)
    if before < 0:
        return
    _wishes[wish] = before + elements
    if before + elements >= _WORTH:
        _wishes[wish] = -1
        fetch_rows(wish)
