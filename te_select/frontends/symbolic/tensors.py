"""What is known about a tensor before the model runs, and how two such views are joined."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from te_select.frontends.symbolic.expressions import (
    UNKNOWN,
    Dim,
    Expression,
    Scalar,
    as_size,
    symbol,
)

Dims = tuple[Dim, ...]
Values = NDArray[Any]
"""Objects: ints, bools, floats, expressions, or `UNKNOWN`."""

_FRESH = "?"
_LARGEST_DIM = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known about a tensor.

    Parameters
    ----------
    dtype
        The format's name of the element type; None if it is not known.
    shape
        Its dims; None if not even the rank is known.
    values
        Its elements, for small tensors of ints from which shapes are made; otherwise None.
    constant
        Whether it is the same at every call.
    """

    dtype: str | None = None
    shape: Dims | None = None
    values: Values | None = None
    constant: bool = False

    @property
    def is_literal(self) -> bool:
        """Whether its type is known, and all its dims are ints."""
        dims = self.shape or ()
        return self.dtype is not None and all(isinstance(dim, int) for dim in dims)


class Sizes:
    """Names for sizes about which nothing is known, and where each of them occurs first."""

    def __init__(self) -> None:
        self._met: list[str] = []

    def fresh(self, met: str) -> Expression:
        """Name a size that is equal to no other.

        Parameters
        ----------
        met
            The thing that has this size, for people.
        """
        self._met.append(met)
        return symbol(f"{_FRESH}{len(self._met) - 1}")

    def met(self, name: str) -> str:
        """Say which thing has a fresh size."""
        return self._met[int(name.removeprefix(_FRESH))]

    def mark(self) -> int:
        """Mark the sizes that have been named so far."""
        return len(self._met)

    def dims(
        self, found: Sequence[Scalar], tensor: str, stated: Sequence[Scalar] | None = None
    ) -> Dims:
        """Dims that are known; each of the others is a fresh size.

        Parameters
        ----------
        found
            The dims as they follow from other tensors.
        tensor
            The tensor, for people.
        stated
            The dims as the file says them; its ints are trusted.
        """
        dims: list[Dim] = []
        for axis, (said, value) in enumerate(zip(stated or found, found, strict=True)):
            dim = as_size(value)
            if stated is not None and isinstance(said, int):
                dims.append(said)
            elif isinstance(dim, Expression) or (isinstance(dim, int) and 0 <= dim <= _LARGEST_DIM):
                dims.append(dim)
            else:
                dims.append(self.fresh(f"dim {axis} of {tensor}"))
        return tuple(dims)


def is_fresh(name: str) -> bool:
    """Whether a name was given by `Sizes.fresh`."""
    return name.startswith(_FRESH)


def newer(dim: Dim, mark: int) -> bool:
    """Whether a dim contains sizes that were named after `Sizes.mark`."""
    names = dim.names if isinstance(dim, Expression) else ()
    return any(is_fresh(name) and int(name.removeprefix(_FRESH)) >= mark for name in names)


def is_open(dim: Dim) -> bool:
    """Whether a dim is a single fresh size, about which nothing is known."""
    atom = dim.only_atom if isinstance(dim, Expression) else None
    return atom is not None and is_fresh(atom.key)


def broadcast_dim(dims: Iterable[Dim]) -> Scalar:
    """The dim to which several broadcast, in a model that runs; `UNKNOWN` if it is not known."""
    found = set(dims) - {1}
    wide = {dim for dim in found if not any(is_cut(dim, other) for other in found)}
    if not wide:
        return 1
    ints = [dim for dim in wide if isinstance(dim, int)]
    if ints:
        return ints[0] if len(ints) == 1 else UNKNOWN
    return wide.pop() if len(wide) == 1 else UNKNOWN


def is_cut(dim: Dim, size: Dim) -> bool:
    """Whether a dim is ``min(n, size)`` for an int n above 1.

    It broadcasts with ``size`` only if the two are equal. If ``min(n, size)`` is 1, then so is
    ``size``, because n is above 1. Such a dim is a table of n rows, cut to the length of a
    sequence.
    """
    atom = dim.only_atom if isinstance(dim, Expression) else None
    if atom is None or atom.function != "min":
        return False
    limit, other = atom.args
    return isinstance(limit, int) and limit > 1 and other == size


def broadcast_dims(shapes: Sequence[Dims]) -> tuple[Scalar, ...]:
    """The dims to which shapes broadcast, aligned on the right."""
    rank = max(map(len, shapes), default=0)
    return tuple(
        broadcast_dim(shape[axis] for shape in shapes if -axis <= len(shape))
        for axis in range(-rank, 0)
    )


def agree(shape: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two shapes may be those of one tensor: equal ranks, and no two ints that differ."""
    return len(shape) == len(other) and all(
        p == q
        for p, q in zip(shape, other, strict=True)
        if isinstance(p, int) and isinstance(q, int)
    )


def join(tensors: Sequence[Tensor], differing: Callable[[int, tuple[Dim, ...]], Dim]) -> Tensor:
    """What holds for a tensor that is one of several.

    Parameters
    ----------
    tensors
        The tensors.
    differing
        Names the dim of an axis, given the dims that differ there.
    """
    dtypes = {tensor.dtype for tensor in tensors}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    constant = all(tensor.constant for tensor in tensors)
    shapes = [tensor.shape for tensor in tensors if tensor.shape is not None]
    if len(shapes) < len(tensors) or len(set(map(len, shapes))) > 1:
        return Tensor(dtype, constant=constant)
    dims = tuple(
        met[0] if len(set(met)) == 1 else differing(axis, met)
        for axis, met in enumerate(zip(*shapes, strict=True))
    )
    held = [tensor.values for tensor in tensors if tensor.values is not None]
    if len(held) < len(tensors) or len({values.shape for values in held}) > 1:
        return Tensor(dtype, dims, constant=constant)
    return Tensor(dtype, dims, np.asarray(functools.reduce(_SAME, held), object), constant)


def _same(p: Scalar, q: Scalar) -> Scalar:
    return p if type(p) is type(q) and p == q else UNKNOWN


_SAME = np.frompyfunc(_same, 2, 1)
