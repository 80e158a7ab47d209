"""Peers of other packages, which register them under the entry point ``te_select.peers``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

from te_select.bench.peers.base import Call, Peer, UnsupportedError, first_line
from te_select.operator.workload import Workload

GROUP = "te_select.peers"


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
