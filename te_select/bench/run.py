"""Runs a suite: every contestant verified, then timed in turns beside the roof."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence

from te_select import kinds
from te_select.backends.targets import resolve
from te_select.bench.contest import Contest, decided
from te_select.bench.row import PROBE, Options, Row
from te_select.bench.stage import Stage
from te_select.bench.suite import Entry
from te_select.operator.access import access_pattern
from te_select.timing.operands import Mask, make_operands
from te_select.timing.rounds import Timing


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
    kernel = contest.add_kernels(workload, options)
    contest.add_peers(workload, options.peers)
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
