"""What configs are worth before they are measured, by those that differ from the default a bit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from te_select.schedules import knobs

_NOISE = 0.98  # of the default's time; a knob that seems to gain less counts as no gain
SecondsOf: TypeAlias = Callable[[Any], float | None]
"""The seconds of a config that was proposed; None if it failed."""


def changes(config: Any, default: Any) -> dict[str, Any]:
    """The knobs in which a config differs from the default, with its values."""
    theirs = vars(default)
    return {name: value for name, value in vars(config).items() if value != theirs[name]}


def one_by_one(every: Sequence[Any]) -> list[Any]:
    """The configs that differ from the first in one knob: a value of each knob, then the next."""
    by_knob: dict[str, list[Any]] = {}
    for config in every[1:]:
        first, *others = changes(config, every[0])
        if not others:
            by_knob.setdefault(first, []).append(config)
    turns = itertools.zip_longest(*by_knob.values())
    return [config for turn in turns for config in turn if config is not None]


def pairs_of_machine(every: Sequence[Any]) -> list[Any]:
    """The configs that differ from the first in two knobs which the machine decides by default.

    A second thread and plain stores gain together what neither gains alone, in caches.
    """
    decided = {name for name, knob in knobs.of(every[0]).items() if knob.of_machine}
    changed = ((config, changes(config, every[0]).keys()) for config in every)
    return [config for config, names in changed if len(names) == 2 and names <= decided]  # noqa: PLR2004


class Worth:
    """What the values of the knobs are worth, by the configs that differ from the default in one.

    Parameters
    ----------
    every
        The configs, the default first.
    seconds_of
        The seconds of those that were measured.
    """

    def __init__(self, every: Sequence[Any], seconds_of: SecondsOf) -> None:
        self._default = every[0]
        best = seconds_of(self._default)
        self._factors: dict[frozenset[tuple[str, Any]], float] = {}
        for config in (*one_by_one(every), *pairs_of_machine(every)):
            change = frozenset(changes(config, self._default).items())
            seconds = seconds_of(config)
            factor = math.inf if seconds is None or best is None else seconds / best
            self._factors[change] = 1.0 if _NOISE < factor < 1 else factor

    def predict(self, config: Any) -> float:
        """Its time over the default's, if the knobs did not depend on each other.

        A value that was not measured counts as the default's.
        """
        left = frozenset(changes(config, self._default).items())
        factor = 1.0
        for size in (2, 1):  # what two knobs are worth together says more than each alone
            for pair in map(frozenset, itertools.combinations(sorted(left), size)):
                if pair <= left and pair in self._factors:
                    factor *= self._factors[pair]
                    left -= pair
        return factor
