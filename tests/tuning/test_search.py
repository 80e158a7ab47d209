"""Which configs a session tries."""

import math
import os
import signal
from dataclasses import asdict, replace
from itertools import chain
from time import sleep

from pytest import fail, mark, param, raises

from te_select import Workload
from te_select.backends.cpu.lowering import lower_kernel
from te_select.backends.targets import resolve
from te_select.bench.suite import DEFAULT
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import isa
from te_select.schedules.cpu import schedule as cpu
from te_select.schedules.cpu.config import BY_MACHINE, GRAINS, OF_MACHINE
from te_select.schedules.cuda import schedule as cuda
from te_select.schedules.leaf import ANNOTATION, leaves
from te_select.tuning.options import Options
from te_select.tuning.search import BATCH, Evolution, _interrupt_afterwards, search
from te_select.tuning.space import Space, Worth, changes, one_by_one, pairs_of_machine
from tests.support import flat_and_scalar, shapes
from tests.support.cases import the_others_slow
from tests.support.tuning import BIG, FEW, ROWS, default_of, every_config

V4, MODEL, SM90 = resolve("x86-64-v4"), resolve("znver4"), resolve("cuda:sm_90")
V4_BYTES = isa.level_of(V4.tvm).vector_bytes
TRIALS = 32 + BATCH  # the default, those that differ in one knob, and evolved ones


def proposed(workload, trials, seed, seconds, target=V4, cpus=None, named=None, known=()):
    """All configs that a patient search proposes if these are their times."""
    space = Space(workload, target, cpus, named)
    batches = search(space, Options(trials, seed=seed, patient=True), seconds, known)
    configs = list(chain.from_iterable(batches))
    assert len(configs) <= trials
    return configs


def by_piece(config):
    return 1e-3 + abs(config.piece - 4096) * 1e-9


def effects(workload, configs):
    return [cpu.dedup_key(access_pattern(workload), config) for config in configs]


@mark.parametrize("rules, target", [(cpu, V4), (cuda, SM90)])
@mark.parametrize("entry", the_others_slow(DEFAULT, DEFAULT[::3]), ids=lambda entry: entry.name)
def test_default_comes_first_and_no_two_candidates_do_the_same(entry, rules, target):
    pattern = access_pattern(entry.workload)
    configs = Space(entry.workload, target).configs
    assert configs[0] == rules.default_config(pattern, target.tvm)
    assert len({rules.dedup_key(pattern, each) for each in configs}) == len(configs)


@mark.parametrize("workload", [FEW, ROWS, Workload(*shapes("3,1 3,70000 70000"))], ids=str)
def test_what_is_left_out_does_the_same_as_a_candidate(workload):
    kept = effects(workload, Space(workload, MODEL).configs)
    assert set(effects(workload, every_config(workload))) <= set(kept)


@mark.parametrize("workload", [FEW, ROWS, BIG], ids=str)
def test_level_leaves_to_the_machine_what_it_decides(workload):
    """Many models of machine run a level's code; a model's own code is for that model only."""
    default = asdict(default_of(workload))
    for config in Space(workload, V4).configs:
        assert all(getattr(config, knob) == default[knob] for knob in OF_MACHINE)
    tried = Space(workload, MODEL).configs
    assert any(c.stream_from != default["stream_from"] for c in tried) == (workload != FEW)


@mark.parametrize(
    "workload",
    [FEW, param(ROWS, marks=mark.slow), Workload(*shapes("9,1 9,3000 3000"))],
    ids=str,
)
def test_configs_of_one_effect_make_one_function(workload):
    pattern = access_pattern(workload)
    by_effect = {}
    for config in every_config(workload):
        # What never streams is the same too, but has another name; so has every vector length.
        if config.stream_from == 0 and config.vector_bytes == V4_BYTES:
            scheduled = schedule(workload, V4, config=asdict(config))
            text = "".join(str(func.script()) for func in lower_kernel(scheduled, "f", V4.tvm))
            spans = (leaf for func in scheduled.functions.values() for leaf in leaves(func.body))
            text += "".join(str(leaf.annotations[ANNOTATION]) for leaf in spans)
            grain = config.bytes_per_thread  # the C half gets this number
            if "begin: T.let" in text:  # a share of a parallel loop
                text += f"on {grain if grain < 0 else pattern.bytes_moved() // grain} threads"
            if "_skip" in text:
                text += f"skipping {config.skip}"
            assert by_effect.setdefault(cpu.dedup_key(pattern, config), text) == text
    assert len(set(by_effect.values())) == len(by_effect)


