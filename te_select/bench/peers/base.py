"""The base class of the bench's peers."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from te_select.operator.workload import Workload
from te_select.verify.reference import Array

Call = Callable[[], Any]


class UnsupportedError(Exception):
    """A peer that cannot run a workload; the message says why."""


class Peer(abc.ABC):
    """Another system that selects.

    Attributes
    ----------
    name
        Its name in ``--peers`` and in reports.
    modules
        The modules that it imports; it is absent if one of them is missing.
    install
        The pip package that brings them.
    on_device
        Whether it selects on a GPU; None if that is not known, as of a broken plug-in.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""
    on_device: ClassVar[bool | None] = False

    def available(self) -> str | None:
        """Why this peer cannot run here, or None if it can."""
        try:
            for module in self.modules:
                importlib.import_module(module)
        except Exception as error:  # a package that is broken may raise anything
            reason = first_line(error)
            return f"{reason}; pip install {self.install}" if self.install else reason
        return None

    @abc.abstractmethod
    def prepare(self, workload: Workload, sets: Sequence[Any]) -> list[Call]:
        """Compile and bind once, so that a call does nothing except select.

        Parameters
        ----------
        workload
            The workload, of int dims only.
        sets
            Sets of operands, in memory of the machine that is measured; the output of a set may be
            written.

        Returns
        -------
        list of callables
            One for each set.

        Raises
        ------
        UnsupportedError
            If the system does not take the workload.
        Exception
            Any other error of the system; the workload counts as unsupported, too.
        """

    def result(self, value: Any, operands: Any) -> Array:
        """A call's output: by default the set's own output, not the value that was returned."""
        out: Array = operands.out
        return out


def first_line(error: Exception) -> str:
    """An exception's message, short enough for a report."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:160]


def load(module: str) -> Any:
    """Import a module that only some machines have."""
    return importlib.import_module(module)


def words(array: Array) -> Array:
    """The array as unsigned integers of its width, for systems that lack its element type."""
    if array.dtype.itemsize > np.dtype(np.uint64).itemsize:
        raise UnsupportedError(f"has no elements of {array.dtype.itemsize} bytes")
    return array.view(f"u{array.dtype.itemsize}")
