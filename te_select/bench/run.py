"""Runs a suite: every contestant prepared, verified against NumPy, then timed in turns."""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from te_select.backends.targets import resolve
from te_select.base import kinds
from te_select.bench.peers.base import Call, Peer, first_line
from te_select.bench.row import OURS, PROBE, Options, Row
from te_select.bench.stage import Result, Stage
from te_select.bench.suite import Entry
from te_select.compiler.compile import compile
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.call.kernel import Kernel
from te_select.timing.inputs import Mask, make_operands
from te_select.timing.rounds import Timing

DUEL_ROUNDS = 25
CLOSE = 0.05


def run(entries: Sequence[Entry], masks: Sequence[Mask], options: Options) -> Iterator[Row]:
    """Measure every workload under every mask.

    Parameters
    ----------
    entries
        The workloads.
    masks
        How cond is drawn.
    options
        How to measure, and on which kind of machine.

    Yields
    ------
    Row
        As soon as it is measured.

    Raises
    ------
    TargetError
        If this machine has no device of the target's kind.
    """
    stage: Stage = kinds.load(kinds.kind(resolve(options.target).kind).bench)(options.target)
    for entry, mask in itertools.product(entries, masks):
        with warnings.catch_warnings():
            # torch and JAX warn of what they are slow at, and of each other.
            warnings.simplefilter("ignore")
            row = _measure(stage, entry, mask, options)
        yield row


def _measure(stage: Stage, entry: Entry, mask: Mask, options: Options) -> Row:
    workload = entry.workload
    moved = access_pattern(workload).bytes_moved()
    count, cache = stage.count(moved, options.cold)
    sets = stage.sets(lambda seed: make_operands(workload, mask, seed), count)
    contest = Contest(sets, stage)
    kernel = contest.add_ours(workload, options)
    for peer in options.peers:
        contest.add(peer.name, functools.partial(peer.prepare, workload, sets), peer.result, peer)
    roofs = {PROBE + name: each for name, each in stage.roofs(moved, count).items()}
    contestants = contest.contestants | {name: each.call for name, each in roofs.items()}
    rounds = options.rounds or stage.rounds(contestants)
    timings = dict(stage.take_turns(contestants, rounds))
    for name, each in roofs.items():
        timings[name] = Timing(tuple(s / each.repeats for s in timings[name].seconds))
    row = Row(
        entry=entry,
        mask=mask,
        moved=moved,
        cache=cache,
        config=kernel.config,
        origin=kernel.origin,
        rounds=rounds,
        timings=timings,
        roofs={name: each.bytes / timings[name].median for name, each in roofs.items()},
        how={name: each.how for name, each in roofs.items()},
        wrong=contest.wrong,
        unsupported=contest.unsupported,
        queued=stage.queued(contest.contestants),
    )
    return decided(row, contestants, stage.take_turns)


@dataclass
class Contest:
    """The contestants of a row.

    Parameters
    ----------
    sets
        The sets of operands that calls go through.
    stage
        Where they meet.
    """

    sets: Sequence[Any]
    stage: Stage
    contestants: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        name: str,
        prepare: Callable[[], Sequence[Call]],
        result: Result,
        peer: Peer | None = None,
    ) -> None:
        """Prepare and verify a contestant; it is ranked only if its result is right."""
        try:
            calls = prepare()
            if wrong := self.stage.check(calls[0], self.sets[0], result):
                self.wrong[name] = wrong
            else:
                self.contestants[name] = self.stage.contestant(in_turns(calls), peer)
        except Exception as error:  # other people's code: whatever it raises is a finding
            self.unsupported[name] = first_line(error)

    def add_ours(self, workload: Workload, options: Options) -> Kernel:
        """Add our kernel, and return it."""
        kernel = compile(workload, options.target, options.tuning_logs)
        prepare = functools.partial(self.stage.calls, kernel, self.sets)
        self.add(OURS, prepare, self.stage.own_output)
        if OURS in self.unsupported:
            # Our kernel must run every workload. If it does not, that is an error.
            self.wrong[OURS] = self.unsupported.pop(OURS)
        return kernel


def in_turns(calls: Sequence[Call]) -> Call:
    """One call that goes through the calls of all sets of operands."""
    if len(calls) == 1:
        return calls[0]
    turns = itertools.cycle(calls)
    return lambda: next(turns)()  # noqa: PLW0108 - another one at every call


def decided(
    row: Row,
    contestants: Mapping[str, Any],
    turns: Callable[[Mapping[str, Any], int], Mapping[str, Timing]],
) -> Row:
    """Repeat close contests with two contestants, until the best peer is not close or was met.

    ``turns`` times contestants over a number of rounds.
    """
    while row.rounds < DUEL_ROUNDS and (best := row.best) and best not in row.duels:
        times = row.times(best)
        if times is None or abs(times - 1) > CLOSE:
            break
        met = turns({name: contestants[name] for name in (OURS, best)}, DUEL_ROUNDS)
        row = replace(row, duels={**row.duels, best: met[best].median / met[OURS].median})
    return row