def test_thread_counts_are_tried_as_far_as_there_are_cpus():
    def grains(cpus):
        return {config.bytes_per_thread for config in Space(BIG, MODEL, cpus).configs}

    moved = access_pattern(BIG).bytes_moved()
    assert grains(2) == {0, BY_MACHINE, min(GRAINS)}
    assert {min(64, moved // grain) for grain in grains(64) - {0, BY_MACHINE}} == {64, 24}
    assert grains(None) == {0, BY_MACHINE, *GRAINS}
    small = Space(flat_and_scalar(16_384), MODEL, 64).configs
    assert {config.bytes_per_thread for config in small} == {0, 1 << 16}


def test_small_space_is_tried_whole(monkeypatch):
    every = Space(FEW, V4).configs
    assert proposed(FEW, len(every) - 1, 0, by_piece) == every[:-1]
    monkeypatch.setattr(Evolution, "propose", lambda *_: fail("nothing is left to it"))
    assert set(proposed(FEW, 64, 0, by_piece)) == set(every)


def test_search_ends_when_nothing_untried_promises_a_percent(monkeypatch):
    every = Space(BIG, V4).configs
    first = 1 + len(one_by_one(every))

    def tried(seconds, patient=False):
        batches = search(Space(BIG, V4), Options(patient=patient), seconds)
        return list(chain.from_iterable(batches))

    assert len(tried(lambda _: 1e-3)) == first < len(tried(lambda _: 1e-3, patient=True)) == 64
    both = tried(lambda c: 1e-3 * (0.9 if c.unroll == 8 else 1) * (0.9 if c.piece == 4096 else 1))
    assert first < len(both) < 64
    assert any(c.unroll == 8 and c.piece == 4096 for c in both[first:])
    monkeypatch.setattr("statistics.median", lambda _: 0.0)  # all take less than was promised
    assert len(tried(lambda _: 1e-3)) == 64


def test_search_ends_when_promises_of_noise_are_not_kept():
    """Each trial of a single knob seems 5 % faster, and what is tried then is as slow as ever."""
    every = Space(BIG, MODEL, 2).configs

    def noisy(config):
        return 1e-3 * (0.95 if len(changes(config, every[0])) == 1 else 1.0)

    tried = list(chain.from_iterable(search(Space(BIG, MODEL, 2), Options(200), noisy)))
    first = 1 + len(one_by_one(every)) + len(pairs_of_machine(every))
    assert first < len(tried) < first + 3 * BATCH


def test_configs_of_records_come_after_the_default_and_once():
    every = Space(BIG, MODEL).configs
    known = [every[-1], replace(every[0], piece=every[0].piece * 3)]
    configs = proposed(BIG, 64, 0, by_piece, MODEL, known=known)
    assert configs[:3] == [every[0], *known]
    assert len(set(effects(BIG, configs))) == len(configs) == 64


def failing(config):
    return None if config.skip else by_piece(config)


PAIR = Workload((), (17,), (17,))
BARELY = len(Space(PAIR, V4).configs) - 1  # evolution has to find all but one


@mark.parametrize(
    "workload, trials, seconds",
    [
        *((BIG, trials, by_piece) for trials in (2, 3, 8, TRIALS)),
        (BIG, TRIALS, failing),
        (PAIR, BARELY, by_piece),
    ],
)
def test_every_trial_is_another_config(workload, trials, seconds):
    """Also where evolution proposes as many as that, and none of them is the default."""
    configs = proposed(workload, trials, 0, seconds)
    assert configs[0] == Space(workload, V4).configs[0]
    assert len(set(effects(workload, configs))) == len(configs) == trials > 1


def test_configs_that_differ_in_one_knob_come_after_the_default():
    """A value of each knob, then the next; so few trials have tried every knob."""
    every = Space(BIG, MODEL).configs
    changed = [changes(config, every[0]) for config in one_by_one(every)]
    assert all(len(each) == 1 for each in changed)
    knobs = [name for each in changed for name in each]
    assert len(set(knobs)) >= 5
    assert len(set(knobs[: len(set(knobs))])) == len(set(knobs))
    tried = {(name, value) for each in changed for name, value in each.items()}
    space = cpu.space(access_pattern(BIG), MODEL.tvm)
    for name in ("vector_bytes", "unroll", "piece"):
        assert {value for knob, value in tried if knob == name} == (
            set(space[name]) - {getattr(every[0], name)}
        )
    assert proposed(BIG, 6, 0, by_piece)[1:] == one_by_one(Space(BIG, V4).configs)[:5]


def test_pairs_of_what_the_machine_decides_are_tried_early():
    """As by a false profile: a second thread and plain stores gain together, and not alone."""
    every = Space(BIG, MODEL, 2).configs
    pairs = pairs_of_machine(every)
    assert all(set(changes(each, every[0])) <= set(OF_MACHINE) for each in pairs)
    assert len(pairs) == len(set(pairs)) > 4

    def seconds_of(config):
        both = config.bytes_per_thread == min(GRAINS) and config.stream_from == 0
        return 5e-4 if both else 1e-3

    configs = proposed(BIG, 64, 0, seconds_of, MODEL, 2)
    found = [seconds_of(config) < 1e-3 for config in configs]
    assert any(found[: 1 + len(one_by_one(every)) + len(pairs)])
    assert sum(found) > 10  # the evolved ones build on it
    assert Worth(every, seconds_of).predict(configs[found.index(True)]) == 0.5


def test_worth_of_configs_is_the_product_of_their_knobs():
    every = Space(BIG, MODEL).configs
    default = every[0]
    times = {"unroll": {8: 0.97, 1: 0.99, 2: 2.0}, "skip": {0: None}}

    def seconds_of(config):
        changed = changes(config, default)
        if len(changed) != 1:
            return 1.0
        ((name, value),) = changed.items()
        return times.get(name, {}).get(value, 1.0)

    worth = Worth(every, seconds_of)
    both = replace(default, unroll=8, piece=4096)
    assert worth.predict(default) == 1.0
    assert worth.predict(both) == 0.97
    assert worth.predict(replace(default, unroll=1)) == 1.0  # noise
    assert worth.predict(replace(default, unroll=2)) == 2.0
    assert worth.predict(replace(default, unroll=8, skip=0)) == math.inf


def test_same_seed_and_times_propose_the_same_configs():
    first, second, other = (proposed(BIG, TRIALS, seed, by_piece) for seed in (3, 3, 4))
    assert first == second
    assert first != other


def test_configs_for_ranges_fit_the_function_with_names():
    """Its default has rows that a workload of the largest sizes has not."""
    named, largest = Workload(*shapes("b,1 b,n ()")), Workload(*shapes("64,1 64,4096 ()"))
    every = Space(largest, MODEL, 2, named).configs
    pattern = access_pattern(named)
    assert every[0] == cpu.default_config(pattern, MODEL.tvm)
    assert every[0].rows and not Space(largest, MODEL, 2).configs[0].rows
    assert all(config.checked(pattern) for config in every)
    assert {config.rows for config in every} == {True, False}
    configs = proposed(largest, 40, 0, by_piece, MODEL, 2, named)
    assert len(configs) == len(set(configs)) == 40
    assert configs[0] == every[0]


def test_interrupt_in_the_midst_of_tvm_comes_afterwards():
    """A callback of TVM's would make a RuntimeError without a text of it."""
    seen = []

    def work():
        sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        sleep(0.1)
        seen.append("the end of it")

    with raises(KeyboardInterrupt):
        _interrupt_afterwards(work)
    assert seen == ["the end of it"]
