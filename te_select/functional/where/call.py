"""The callable `te_select.where`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from te_select.functional.where.kernels import library
from te_select.functional.where.kinds_of_tensors import by_type
from te_select.functional.where.numpy_rules import leave, left
from te_select.operator import family

_DOC = """Select element by element: ``out[i] = x[i] if cond[i] else y[i]``, as numpy.where does.

The results are those of ``numpy.where``, bit for bit, with the same type, shape and layout; kernels
that are compiled for this CPU make them. What kernels do not serve goes to ``numpy.where`` itself.

Parameters
----------
cond
    Of any type; nonzero is true. Without x and y the result is ``numpy.nonzero(cond)``.
x, y
    Arrays or numbers that broadcast with cond, or tensors of torch, JAX or CuPy.
out
    An array of the result's type and shape to write to, of any strides; it may be x or y. None for
    a new one.

Returns
-------
ndarray
    out, or a new array; for tensors of another library, a tensor of that library.

Raises
------
TypeError
    If out has another element type, or the element types do not promote.
ValueError
    If the shapes do not broadcast, or out has another shape or is read-only.

Notes
-----
``numpy.where``; "NEP 50", for numbers. ``te_select.where.stats()`` says what kernels have served.
"""


@dataclass(frozen=True)
class Stats:
    """What has become of the calls of this process.

    Parameters
    ----------
    calls, elements
        Calls that kernels have served, and elements that they have written.
    large_calls
        Those of the calls that had more than 4,096 elements.
    left
        Calls that were left to numpy.where, by the reason.
    """

    calls: int
    elements: int
    large_calls: int
    left: Mapping[str, int]


class Where(Protocol):
    """The type of `te_select.where`."""

    def __call__(self, cond: Any, x: Any = ..., y: Any = ..., /, *, out: Any = None) -> Any:
        """Select; see `te_select.where`."""

    def stats(self) -> Stats:
        """What kernels have served, and what numpy.where."""

    def build(self, path: str | None = None, target: str = "native") -> Path:
        """Build all kernels, into the cache or a library to ship."""

    def use(self, path: str) -> None:
        """Take the kernels of a library that was shipped."""


def build(path: str | None = None, target: str = "native") -> Path:
    """Build all kernels of `te_select.where`; see `building.build`."""
    from te_select.functional.where.kernels import building  # noqa: PLC0415 - imports tvm

    return building.build(path, target)


def _fetch(width: int) -> bool:
    """Load the kernels for elements of so many bytes."""
    return library.fetch(family.part_of_width(width))


def _fetch_rows(wish: int) -> bool:
    """Load a kernel of rows that would have served many elements."""
    return library.fetch(family.wished_part(wish))


def _make() -> tuple[Any, Any]:
    """The callable, and what counts its calls."""
    try:
        from te_select.runtime import _extension as extension  # noqa: PLC0415 - optional
    except ImportError:
        from te_select.functional.where import through_tvm_ffi  # noqa: PLC0415

        return through_tvm_ffi.where, through_tvm_ffi.counts
    library.on_load(extension.install)
    return extension.make(leave, _fetch, _fetch_rows, by_type), extension.counts


def _stats() -> Stats:
    calls, elements, large, reasons = _counts()
    return Stats(calls, elements, large, dict(sum((left, type(left)(reasons)), type(left)())))


def _signature() -> inspect.Signature:
    def where(cond: Any, x: Any = ..., y: Any = ..., /, *, out: Any = None) -> Any: ...

    return inspect.signature(where)


_found, _counts = _make()
where: Where = _found
for _name, _value in (
    ("__name__", "where"),
    ("__qualname__", "where"),
    ("__module__", "te_select"),
    ("__doc__", _DOC),
    ("__signature__", _signature()),
    ("stats", _stats),
    ("build", build),
    ("use", library.use),
):
    setattr(where, _name, _value)
