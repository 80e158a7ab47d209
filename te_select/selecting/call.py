"""The callable `te_select.where`."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any, Protocol

import numpy as np
from numpy import where as numpy_where  # which a program may replace by ours

from te_select.base import forks
from te_select.base.imports import not_installed
from te_select.operator import family, stages
from te_select.runtime.call import capture
from te_select.runtime.call.extension import extension
from te_select.selecting.explain import Explanation, explain
from te_select.selecting.kernels import library
from te_select.selecting.numpy_rules import numpy_fallback
from te_select.selecting.tensor_libraries import by_type, check_out


@dataclass(frozen=True)
class Stats:
    """How the calls of this process were served.

    Parameters
    ----------
    calls, elements
        How many calls kernels have served, and how many elements they have written.
    large_calls
        How many of these calls had more than 4,096 elements.
    left
        How many calls were left to numpy.where, by the reason.
    kernels
        How many elements went to each kernel, by its name, such as ``"w4 n:cte"``. A kernel of rows
        also counts those that went row by row before it was there. Calls that copied tiles, or that
        repeated one element, are left out.
    """

    calls: int
    elements: int
    large_calls: int
    left: Mapping[str, int]
    kernels: Mapping[str, int]


class Where(Protocol):
    """The type of `te_select.where`."""

    def __call__(self, condition: Any, x: Any = None, y: Any = None, /, *, out: Any = None) -> Any:
        """Select element by element: ``out[i] = x[i] if condition[i] else y[i]``.

        The results are those of ``numpy.where``, bit for bit, with the same type, shape and layout.
        Kernels that are compiled for this CPU do the work. Calls that they do not serve go to
        ``numpy.where``.

        Parameters
        ----------
        condition
            An array of any type; nonzero is true. Without x and y, the result is
            ``numpy.nonzero(condition)``.
        x, y
            Arrays or numbers that broadcast with condition, what NumPy makes arrays of, or tensors
            of torch, JAX, CuPy or dask.
        out
            The array to write, of the result's type and shape, with any strides; it may be x or y.
            None for a new one.

        Returns
        -------
        ndarray
            out, or a new array. For tensors of another library, a tensor of that library.

        Raises
        ------
        TypeError
            If out has another element type, or the element types have no common type.
        ValueError
            If the shapes do not broadcast, or out has another shape or is read-only.

        Notes
        -----
        ``numpy.where``; "NEP 50", for numbers. ``te_select.where.stats()`` says what kernels have
        served.
        """

    def stats(self) -> Stats:
        """How many calls kernels have served, and how many numpy.where."""

    def explain(self, cond: Any, x: Any, y: Any, out: Any = None) -> Explanation:
        """How a call would be done, or why it would be left."""

    def build(self, path: str | None = None, target: str = "native") -> Path:
        """Build all kernels, into the cache or a library to ship."""

    def use(self, path: str) -> None:
        """Take the kernels of a library that was shipped."""


@forks.no_fork_during()
def build(path: str | None = None, target: str = "native") -> Path:
    """Build all kernels of `te_select.where`; see `building.build`."""
    try:
        from te_select.selecting.kernels import building  # noqa: PLC0415 - imports tvm
    except ModuleNotFoundError as error:
        raise not_installed("te_select.where.build", error) from error
    return building.build(path, target)


def _load_kernels(width: int, converts: int) -> bool:
    """Load the kernels for elements of this many bytes, and the stages if a call needs one."""
    is_there = library.fetch(family.part_of_width(width))
    return is_there and (not converts or library.fetch(family.STAGES))


def _half_flags() -> int:
    """How stages convert a signalling NaN of float16: as this build of NumPy does."""
    signalling = np.array([0x7D00], np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        is_quiet = signalling.astype(np.float32).view(np.uint32)[0] & 0x00400000
    return stages.QUIET if is_quiet else 0


def _traced(function: Any, *args: Any, **options: Any) -> Any:
    """What torch.compile traces in the place of a call, which goes to the extension."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.compiler.is_compiling():
        return function(*args, **options)
    if function is not where:
        return torch.compiler.disable(function)(*args, **options)  # torch's own cannot be traced
    return _traced_where(torch, *args, **options)


def _traced_where(torch: Any, *args: Any, out: Any = None) -> Any:
    if not any(isinstance(each, torch.Tensor) for each in (*args, out)):
        return _traced_arrays(*args, out=out)
    if len(args) != 3:  # noqa: PLR2004 - cond, x, y
        return torch.where(*args)
    from te_select.selecting import torch_operator  # noqa: PLC0415 - imports torch

    return torch_operator.where(*args, out=out)


def _traced_arrays(*args: Any, out: Any) -> Any:
    """What torch.compile traces if the operands are arrays of NumPy."""
    found = numpy_where(*args)
    if out is None:
        return found
    check_out(out, found)
    out[...] = found
    return out


def _stats() -> Stats:
    """How the calls of this process were served; see `Stats`."""
    calls, elements, large, reasons, by_kernel = extension.counts()
    kernels = family.by_name(memoryview(by_kernel).cast("q"))
    counted = {library.reason(name): count for name, count in reasons.items() if count}
    return Stats(calls, elements, large, counted, kernels)


where: Where = extension.make(
    numpy_fallback, _load_kernels, library.fetch_missing_kernel, by_type, _traced, _half_flags()
)
_of_call = MethodType(Where.__call__, where)
for _name, _value in (
    ("__name__", "where"),
    ("__qualname__", "where"),
    ("__module__", "te_select"),
    ("__doc__", inspect.getdoc(_of_call)),
    ("__signature__", inspect.signature(_of_call)),
    ("stats", _stats),
    ("build", build),
    ("use", library.use),
    ("explain", explain),
):
    setattr(where, _name, _value)

if capture.is_on():
    capture.of_where(where, extension, family.names, library.seconds_of_this_thread)
