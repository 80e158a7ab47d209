"""How the next config is chosen.

The default comes first, then the configs of records near by. Next each knob is varied alone, or two
that the machine decides; their times give the worth of each value. If the space exceeds the trials,
MetaSchedule's evolutionary search proposes the others, with a cost model that multiplies these
worths. Else, and when it proposes nothing new, the best predicted come next. The search ends when
nothing untried is predicted to be faster than the best by what the effort asks for.

The same seed and times propose the same configs, so an interrupted session can be repeated up to
where it stopped.
"""

import contextlib
import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import IRModule, s_tir
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

from te_select.backends import limits
from te_select.base import forks
from te_select.errors import ArgumentError
from te_select.operator.definition import definition
from te_select.tuning.options import Options
from te_select.tuning.space import SecondsOf, Space, Worth, one_by_one, pairs_of_machine

BATCH = 16  # configs proposed at a time; evolution learns between batches
POPULATION = 32  # configs; 64 took 1 s a batch, 32 half of it, and the best are among them (Zen 3)
_GENERATIONS = 2
_SHARE_MEASURED = 0.5  # of a population; the rest is sampled anew
# Proposes configs; the times of a batch are known before the next is asked for.
Batches = Iterator[list[Any]]


def search(
    space: Space, options: Options, seconds_of: SecondsOf, known: Sequence[Any] = ()
) -> Batches:
    """Propose configs of a space.

    Parameters
    ----------
    space
        The space.
    options
        How many configs may be measured, the seed, and whether to be patient.
    seconds_of
        Asked for the configs of a batch before the next batch is proposed.
    known
        Configs of records near by.

    Yields
    ------
    list of Config
        A batch; no two configs have one effect.
    """
    trials = options.most_trials
    every = space.configs
    offered = {space.effect(config): config for config in (space.default, *known, *every)}
    times: dict[object, float] = {}

    def batch(proposed: Iterable[Any]) -> list[Any]:
        """Of the proposed those that are new, as many as trials are left."""
        keys = dict.fromkeys(map(space.effect, proposed))
        new = (key for key in keys if key in offered and key not in times)
        found = {key: offered[key] for key in islice(new, trials - len(times))}
        times.update(dict.fromkeys(found, math.inf))
        return list(found.values())

    def learn(configs: Iterable[Any]) -> None:
        times.update({space.effect(each): seconds_of(each) or math.inf for each in configs})

    def time_of(config: Any) -> float | None:
        return times.get(space.effect(config))

    changed = [*one_by_one(every), *pairs_of_machine(every)]
    for proposed in ([space.default], [every[0], *known, *changed]):
        if found := batch(proposed):
            yield found
            learn(found)
    worth = Worth(every, time_of)
    evolution = None
    surprises = [1.0]
    while len(times) < min(trials, len(offered)):
        left = [config for key, config in offered.items() if key not in times]
        hopeful = sorted(left, key=worth.predict)
        default = times[space.effect(every[0])]
        promised = worth.predict(hopeful[0]) * default * statistics.median(surprises)
        if not options.patient and promised * options.usual.promise > min(times.values()):
            return
        # MetaSchedule cannot search for a function with named dims.
        if evolution is None and not space.has_names and len(every) > trials:
            evolution = Evolution(space, worth, trials, options.seed)
        found = batch(evolution.propose() if evolution else ()) or batch(hopeful[:BATCH])
        yield found
        learn(found)
        # What only noise had promised, these did not keep.
        told = ((times[space.effect(each)], worth.predict(each) * default) for each in found)
        surprises += [took / said for took, said in told if took < math.inf and said < math.inf]
        if evolution:
            evolution.tell(time_of)


