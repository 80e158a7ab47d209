"""The options of the bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from te_select.bench.peers.base import Peer


@dataclass(frozen=True)
class Options:
    """How to measure.

    Parameters
    ----------
    target
        What to compile the kernel for.
    peers
        The peers that are available.
    rounds
        Rounds of each row; None for `te_select.bench.contest.ROUNDS`, or fewer if a row would take
        long.
    named
        Whether to measure the kernel with every dim named too.
    cold
        Whether calls go through sets of operands larger than twice the last-level cache.
    tuning_logs
        As for `te_select.compile`.
    """

    target: str = "native"
    peers: Sequence[Peer] = ()
    rounds: int | None = None
    named: bool = False
    cold: bool = False
    tuning_logs: str | Literal[False] | None = None
