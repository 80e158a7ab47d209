"""The x86 schedule, read from the IR that it makes."""

import itertools
from dataclasses import asdict, fields, replace

import numpy as np
import tvm_ffi
from pytest import mark, param, raises
from tvm import s_tir, tirx

from te_select import Workload
from te_select.backends.targets import resolve
from te_select.compiler import build
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.schedules.cpu import isa
from te_select.schedules.cpu import schedule as cpu
from tests.support import alike, flat, shapes
from tests.support import strategies as s
from tests.support.cases import the_others_slow
from tests.support.tuning import every_config

V3 = resolve("x86-64-v3")


def scheduled_loops(workload, **knobs):
    pattern = access_pattern(workload)
    config = replace(cpu.default_config(pattern, V3.tvm), **knobs)
    sch = s_tir.Schedule(definition(workload))
    cpu.apply(sch, pattern, V3.tvm, config)
    loops = []
    tvm_ffi.structural_walk(sch.mod["main"].body, (tirx.For, loops.append), order="pre")
    return loops


def test_vectors_in_flight_are_as_many_as_registers_hold():
    """With cond's bytes, 64 bytes of each side are 192 bytes for elements of 1 byte, 160 for 2."""
    (level,) = isa.AARCH64.levels
    found = [isa.AARCH64.vectors(level, width) for width in (1, 2, 4, 8)]
    assert found == [(64, 2), (64, 2), (64, 4), (64, 4)]


@mark.parametrize("rows, extents", [(255, [255 * 3, 7]), (256, [256, 3, 7])])
def test_outer_loops_are_fused_until_they_are_enough(rows, extents):
    """Dividing by the extent of the second would take as long as a short leaf."""
    shapes = [(rows, 1, 7), (1, 3, 7), (rows, 3, 7)]
    loops = scheduled_loops(Workload(*shapes, auto_broadcast="multidirectional"), rows=False)
    assert [int(loop.extent) for loop in loops] == extents


@mark.parametrize("n, loops", [(4096, 1), (4097, 2)])
def test_leaf_that_is_longer_than_a_piece_is_cut(n, loops):
    found = scheduled_loops(flat(n), piece=4096)
    assert len(found) == loops


@mark.parametrize(
    "of",
    [
        "70001 70001 70001",
        "9001,1 9001,3 3",
        param("401,1 401,77 77", marks=mark.slow),
        param("5,1,65 1,131,1 5,131,65", marks=mark.slow),
    ],
)
@mark.parametrize("dtype", the_others_slow(("uint8", "float32", "complex128"), ["float32"]))
def test_every_config_of_the_space_selects_the_same_bits(of, dtype, monkeypatch):
    workload = Workload(*shapes(of), dtype, "multidirectional")
    pattern = access_pattern(workload)
    native = resolve("native")
    space = cpu.space(pattern, native.tvm)
    assert set(space) == {field.name for field in fields(cpu.Config)}
    distinct = {}
    for drawn in every_config(workload, native):
        # All that may be streamed is streamed, at any size.
        config = replace(drawn, stream_from=min(1, abs(drawn.stream_from)))
        distinct.setdefault(cpu.dedup_key(pattern, config), config)
    rng = np.random.default_rng(0)
    operands = s.operands(rng, workload)
    cond = operands[0].reshape(-1)
    cond[: cond.size // 3] = True
    cond[cond.size // 2 : cond.size // 2 + cond.size // 4] = False
    want = s.expected(workload, *operands)
    chosen = [
        config
        for rows in space["rows"]
        for config in rng.permutation([c for c in distinct.values() if c.rows == rows])[:8]
    ]
    for config in chosen:
        monkeypatch.setattr(cpu, "default_config", lambda *_, chosen=config: chosen)
        kernel = build.kernel(workload, tuning_logs=False)
        assert dict(kernel.config) == asdict(config)
        assert np.array_equal(s.as_bytes(kernel(*operands)), want), config


def taken(workload, small, **sizes):
    """The name of the function that a call takes."""
    pattern = access_pattern(workload)
    found = cpu.variants(pattern, cpu.default_config(pattern, V3.tvm))
    dims = {name: tirx.IntImm("int64", size) for name, size in sizes.items()}
    flags = {"small": tirx.IntImm("int64", small), "stream": tirx.IntImm("int64", 0)}
    return next(
        variant.name
        for variant in found
        if variant.applies is None or bool(variant.applies(dims, flags))
    )


def test_call_takes_the_function_that_is_for_it():
    run = flat("n")
    assert [taken(run, small, n=9) for small in (1, 0)] == ["small", ""]
    rows = Workload(["n", 1], ["n", "c"], ["n", "c"])
    assert [taken(rows, 1, n=9, c=c) for c in (1, 255, 256)] == ["short_rows"] * 2 + ["small"]
    assert [taken(rows, 0, n=9, c=c) for c in (1, 255, 256)] == ["short_rows"] * 2 + [""]
    pixels = Workload(["n", 1, 1], ["n", "c", 4], ["n", "c", 4])
    assert [taken(pixels, 0, n=9, c=c) for c in (63, 64)] == ["short_rows", ""]


@mark.parametrize(
    "shapes, leaves",
    [
        ([(1 << 20,)] * 3, ["plain run"]),
        ([(1 << 20, 1), (1 << 20, 3), (1 << 20, 3)], ["short rows"]),
        ([(1 << 16, 1), (1 << 16, 64), (1 << 16, 64)], ["rows end to end", "plain run"]),
        ([("n", 1), ("n", "c"), ("n", "c")], ["rows of named length", "plain run", "plain run"]),
        ([(), (), ()], ["plain run"]),
    ],
)
def test_variant_says_what_its_leaf_is(shapes, leaves):
    pattern = access_pattern(Workload(*shapes))
    config = cpu.default_config(pattern, V3.tvm)
    assert [each.leaf for each in cpu.variants(pattern, config)] == leaves


def test_function_for_short_rows_takes_few_of_them_at_a_time():
    pattern = access_pattern(Workload(["n", 1], ["n", "c"], ["n", "c"]))
    config = cpu.default_config(pattern, V3.tvm)
    fewer = replace(config, piece=64)
    assert cpu.variants(pattern, fewer)[0].config.piece == 64
    serial = replace(config, bytes_per_thread=0, piece=1 << 30)
    assert [each.config.piece for each in cpu.variants(pattern, serial)] == [1 << 30] * 2


def test_function_for_small_calls_looks_at_no_cond():
    pattern = access_pattern(flat("n"))
    default = cpu.default_config(pattern, V3.tvm)
    small, main = cpu.variants(pattern, default)
    assert main.config.skip and not small.config.skip
    serial = replace(default, bytes_per_thread=0)
    assert len(cpu.variants(pattern, serial)) == 1


@mark.parametrize(
    "workload",
    [alike(), Workload((9001, 1), (9001, 3), (3,)), flat("n")],
    ids=str,
)
def test_config_is_read_back_from_the_function(workload):
    pattern = access_pattern(workload)
    for unroll, skip in itertools.product((1, 8), (0, 1)):
        default = cpu.default_config(pattern, V3.tvm)
        config = replace(default, unroll=unroll, skip=skip, piece=4096)
        func = schedule(workload, V3, config=asdict(config)).func
        assert cpu.config_of(func) == config


def test_function_without_a_leaf_has_no_config():
    with raises(ValueError, match="no leaf"):
        cpu.config_of(definition(flat(4)))
