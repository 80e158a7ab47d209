"""What the readers of graphs share: the order in which nodes run, and lists of operators."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping, Set
from typing import TypeVar

from te_select.errors import ModelError

_Id = TypeVar("_Id", int, str)
_SHOWN = 8  # nodes of a cycle


def in_order(waits: Mapping[_Id, Set[_Id]], path: str, what: str) -> list[_Id]:
    """Sort nodes, each after those that it waits for.

    Parameters
    ----------
    waits
        For each node, those whose outputs it reads.
    path
        The graph's place.
    what
        A word for the nodes, for people.

    Raises
    ------
    ModelError
        If nodes wait for each other.
    """
    try:
        return list(graphlib.TopologicalSorter(waits).static_order())
    except graphlib.CycleError as error:
        cycle = " -> ".join(f"{path}#{node}" for node in error.args[1][:_SHOWN])
        raise ModelError(f"{what} wait for each other in a cycle: {cycle}") from error


def words(text: str) -> frozenset[str]:
    """The words of a text, such as names of operators."""
    return frozenset(text.split())
