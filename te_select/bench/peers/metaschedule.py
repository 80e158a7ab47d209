"""TVM's own operator, without a schedule and with the one that TVM's own tuner finds for it."""

import functools
import logging
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from te_select.bench.peers.base import Call, Peer, UnsupportedError, first_line, load, words
from te_select.operator.workload import Workload
from te_select.timing.cores import threads
from te_select.timing.inputs import Operands
from te_select.timing.rounds import timed

TRIALS = 8
_SAMPLES = 3
_SEED = 1  # a row that is measured again tries the same schedules

_POOL: dict[str, Callable[[], int]] = {
    "TVM_NUM_THREADS": threads,  # TVM takes half of the CPUs otherwise
    "TVM_BIND_THREADS": lambda: 0,  # TVM would bind this thread too, and all that it starts later
    # TVM's threads would spin for up to 0.1 s after a call, and slow the next contestant.
    "TVM_THREAD_POOL_SPIN_COUNT": lambda: 1000,
}


class TopiWhere(Peer):
    """``topi.where`` without a schedule, compiled by TVM for this CPU: one thread."""

    name = "topi.where"
    modules = ("tvm", "tvm.topi")
    install = "apache-tvm"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Compile, and bind the operands through DLPack."""
        target = load("te_select.backends.targets").resolve("native").tvm
        main = load("tvm").compile(where_function(sets[0]), target)["main"]
        return [bind_tensors(main, operands) for operands in sets]


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
        function = where_function(sets[0])
        native = load("te_select.backends.targets").resolve("native").tvm
        target = load("tvm.target").Target({**native.export(), "num-cores": threads()})
        main, self.tried = _tune(function, target, sets[0], self.trials)
        return [bind_tensors(main, operands) for operands in sets]


def where_function(operands: Operands) -> Any:
    """``topi.where`` as a function of TVM, with the elements as unsigned integers."""
    te, topi = load("tvm.te"), load("tvm.topi")
    shapes = [array.shape for array in operands.aligned()]
    element = f"uint{words(operands.out).itemsize * 8}"
    inputs = [*map(te.placeholder, shapes, ("bool", element, element), ("cond", "then", "else_"))]
    return te.create_prim_func([*inputs, topi.where(*inputs)])


def bind_tensors(function: Any, operands: Operands) -> Call:
    """A call of a compiled function on tensors that share the operands' memory."""
    from_dlpack = load("tvm_ffi").from_dlpack
    arrays = [*operands.aligned(), operands.out]
    tensors = [from_dlpack(array if array.dtype == np.bool_ else words(array)) for array in arrays]
    return functools.partial(function, *tensors)


def _tune(function: Any, target: Any, operands: Operands, trials: int) -> tuple[Any, int]:
    """The best of the functions that were tried, and how many schedules were tried."""
    tuner, tvm = load("tvm.s_tir.meta_schedule"), load("tvm")
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
    database = tuner.database.MemoryDatabase()
    workload = database.commit_workload(context.mod)
    context.pre_tuning(
        trials, database=database, cost_model=tuner.cost_model.RandomModel(seed=_SEED)
    )
    ran = []
    tried = 0
    while candidates := context.generate_measure_candidates():
        results = []
        for each in candidates:
            tried += 1
            try:
                main = tvm.compile(each.sch.mod, target)["main"]
            except Exception as error:  # a schedule that does not compile has lost
                results.append(tuner.runner.RunnerResult(None, first_line(error)))
                continue
            call = bind_tensors(main, operands)
            call()
            seconds = [timed(call) for _ in range(_SAMPLES)]
            ran.append((sum(seconds), main))
            results.append(tuner.runner.RunnerResult(seconds, None))
            trace = each.sch.trace
            about = each.args_info
            record = tuner.database.TuningRecord(trace, workload, seconds, target, about)
            database.commit_tuning_record(record)
        context.notify_runner_results(candidates, results)
    if not ran:
        raise UnsupportedError(
            f"none of the schedules that MetaSchedule tried ran ({trials} tried)"
        )
    return min(ran, key=lambda one: one[0])[1], tried


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
