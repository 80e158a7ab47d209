"""TVM's own operator with the schedule that TVM's own tuner finds for it."""

from __future__ import annotations

import logging
import os
import sys
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from te_select.bench.peers.base import Call, Peer, UnsupportedError, first_line, load
from te_select.bench.peers.topi import bind_tensors, where_function
from te_select.operator.workload import Workload
from te_select.timing.cores import threads
from te_select.timing.operands import Operands

TRIALS = 8
_SAMPLES = 3
_SEED = 1  # a row that is measured again tries the same schedules

_POOL: dict[str, Callable[[], int]] = {
    "TVM_NUM_THREADS": threads,  # TVM takes half of the CPUs otherwise
    "TVM_BIND_THREADS": lambda: 0,  # TVM would bind this thread too, and all that it starts later
    # TVM's threads would spin for up to 0.1 s after a call, and slow the next contestant.
    "TVM_THREAD_POOL_SPIN_COUNT": lambda: 1000,
}


class MetaSchedule(Peer):
    """``topi.where`` tuned by MetaSchedule in its default space for this CPU, with all threads.

    That space holds one schedule for a Select, without a random variable. Its rules tile and unroll
    data that is reduced or read several times, and a Select has no such data. The search is TVM's
    own, with random numbers instead of a cost model. Schedules are built and timed in this process,
    because TVM's own builder and runner start other processes, which takes 2 s a schedule.

    Parameters
    ----------
    trials
        How many schedules to try at most; the space may hold fewer.

    Attributes
    ----------
    tried
        How many schedules it has tried for the last workload.
    """

    name = "tvm-metaschedule"
    modules = ("cloudpickle", "psutil", "tvm.s_tir.meta_schedule", "tvm.topi")
    install = "apache-tvm cloudpickle psutil"

    def __init__(self, trials: int = TRIALS) -> None:
        self.trials = trials
        self.tried = 0

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Tune on the first set, compile the best schedule, and bind the operands."""
        for name, value in _POOL.items():
            # TVM's thread pool reads these when it starts, with the first parallel call.
            os.environ.setdefault(name, str(value()))
        function, target = where_function(sets[0]), _target()
        schedule, self.tried = _tune(function, target, sets[0], self.trials)
        main = load("tvm").compile(schedule.mod, target)["main"]
        return [bind_tensors(main, operands) for operands in sets]


def _target() -> Any:
    native = load("te_select.machines.targets").resolve("native").tvm
    return load("tvm.target").Target({**native.export(), "num-cores": threads()})


def _tune(function: Any, target: Any, operands: Operands, trials: int) -> tuple[Any, int]:
    """The best schedule of those that were tried, and how many were tried."""
    tuner = load("tvm.s_tir.meta_schedule")
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.CRITICAL)  # it reports every step
    _import_intrinsics()
    context = tuner.TuneContext(
        function,
        target=target,
        space_generator="post-order-apply",
        # By default it draws 512 schedules at a time. For most workloads there is only one, and the
        # search went on looking for others for 3 to 8 s.
        search_strategy=tuner.search_strategy.EvolutionarySearch(
            population_size=2 * trials, init_min_unmeasured=trials
        ),
        rand_state=_SEED,
        num_threads=threads(),
        logger=logger,
    )
    built: dict[str, Any] = {}
    database = tuner.database.MemoryDatabase()
    tuner.tune_tasks(
        tasks=[context],
        task_weights=[1.0],
        work_dir="",
        max_trials_global=trials,
        builder=_builder(built),
        runner=_runner(built, operands),
        database=database,
        cost_model="random",
        # The other callbacks would delete the folders of artifacts, and train a cost model.
        measure_callbacks=[tuner.measure_callback.AddToDatabase()],
        task_scheduler="round-robin",
    )
    best = tuner.tir_integration.compile_tir(database, function, target)
    if best is None:
        raise UnsupportedError(
            f"none of the schedules that MetaSchedule tried ran ({trials} tried)"
        )
    return best, len(built)


def _import_intrinsics() -> None:
    """Import the tensor intrinsics that the default rules look up, without those of GPUs and DSPs.

    TVM parses them all, which took 20 s for these three.
    """
    package, left_out = "tvm.s_tir.tensor_intrin", ("cuda", "hexagon", "rocm")
    if package in sys.modules:
        return
    names = [f"{package}.{name}" for name in left_out]
    sys.modules.update({name: types.ModuleType(name) for name in names})
    try:
        intrinsics = load(package)
    finally:
        # A later import of one of them gets the real module.
        for name in names:
            del sys.modules[name]
    for name in left_out:
        delattr(intrinsics, name)


def _builder(built: dict[str, Any]) -> Any:
    """A builder that puts what it compiles into ``built``."""
    tvm = load("tvm")
    base = load("tvm.s_tir.meta_schedule.builder.builder")

    class Builder(base.PyBuilder):  # type: ignore[misc, name-defined]
        def build(self, build_inputs: list[Any]) -> list[Any]:
            return [self.compiled(each) for each in build_inputs]

        def compiled(self, one: Any) -> Any:
            key = str(len(built))
            try:
                built[key] = tvm.compile(one.mod, one.target)["main"]
            except Exception as error:  # a schedule that does not compile has lost
                return base.BuilderResult(None, first_line(error))
            return base.BuilderResult(key, None)

    return load("tvm.ir.utils").derived_object(Builder)()


def _runner(built: dict[str, Any], operands: Operands) -> Any:
    """A runner for the schedules in ``built``, on these operands."""
    base = load("tvm.s_tir.meta_schedule.runner.runner")
    derived_object = load("tvm.ir.utils").derived_object

    class Future(base.PyRunnerFuture):  # type: ignore[misc, name-defined]
        def __init__(self, outcome: Any) -> None:
            super().__init__()
            self.outcome = outcome

        def done(self) -> bool:
            return True

        def result(self) -> Any:
            return self.outcome

    class Runner(base.PyRunner):  # type: ignore[misc, name-defined]
        def run(self, runner_inputs: list[Any]) -> list[Any]:
            future = derived_object(Future)
            return [future(self.ran(each)) for each in runner_inputs]

        def ran(self, one: Any) -> Any:
            call = bind_tensors(built[str(one.artifact_path)], operands)
            call()
            return base.RunnerResult([_seconds(call) for _ in range(_SAMPLES)], None)

    return derived_object(Runner)()


def _seconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
