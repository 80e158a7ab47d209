"""Other systems that select, each used in the fastest way its users would."""

from collections.abc import Sequence

from te_select.bench.peers.base import Call, Peer, UnsupportedError, with_plugins
from te_select.bench.peers.jit import Jax, TorchCompile
from te_select.bench.peers.kernels import Halide
from te_select.bench.peers.libraries import NumPy, NumPyCopyTo, Torch
from te_select.bench.peers.metaschedule import MetaSchedule, TopiWhere

__all__ = [
    "PEERS",
    "Call",
    "MetaSchedule",
    "Peer",
    "UnsupportedError",
    "choose_peers",
    "with_plugins",
]

PEERS = (
    NumPy,
    NumPyCopyTo,
    Torch,
    TorchCompile,
    Jax,
    Halide,
    TopiWhere,
    MetaSchedule,
)


def choose_peers(names: str, peers: Sequence[type[Peer]] = PEERS) -> list[Peer]:
    """Make the peers that a comma list names.

    Parameters
    ----------
    names
        ``"all"``, ``"none"``, or names such as ``"numpy,torch"``.
    peers
        The peers that exist for the kind of machine.

    Returns
    -------
    list of Peer
        In the order of ``peers``.

    Raises
    ------
    ValueError
        If there is no such peer.
    """
    if names == "none":
        return []
    known = [peer.name for peer in peers]
    wanted = known if names == "all" else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise ValueError(f"names no peer ({name!r}); expected all, none or {', '.join(known)}")
    return [peer() for peer in peers if peer.name in wanted]
