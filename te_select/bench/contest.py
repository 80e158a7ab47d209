"""The contestants of a row: prepared, verified against NumPy, and only then timed."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import te_select
from te_select.bench.options import Options
from te_select.bench.peers.base import Call, Peer, first_line
from te_select.bench.row import NAMED, OURS, Row
from te_select.bench.suite import Entry
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.timing.operands import Mask, Operands
from te_select.timing.rounds import Timing
from te_select.verify.reference import Array, first_difference, placed

ROUNDS, DUEL_ROUNDS = 15, 25
CLOSE = 0.05
POISON = 0xA5  # a contestant that writes nothing leaves this
Set = TypeVar("Set")
Contestant = TypeVar("Contestant")
Result = Callable[[Any, Set], Array]  # from what a call returned and its set, the call's output


@dataclass
class Contest(Generic[Set, Contestant]):
    """The contestants of a row.

    Parameters
    ----------
    sets
        The sets of operands that calls go through.
    check
        Runs a call on a set, and says where its result first differs from NumPy's; empty if the
        two are equal.
    contestant
        Makes a contestant from the calls of all sets.
    """

    sets: Sequence[Set]
    check: Callable[[Call, Set, Result[Set]], str]
    contestant: Callable[[Call], Contestant]
    contestants: dict[str, Contestant] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        name: str,
        prepare: Callable[[], Sequence[Call]],
        result: Result[Set],
        contestant: Callable[[Call], Contestant] | None = None,
    ) -> None:
        """Prepare and verify a contestant; it is ranked only if its result is right."""
        try:
            calls = prepare()
            wrong = self.check(calls[0], self.sets[0], result)
            if wrong:
                self.wrong[name] = wrong
            else:
                self.contestants[name] = (contestant or self.contestant)(in_turns(calls))
        except Exception as error:  # other people's code: whatever it raises is a finding
            self.unsupported[name] = first_line(error)

    def add_kernels(
        self,
        workload: Workload,
        options: Options,
        calls_of: Callable[[te_select.Kernel, Sequence[Set]], Sequence[Call]],
        result: Result[Set],
    ) -> te_select.Kernel:
        """Add our kernel, and one with named dims if the options say so; returns the first."""
        kernels = {OURS: workload} | ({NAMED: name_dims(workload)} if options.named else {})
        compiled = {
            name: te_select.compile(each, options.target, options.tuning_logs)
            for name, each in kernels.items()
        }
        for name, kernel in compiled.items():
            self.add(name, functools.partial(calls_of, kernel, self.sets), result)
        if OURS in self.unsupported:
            # Our kernel must run every workload. If it does not, that is an error.
            self.wrong[OURS] = self.unsupported.pop(OURS)
        return compiled[OURS]

    def add_peers(
        self,
        workload: Workload,
        peers: Sequence[Peer],
        contestant_of: Callable[[Peer], Callable[[Call], Contestant] | None] = lambda _peer: None,
    ) -> None:
        """Add the peers; ``contestant_of`` makes a peer's calls a contestant that can be timed."""
        for peer in peers:
            prepare = functools.partial(peer.prepare, workload, self.sets)
            self.add(peer.name, prepare, peer.result, contestant_of(peer))

    def row(self, entry: Entry, mask: Mask, kernel: te_select.Kernel, **measured: Any) -> Row:
        """The row of a finished contest; ``measured`` holds the row's other fields."""
        return Row(
            entry=entry,
            mask=mask,
            moved=access_pattern(entry.workload).bytes_moved(),
            config=kernel.config,
            origin=kernel.origin,
            wrong=self.wrong,
            unsupported=self.unsupported,
            **measured,
        )


def rows(
    entries: Sequence[Entry], masks: Sequence[Mask], measure: Callable[[Entry, Mask], Row]
) -> Iterator[Row]:
    """Measure every workload under every mask; yields each row as soon as it is measured."""
    for entry, mask in itertools.product(entries, masks):
        with warnings.catch_warnings():
            # torch and JAX warn of what they are slow at, and of each other.
            warnings.simplefilter("ignore")
            row = measure(entry, mask)
        yield row


def in_turns(calls: Sequence[Call]) -> Call:
    """One call that goes through the calls of all sets of operands."""
    if len(calls) == 1:
        return calls[0]
    turns = itertools.cycle(calls)

    def call() -> Any:
        return next(turns)()

    return call


def difference(got: Array, operands: Operands) -> str:
    """Where a result first differs from NumPy's; empty if the two are equal."""
    out = operands.out
    if got.dtype != out.dtype or got.shape != out.shape:
        return f"is {got.dtype} {list(got.shape)}, expected {out.dtype} {list(out.shape)}"
    views = placed(operands.workload, operands.cond, operands.then, operands.else_)
    return first_difference(got, *views)


def decided(
    row: Row,
    contestants: Mapping[str, Contestant],
    turns: Callable[[Mapping[str, Contestant], int], Mapping[str, Timing]],
) -> Row:
    """Repeat close contests with two contestants, until the best peer is not close or was met.

    ``turns`` times contestants over a number of rounds.
    """
    while row.rounds < DUEL_ROUNDS and (best := row.best) is not None and best not in row.duels:
        times = row.times(best)
        if times is None or abs(times - 1) > CLOSE:
            break
        met = turns({name: contestants[name] for name in (OURS, best)}, DUEL_ROUNDS)
        row = replace(row, duels={**row.duels, best: met[best].median / met[OURS].median})
    return row


def name_dims(workload: Workload) -> Workload:
    """The workload with a name for every size except 1; equal sizes have the same name."""

    def named(shape: Sequence[Any]) -> list[Any]:
        return [dim if dim == 1 else f"n{dim}" for dim in shape]

    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
    cond, then, else_ = (named(shape) for shape in shapes)
    return Workload(cond, then, else_, workload.dtype, workload.auto_broadcast, workload.axis)
