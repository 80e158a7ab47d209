"""A row of the bench: the measurements of one workload with one mask, and how to measure it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from te_select.bench.peers.base import Peer
from te_select.bench.suite import Entry
from te_select.timing.inputs import Mask
from te_select.timing.rounds import Timing

OURS = "te-select"
PROBE = "roof: "
COPY = PROBE + "copy"
SELECT = PROBE + "select"


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
        Rounds of each row; None for `te_select.bench.stage.ROUNDS`, or fewer if a row would take
        long.
    cold
        Whether calls go through sets of operands larger than twice the last-level cache.
    tuning_logs
        As for `te_select.compile`.
    """

    target: str = "native"
    peers: Sequence[Peer] = ()
    rounds: int | None = None
    cold: bool = False
    tuning_logs: str | Literal[False] | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workload with one mask, measured.

    Parameters
    ----------
    entry, mask
        The workload and the mask.
    moved
        Bytes moved: every input element read once and every output element written once.
    cache
        ``"hot"``, or how far the sets of operands displaced each other from the caches.
    config, origin
        The kernel's config and its origin.
    rounds
        How many turns each contestant had.
    timings
        Times of all contestants whose result was right, and of the probes of the roof.
    roofs
        Bytes per second of each probe.
    how
        How each probe moves its bytes.
    wrong, unsupported
        By contestant: the first differing element, or why it cannot run the workload.
    duels
        For peers that were the best and close: their median over the kernel's, head to head.
    queued
        On a device, the contestants whose times include the cost of their launches.
    """

    entry: Entry
    mask: Mask
    moved: int
    cache: str
    config: Mapping[str, Any]
    origin: str
    rounds: int
    timings: Mapping[str, Timing]
    roofs: Mapping[str, float]
    how: Mapping[str, str]
    wrong: Mapping[str, str]
    unsupported: Mapping[str, str]
    duels: Mapping[str, float] = field(default_factory=dict)
    queued: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The row's name, with its mask if that is not the usual one."""
        return label_of(self.entry, self.mask)

    @property
    def ranked(self) -> dict[str, Timing]:
        """Timings of the peers."""
        return {k: v for k, v in self.timings.items() if k not in (OURS, COPY, SELECT)}

    @property
    def best(self) -> str | None:
        """The fastest peer whose result is right, by `times`."""
        ranked = self.ranked
        return min(ranked, key=lambda k: self.times(k) or ranked[k].median, default=None)

    def times(self, other: str | None) -> float | None:
        """The median of another contestant over the kernel's; None without both.

        If the two met again, the medians are those of their rounds head to head.
        """
        if not other or not {OURS, other} <= self.timings.keys():
            return None
        return self.duels.get(other) or self.timings[other].median / self.timings[OURS].median

    def rate(self, name: str) -> float:
        """Bytes per second of a contestant, or of a probe, which moves whole vectors."""
        return self.roofs.get(name) or self.moved / self.timings[name].median

    def share(self, name: str | None) -> float | None:
        """The rate of a contestant over the roof's; None without both."""
        if not self.roof or name is None or name not in self.timings:
            return None
        return self.rate(name) / self.roof

    @property
    def roof(self) -> float | None:
        """Bytes per second of the faster probe."""
        return max(self.roofs.values(), default=None)


def label_of(entry: Entry, mask: Mask) -> str:
    """The name of the row of a workload under a mask."""
    density = f" {mask.density:g} %" if mask.density != 50 else ""  # noqa: PLR2004 - the usual
    return entry.name + density + (f" x{mask.block}" if mask.block > 1 else "")
