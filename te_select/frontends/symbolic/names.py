"""Names for the sizes of a model: identifiers, each for one size, with what they stand for."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from te_select.frontends.symbolic.expressions import Dim, Expression
from te_select.frontends.symbolic.tensors import Dims, Sizes, is_fresh, is_open

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_LOCAL = re.compile(r"d\d+")
_FRESH = re.compile(r"\?\d+")
_KEPT = 50  # characters of a longer name; a hash distinguishes names with the same beginning


@dataclass(frozen=True)
class Named:
    """The dims of one node by name.

    Parameters
    ----------
    names
        The name of each expression.
    texts
        What each name stands for.
    """

    names: Mapping[Expression, str]
    texts: Mapping[str, str]

    def shape(self, dims: Dims) -> tuple[int | str, ...]:
        """Write dims in the form that a workload takes."""
        return tuple(self.names[dim] if isinstance(dim, Expression) else dim for dim in dims)


class Names:
    """The names of a file.

    A size of the file's inputs has one name in the whole file. So has every expression of such
    sizes. A size about which nothing is known is ``d0``, ``d1``, ... in its node, so that nodes
    that differ only in such sizes have one workload.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._texts: dict[Expression, str] = {}
        self._names: dict[Expression, str] = {}
        self._fresh: dict[str, str] = {}
        self._taken: set[str] = set()

    def give(self, dims: Iterable[tuple[Dim, str, str]]) -> None:
        """Note the names of the sizes of the file's inputs.

        Parameters
        ----------
        dims
            Each size; its meaning, for people; and the text from which its name is made. An
            identifier is kept unchanged. Ints and sizes that have a name already are skipped.
        """
        for dim, text, wish in sorted(dims, key=lambda given: not _IDENTIFIER.fullmatch(given[2])):
            if isinstance(dim, Expression) and dim not in self._texts:
                self._texts[dim] = text
                name = self._name(dim, wish)
                if is_open(dim):
                    self._fresh[str(dim)] = name

    def of_node(self, shapes: Iterable[Dims]) -> Named:
        """Name every expression in the shapes of a node."""
        names: dict[Expression, str] = {}
        texts: dict[str, str] = {}
        for dim in (dim for shape in shapes for dim in shape):
            if not isinstance(dim, Expression) or dim in names:
                continue
            unknown = any(is_fresh(name) and name not in self._fresh for name in dim.names)
            name = self._local(names.values()) if unknown else self._name(dim, self._text(dim))
            names[dim] = name
            texts[names[dim]] = self._text(dim)
        return Named(names, texts)

    def _local(self, used: Iterable[str]) -> str:
        taken = {*used, *self._taken}
        return next(name for name in map("d{}".format, itertools.count()) if name not in taken)

    def _name(self, dim: Expression, wish: str) -> str:
        """The one name of a size in this file."""
        if dim not in self._names:
            name, count = identifier(wish), 1
            while name in self._taken or (_LOCAL.fullmatch(name) and name != wish):
                count += 1
                name = identifier(f"{wish}_{count}")
            self._taken.add(name)
            self._names[dim] = name
        return self._names[dim]

    def _text(self, dim: Expression) -> str:
        if dim in self._texts:
            return self._texts[dim]
        return _FRESH.sub(
            lambda met: self._fresh.get(met[0]) or f"({self._sizes.met(met[0])})", str(dim)
        )


def identifier(text: str) -> str:
    """Make an identifier from any text; the same text always gives the same identifier."""
    if _IDENTIFIER.fullmatch(text):
        return text
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    cleaned = f"dim_{cleaned}" if not cleaned or cleaned[0].isdigit() else cleaned
    if _IDENTIFIER.fullmatch(cleaned):
        return cleaned
    return f"{cleaned[:_KEPT]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
