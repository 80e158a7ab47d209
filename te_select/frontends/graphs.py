"""What the readers of graphs share: names of sizes, the order of nodes, lists of operators."""

import graphlib
import hashlib
import re
from collections.abc import Hashable, Mapping, Set
from typing import TypeVar

from te_select.errors import ModelError

_Id = TypeVar("_Id", int, str)
_SHOWN = 8  # nodes of a cycle
_Size = TypeVar("_Size", bound=Hashable)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_KEPT = 50  # characters of a longer name; a hash distinguishes names with the same beginning


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


def named(wishes: Mapping[_Size, str]) -> dict[_Size, str]:
    """Name the sizes of a file.

    Parameters
    ----------
    wishes
        For each size the text from which its name is made. An identifier is kept as it is.

    Returns
    -------
    dict
        The name of each.
    """
    names: dict[_Size, str] = {}
    taken: set[str] = set()
    for size, wish in sorted(wishes.items(), key=lambda each: not _IDENTIFIER.fullmatch(each[1])):
        name = identifier(wish)
        count = 1
        while name in taken:
            count += 1
            name = identifier(f"{wish}_{count}")
        taken.add(name)
        names[size] = name
    return names


def identifier(text: str) -> str:
    """Make an identifier from any text; the same text always gives the same identifier."""
    if _IDENTIFIER.fullmatch(text):
        return text
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    cleaned = f"dim_{cleaned}" if not cleaned or cleaned[0].isdigit() else cleaned
    if _IDENTIFIER.fullmatch(cleaned):
        return cleaned
    return f"{cleaned[:_KEPT]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
