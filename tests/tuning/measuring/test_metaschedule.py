import sys
import types
from dataclasses import replace

import pytest
import tvm.s_tir.meta_schedule as ms
from tvm import IRModule
from tvm.s_tir.meta_schedule.builder.builder import BuilderInput
from tvm.s_tir.meta_schedule.runner.runner import RunnerInput
from tvm.target import Target

from te_select.machines.targets import resolve
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.schedules import cpu
from te_select.tuning.measuring import open_measurer
from te_select.tuning.measuring.metaschedule import builder, runner
from tests.support.tuning_candidates import W

PIECES = (128, 256, 512, 1024)


@pytest.fixture(scope="module")
def measurer():
    with open_measurer(jobs=1) as opened:
        yield opened


def default_config():
    return cpu.default_config(access_pattern(W), resolve("native").tvm)


def search(strategy):
    """A search over pieces, set up as MetaSchedule does it."""
    resolved = resolve("native")
    target = Target({"kind": "llvm", "mcpu": resolved.tvm.attrs["mcpu"], "num-cores": 2})

    def design(sch):
        piece = sch.sample_categorical(PIECES, [1 / len(PIECES)] * len(PIECES))
        config = replace(default_config(), piece=piece)
        cpu.apply(sch, access_pattern(W), resolved.tvm, config)

    mod = IRModule({"main": definition(W)})
    space = ms.space_generator.ScheduleFn(
        design,
        sch_rules=[],
        postprocs=[],
        mutator_probs={ms.mutator.MutateTileSize(): 1.0},
    )
    context = ms.TuneContext(
        mod=mod, target=target, space_generator=space, search_strategy=strategy, num_threads=1
    )
    database = ms.database.MemoryDatabase()
    database.commit_workload(mod)
    spaces = context.generate_design_space()
    context.pre_tuning(4, 2, spaces, database, ms.cost_model.RandomModel())
    return context, target


# By default evolution samples 512 schedules at a time, for 10 s.
EVOLUTION = ms.search_strategy.EvolutionarySearch(population_size=16, init_min_unmeasured=8)


@pytest.mark.parametrize(
    "strategy", ["replay-trace", EVOLUTION], ids=["replay-trace", "evolutionary"]
)
def test_search_of_metaschedule_runs_through_the_measurer(strategy, measurer, monkeypatch):
    # A TuneContext imports it, and parses 248 intrinsics of other targets: 40 s inside pytest.
    name = "tvm.s_tir.tensor_intrin"
    monkeypatch.setitem(sys.modules, name, sys.modules.get(name, types.ModuleType(name)))
    context, target = search(strategy)
    build, run = builder(measurer, W, "native"), runner(measurer)
    measured = []
    while (candidates := context.generate_measure_candidates()) is not None:
        built = build.build([BuilderInput(one.sch.mod, target) for one in candidates])
        assert [one.error_msg for one in built] == [None] * len(built)
        inputs = [
            RunnerInput(artifact.artifact_path, "cpu", one.args_info)
            for artifact, one in zip(built, candidates, strict=True)
        ]
        results = [future.result() for future in run.run(inputs)]
        for one, result in zip(candidates, results, strict=True):
            assert result.error_msg is None
            assert all(0 < float(seconds) < 1 for seconds in result.run_secs)
            config = cpu.config_of(one.sch)
            assert config == replace(default_config(), piece=config.piece)
            measured.append(config.piece)
        context.notify_runner_results(candidates, results)
    context.post_tuning()
    assert measured
    assert set(measured) <= set(PIECES)


def test_module_that_is_not_of_the_schedule_is_a_failed_build(measurer):
    mod = IRModule({"main": definition(W)})
    (result,) = builder(measurer, W, "native").build([BuilderInput(mod, Target("llvm"))])
    assert result.artifact_path is None
    assert "no leaf" in result.error_msg
