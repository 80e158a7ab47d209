"""MetaSchedule's evolutionary search over the configs of a workload, with a cost model of ours."""

from __future__ import annotations

import contextlib
import logging
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import IRModule, s_tir
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.logging import get_logging_func
from tvm.s_tir.meta_schedule.mutator import PyMutator

from te_select import forks
from te_select.backends import limits, schedule_of
from te_select.backends.targets import ResolvedTarget
from te_select.errors import ArgumentError
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.operator.workload import Workload
from te_select.tuning.prediction import SecondsOf, Worth

BATCH = 16  # configs proposed at a time; evolution learns between batches
POPULATION = 32  # configs; 64 took 1 s a batch, 32 half of it, and the best are among them (Zen 3)
_GENERATIONS = 2
_SHARE_MEASURED = 0.5  # of a population; the rest is sampled anew

Batches: TypeAlias = Iterator[list[Any]]
"""Proposes configs; the times of a batch are known before the next is asked for."""


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


class Evolution:
    """MetaSchedule's evolutionary search, with numbers to mutate and a design per structure.

    Its cost model is `Worth`. TVM's own models look at features of loops, but two configs differ
    mostly inside the span.
    """

    def __init__(
        self,
        workload: Workload,
        target: ResolvedTarget,
        every: Sequence[Any],
        worth: Worth,
        trials: int,
        seed: int,
        cpus: int | None,
    ) -> None:
        self._schedule = schedule_of(target.kind)
        self._target = target.tvm
        self._sized = workload
        self._pattern = access_pattern(workload)
        self._every = sorted(every, key=worth.predict)
        self._trials, self._cpus = trials, cpus
        mod = IRModule({"main": definition(workload)})
        space = self._schedule.space(self._pattern, target.tvm)
        numbers = {name: list(space[name]) for name in self._schedule.NUMBERS}
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(mod)
        self._context = _context(
            mod,
            self._target,
            ms.space_generator.ScheduleFn(
                lambda sch: sch,  # not called: the designs are made here
                sch_rules=[],
                postprocs=[],
                mutator_probs={_mutator(seed): 1.0},
            ),
            ms.search_strategy.EvolutionarySearch(
                population_size=POPULATION,
                init_measured_ratio=_SHARE_MEASURED,
                init_min_unmeasured=POPULATION // 2,
                genetic_num_iters=_GENERATIONS,
            ),
            seed,
        )
        self._context.pre_tuning(
            max_trials=trials,
            num_trials_per_iter=BATCH,
            design_spaces=self._designs(s_tir.Schedule(mod, seed=seed + 1), numbers),
            database=self._database,
            cost_model=_cost_model(self._schedule.config_of, worth),
        )

    def batches(self, measured: Mapping[Any, float | None], seconds_of: SecondsOf) -> Batches:
        """Propose what evolution proposes, then the best predicted while trials are left.

        ``measured`` has the configs that were measured before, which count as trials.
        """
        known = {self._dedup_key(config): seconds for config, seconds in measured.items()}
        proposed: list[tuple[Any, tuple[object, ...]]] = []
        batch: dict[tuple[object, ...], Any] = {}
        left = self._trials - len(known)
        while batch or proposed or left:
            if batch:
                yield list(batch.values())
                known |= {key: seconds_of(config) for key, config in batch.items()}
            left = self._trials - len(known)
            with forks.no_fork_during(), _interrupt_afterwards():
                if proposed:
                    self._notify([(each, known[key]) for each, key in proposed if key in known])
                found = list(self._context.generate_measure_candidates() or []) if left else []
                configs = [self._schedule.config_of(each.sch) for each in found]
            configs = configs or self._every
            keys = [self._dedup_key(config) for config in configs]
            proposed = list(zip(found, keys, strict=False))  # none of those that are predicted
            new = zip(keys, configs, strict=True)
            batch = dict(islice(((k, c) for k, c in dict(new).items() if k not in known), left))

    def _notify(self, timed: Sequence[tuple[Any, float | None]]) -> None:
        """Tell evolution the times of what it has proposed."""
        results = []
        for each, time in timed:
            seconds = None if time is None else [time]
            error = "failed" if time is None else None
            results.append(ms.runner.RunnerResult(seconds, error))
            if seconds is not None:
                self._database.commit_tuning_record(
                    ms.database.TuningRecord(
                        each.sch.trace, self._workload, seconds, self._target, each.args_info
                    )
                )
        self._context.notify_runner_results([each for each, _ in timed], results)

    def _dedup_key(self, config: Any) -> tuple[object, ...]:
        key: tuple[object, ...] = self._schedule.dedup_key(self._pattern, config, self._cpus)
        return key

    def _designs(self, sch: s_tir.Schedule, numbers: dict[str, list[int]]) -> list[s_tir.Schedule]:
        """One schedule for each of the best structures, with random variables for its numbers.

        A structure is left out if TVM cannot fuse loops as large as these. A design takes 4 ms,
        and a batch proposes no more of them.
        """
        fixed: dict[str, Any] = dict.fromkeys(numbers, 1)
        structures = dict.fromkeys(replace(config, **fixed) for config in self._every)
        designs = []
        for structure in islice(structures, BATCH):
            design = sch.copy()
            drawn: dict[str, Any] = {
                name: design.sample_categorical(values, [1.0 / len(values)] * len(values))
                for name, values in numbers.items()
            }
            with contextlib.suppress(ArgumentError):
                self._apply(design, replace(structure, **drawn))
                designs.append(design)
        return designs

    def _apply(self, sch: s_tir.Schedule, config: Any) -> None:
        with limits.tvm_errors_as_ours(self._sized):
            self._schedule.apply(sch, self._pattern, self._target, config)


def _mutator(seed: int) -> Any:
    """A mutator that draws one number anew; MetaSchedule's own do not change plain choices."""

    @derived_object
    class RedrawNumber(PyMutator):  # type: ignore[misc]  # TVM is untyped
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


def _cost_model(config_of: Callable[[Any], Any], worth: Worth) -> Any:
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
