"""How the next config is chosen.

The default comes first, then the configs of records near by, then those that differ from the
default in one knob, or in two that the machine decides. Their times say what each value is worth.
Of a space that is larger than the trials, MetaSchedule's evolutionary search proposes the
others, with a cost model that multiplies these. Else, and where it proposes nothing new, the best
predicted come next. The search ends when nothing untried is predicted to be `GAIN` faster than the
best.

With the same seed and the same times the same configs are proposed, so an interrupted session can
be repeated up to where it stopped.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

from te_select import forks
from te_select.tuning.evolution import BATCH, Evolution
from te_select.tuning.space import SecondsOf, Space, Worth, one_by_one, pairs_of_machine

GAIN = 1.01  # times as fast as the best; what promises less is not worth a trial
Batches: TypeAlias = Iterator[list[Any]]
"""Proposes configs; the times of a batch are known before the next is asked for."""


def search(
    space: Space,
    trials: int,
    seconds_of: SecondsOf,
    known: Sequence[Any] = (),
    seed: int = 0,
    patient: bool = False,
    evolves: bool = True,
) -> Batches:
    """Propose configs of a space.

    Parameters
    ----------
    space
        The space.
    trials
        How many configs may be measured.
    seconds_of
        Asked for the configs of a batch before the next batch is proposed.
    known
        Configs of records near by.
    seed
        Decides what evolution proposes.
    patient
        Whether to go on when nothing is predicted to be faster than the best.
    evolves
        Whether MetaSchedule may search; it cannot for a function with named dims.

    Yields
    ------
    list of Config
        A batch; no two configs have one effect.
    """
    every, extra = space.configs, {space.effect(config): config for config in known}
    left = {space.effect(config): config for config in every}
    times: dict[object, float] = {}

    def batch(proposed: Iterable[Any]) -> list[Any]:
        """Of the proposed those that are new, as many as trials are left."""
        keys = (key for key in dict.fromkeys(map(space.effect, proposed)) if key not in times)
        new = (key for key in keys if key in left or key in extra)
        found = {key: left.pop(key, extra.get(key)) for key in islice(new, trials - len(times))}
        times.update(dict.fromkeys(found, math.inf))
        return list(found.values())

    def learn(configs: Iterable[Any]) -> None:
        times.update({space.effect(each): seconds_of(each) or math.inf for each in configs})

    def time_of(config: Any) -> float | None:
        return times.get(space.effect(config))

    for proposed in (every[:1], [*known, *one_by_one(every), *pairs_of_machine(every)]):
        if found := batch(proposed):
            yield found
            learn(found)
    worth = Worth(every, time_of)
    evolution = None
    surprises = [1.0]
    while left and len(times) < trials:
        hopeful = sorted(left.values(), key=worth.predict)
        default = times[space.effect(every[0])]
        promised = worth.predict(hopeful[0]) * default * statistics.median(surprises)
        if not patient and promised * GAIN > min(times.values()):
            return
        if evolution is None and evolves and len(every) > trials:
            with forks.no_fork_during():
                evolution = Evolution(space, worth, trials, seed)
        found = batch(evolution.propose() if evolution else ()) or batch(hopeful[:BATCH])
        yield found
        learn(found)
        # What only noise had promised, these did not keep.
        told = ((times[space.effect(each)], worth.predict(each) * default) for each in found)
        surprises += [took / said for took, said in told if took < math.inf and said < math.inf]
        if evolution:
            with forks.no_fork_during():
                evolution.tell(time_of)
