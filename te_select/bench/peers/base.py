"""The base class of the bench's peers, and those of other packages.

These register theirs under the entry point ``te_select.peers``.
"""

import abc
import importlib
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from te_select.operator.workload import Workload
from te_select.verify.reference import Array

Call = Callable[[], Any]
GROUP = "te_select.peers"
load = importlib.import_module  # of what only some machines have


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

    name: str
    modules: tuple[str, ...] = ()
    install: str = ""
    on_device: bool | None = False

    def available(self) -> str | None:
        """Why this peer cannot run here, or None if it can."""
        try:
            for module in self.modules:
                load(module)
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


def words(array: Array) -> Array:
    """The array as unsigned integers of its width, for systems that lack its element type."""
    if array.dtype.itemsize > np.dtype(np.uint64).itemsize:
        raise UnsupportedError(f"has no elements of {array.dtype.itemsize} bytes")
    return array.view(f"u{array.dtype.itemsize}")


def with_plugins(peers: Sequence[type[Peer]]) -> tuple[type[Peer], ...]:
    """Add the peers that are installed as plug-ins.

    A plug-in is an entry point of the group ``te_select.peers``. It names a class, a subclass of
    `te_select.bench.peers.Peer`, or of `te_select.bench.cuda.peers.CudaPeer` for GPUs.

    Parameters
    ----------
    peers
        The peers of a kind of machine.

    Returns
    -------
    tuple of classes
        ``peers``, and the plug-ins for this kind of machine. One that cannot be loaded, or that has
        the name of another peer, is there as a peer that says why it is absent.
    """
    on_device = any(peer.on_device for peer in peers)
    found = list(peers)
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name):
        where = f"the plug-in {entry.value}"
        try:
            peer = entry.load()
        except Exception as error:  # other people's code: whatever it raises is a finding
            peer = _broken(entry.name, f"{where} raises {first_line(error)}")
        if not (isinstance(peer, type) and issubclass(peer, Peer)):
            peer = _broken(entry.name, f"{where} is no subclass of Peer")
        if peer.name in {each.name for each in found}:
            peer = _broken(entry.name, f"{where} takes the name {peer.name}")
        if peer.on_device in (on_device, None):
            found.append(peer)
    return tuple(found)


def _broken(entry: str, why: str) -> type[Peer]:
    """A peer that is absent."""

    class Broken(Peer):
        name = entry
        on_device = None

        def available(self) -> str:
            return why

        def prepare(self, workload: Workload, sets: Sequence[Any]) -> list[Call]:
            raise UnsupportedError(why)

    return Broken
