"""MetaSchedule's evolutionary search over the configs of a workload, with a cost model of ours."""

from __future__ import annotations

import contextlib
import logging
import math
import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import IRModule, s_tir
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.logging import get_logging_func

from te_select import forks
from te_select.backends import limits
from te_select.errors import ArgumentError
from te_select.operator.definition import definition
from te_select.tuning.space import Space, Worth

BATCH = 16  # configs proposed at a time; evolution learns between batches
POPULATION = 32  # configs; 64 took 1 s a batch, 32 half of it, and the best are among them (Zen 3)
_GENERATIONS = 2
_SHARE_MEASURED = 0.5  # of a population; the rest is sampled anew


class Evolution:
    """MetaSchedule's evolutionary search, with numbers to mutate and a design per structure.

    Its cost model is `Worth`. TVM's own models look at features of loops, but two configs differ
    mostly inside the span.
    """

    def __init__(self, space: Space, worth: Worth, trials: int, seed: int) -> None:
        self._config_of = space.schedule.config_of
        self._target = space.target.tvm
        mod = IRModule({"main": definition(space.workload)})
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(mod)
        self._proposed: list[tuple[Any, Any]] = []
        design = ms.space_generator.ScheduleFn(
            lambda sch: sch,  # not called: the designs are made here
            sch_rules=[],
            postprocs=[],
            mutator_probs={_mutator(seed): 1.0},
        )
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION,
            init_measured_ratio=_SHARE_MEASURED,
            init_min_unmeasured=POPULATION // 2,
            genetic_num_iters=_GENERATIONS,
        )
        self._context = _context(mod, self._target, design, strategy, seed)
        self._context.pre_tuning(
            max_trials=trials,
            num_trials_per_iter=BATCH,
            design_spaces=_designs(s_tir.Schedule(mod, seed=seed + 1), space, worth),
            database=self._database,
            cost_model=_cost_model(self._config_of, worth),
        )

    def propose(self) -> list[Any]:
        """The next configs, of which some may be known."""
        with forks.no_fork_during(), _interrupt_afterwards():
            found = list(self._context.generate_measure_candidates() or [])
            self._proposed = [(each, self._config_of(each.sch)) for each in found]
        return [config for _, config in self._proposed]

    def tell(self, time_of: Callable[[Any], float | None]) -> None:
        """Tell the times of what was proposed and measured; infinite for a failure."""
        told = [(each, time_of(config)) for each, config in self._proposed]
        timed = [(each, seconds) for each, seconds in told if seconds is not None]
        results = []
        for each, seconds in timed:
            ran = seconds < math.inf
            reason = None if ran else "failed"
            results.append(ms.runner.RunnerResult([seconds] if ran else None, reason))
            if ran:
                record = ms.database.TuningRecord(
                    each.sch.trace, self._workload, [seconds], self._target, each.args_info
                )
                self._database.commit_tuning_record(record)
        if timed:
            with _interrupt_afterwards():
                self._context.notify_runner_results([each for each, _ in timed], results)


@contextlib.contextmanager
def _interrupt_afterwards() -> Iterator[None]:
    """Hold Ctrl-C until the end: TVM's threads would make an empty RuntimeError of it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


def _designs(sch: s_tir.Schedule, space: Space, worth: Worth) -> list[s_tir.Schedule]:
    """One schedule for each of the best structures, with random variables for its numbers.

    A structure is left out if TVM cannot fuse loops as large as these. A design takes 4 ms, and a
    batch proposes no more of them.
    """
    numbers = {name: list(space.values[name]) for name in space.schedule.NUMBERS}
    fixed: dict[str, Any] = dict.fromkeys(numbers, 1)
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


def _mutator(seed: int) -> Any:
    """A mutator that draws one number anew; MetaSchedule's own do not change plain choices."""

    @derived_object
    class RedrawNumber(ms.mutator.PyMutator):  # type: ignore[misc]  # TVM is untyped
        def __init__(self) -> None:
            super().__init__()
            self.random = random.Random(seed)

        def _initialize_with_tune_context(self, context: Any) -> None:
            """Do nothing: the context is not needed."""

        def apply(self, trace: Any, _: Any) -> Any:
            choices = [i for i in trace.insts if i.kind.name == "SampleCategorical"]
            chosen = self.random.choice(choices)
            count = len(chosen.attrs[0])
            return trace.with_decision(chosen, self.random.randrange(count), remove_postproc=True)

        def clone(self) -> Any:
            return RedrawNumber()

    return RedrawNumber()


def _cost_model(config_of: Any, worth: Worth) -> Any:
    """A cost model that ranks configs by what their knobs are worth."""

    @derived_object
    class OfWorth(ms.cost_model.PyCostModel):  # type: ignore[misc]  # TVM is untyped
        def predict(self, _context: Any, candidates: Sequence[Any]) -> npt.NDArray[np.float64]:
            return np.array([1 / worth.predict(config_of(each.sch)) for each in candidates])

        def update(self, _context: Any, _candidates: Any, _results: Any) -> None:
            """Do nothing: the worth of the knobs is known."""

    return OfWorth()


def _context(mod: IRModule, target: Any, space: Any, strategy: Any, seed: int) -> Any:
    """Make a TuneContext; the caller must keep it, because its strategy does not.

    TuneContext's own constructor parses 248 tensor intrinsics of other machines, which took 21 s.
    """
    context = ms.TuneContext.__new__(ms.TuneContext)
    logger = logging.getLogger("te_select.tuning")
    logger.setLevel(logging.ERROR)  # MetaSchedule's own prints a page for each batch
    context.__init_handle_by_constructor__(
        tvm_ffi.get_global_func("s_tir.meta_schedule.TuneContext"),
        mod,
        target,
        space,
        strategy,
        "main",
        1,  # thread: mutators are Python, and with one thread the result is reproducible
        seed + 1,  # TVM treats the seed 0 as 1
        get_logging_func(logger),
    )
    tvm_ffi.get_global_func("s_tir.meta_schedule.TuneContextInitialize")(context)
    return context