class Evolution:
    """MetaSchedule's evolutionary search, with numbers to mutate and a design per structure.

    Its cost model is `Worth`. TVM's own models look at features of loops, but two configs differ
    mostly inside the span.
    """

    @forks.no_fork_during()
    def __init__(self, space: Space, worth: Worth, trials: int, seed: int) -> None:
        self._config_of = space.schedule.config_of
        self._target = space.target.tvm
        self._proposed: list[tuple[Any, Any]] = []
        mod = IRModule({"main": definition(space.workload)})
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(mod)
        mutators = {RedrawNumber(seed): 1.0}
        design = ms.space_generator.ScheduleFn(  # not called: the designs are made here
            lambda sch: sch, sch_rules=[], postprocs=[], mutator_probs=mutators
        )
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION,
            init_measured_ratio=_SHARE_MEASURED,
            init_min_unmeasured=POPULATION // 2,
            genetic_num_iters=_GENERATIONS,
        )
        # TuneContext's own constructor parses 248 tensor intrinsics of other machines: 21 s. The
        # context is kept, because its strategy does not keep it.
        self._context = ms.TuneContext.__new__(ms.TuneContext)
        # Mutators are Python, and with one thread the result is reproducible. TVM treats the seed
        # 0 as 1. MetaSchedule's own logger prints a page for each batch.
        make = tvm_ffi.get_global_func("s_tir.meta_schedule.TuneContext")
        given = mod, self._target, design, strategy, "main", 1, seed + 1, lambda *_: None
        self._context.__init_handle_by_constructor__(make, *given)
        tvm_ffi.get_global_func("s_tir.meta_schedule.TuneContextInitialize")(self._context)
        self._context.pre_tuning(
            max_trials=trials,
            num_trials_per_iter=BATCH,
            design_spaces=_designs(s_tir.Schedule(mod, seed=seed + 1), space, worth),
            database=self._database,
            cost_model=OfWorth(self._config_of, worth),
        )

    @forks.no_fork_during()
    def propose(self) -> list[Any]:
        """The next configs, of which some may be known."""
        found = _interrupt_afterwards(self._context.generate_measure_candidates) or []
        self._proposed = [(each, self._config_of(each.sch)) for each in found]
        return [config for _, config in self._proposed]

    @forks.no_fork_during()
    def tell(self, time_of: SecondsOf) -> None:
        """Tell the times of what was proposed and measured; infinite for a failure."""
        for each, config in self._proposed:
            if (seconds := time_of(config)) is not None and seconds < math.inf:
                known = each.sch.trace, self._workload, [seconds], self._target, each.args_info
                self._database.commit_tuning_record(ms.database.TuningRecord(*known))


def _interrupt_afterwards(work: Callable[[], Any]) -> Any:
    """Work in a thread, which Ctrl-C does not reach: TVM makes an empty RuntimeError of it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def _designs(sch: s_tir.Schedule, space: Space, worth: Worth) -> list[s_tir.Schedule]:
    """One schedule for each of the best structures, with random variables for its numbers.

    A structure is left out if TVM cannot fuse loops as large as these. A design takes 4 ms, and a
    batch proposes no more of them.
    """
    numbers = {name: list(space.values[name]) for name in space.schedule.NUMBERS}
    fixed = dict.fromkeys(numbers, 1)
    ranked = sorted(space.configs, key=worth.predict)
    structures = dict.fromkeys(replace(config, **fixed) for config in ranked)
    designs = []
    for structure in islice(structures, BATCH):
        design = sch.copy()
        drawn: dict[str, Any] = {
            name: design.sample_categorical(values, [1.0 / len(values)] * len(values))
            for name, values in numbers.items()
        }
        with contextlib.suppress(ArgumentError), limits.tvm_errors_as_ours(space.workload):
            chosen = replace(structure, **drawn)
            space.schedule.apply(design, space.pattern, space.target.tvm, chosen)
            designs.append(design)
    return designs


@derived_object
class RedrawNumber(ms.mutator.PyMutator):  # type: ignore[misc]  # TVM is untyped
    """A mutator that draws one number anew; MetaSchedule's own do not change plain choices."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.random = random.Random(seed)

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Do nothing: the context is not needed."""

    def apply(self, trace: Any, _: Any) -> Any:
        """The trace with one other decision."""
        choices = [i for i in trace.insts if i.kind.name == "SampleCategorical"]
        chosen = self.random.choice(choices)
        drawn = self.random.randrange(len(chosen.attrs[0]))
        return trace.with_decision(chosen, drawn, remove_postproc=True)

    def clone(self) -> Any:
        """Another one that draws the same."""
        return RedrawNumber(self.seed)


@derived_object
class OfWorth(ms.cost_model.PyCostModel):  # type: ignore[misc]  # TVM is untyped
    """A cost model that ranks configs by what their knobs are worth."""

    def __init__(self, config_of: Any, worth: Worth) -> None:
        super().__init__()
        self.config_of = config_of
        self.worth = worth

    def predict(self, _context: Any, candidates: Sequence[Any]) -> npt.NDArray[np.float64]:
        """The speed of each, 1 for the default's."""
        configs = [self.config_of(each.sch) for each in candidates]
        return np.array([1 / self.worth.predict(config) for config in configs])

    def update(self, _context: Any, _candidates: Any, _results: Any) -> None:
        """Do nothing: the worth of the knobs is known."""
