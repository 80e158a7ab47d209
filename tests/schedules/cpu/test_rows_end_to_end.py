"""Rows that are walked end to end, against NumPy, bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest

import te_select
from te_select import Workload
from te_select.backends.targets import resolve
from te_select.compiler import build
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import schedule as cpu
from tests.support import strategies as s
from tests.support.machines import on_x86_64

pytestmark = pytest.mark.usefixtures("one_process")

ROWS = (0, 1, 2, 3, 17, 40)


@pytest.fixture
def end_to_end(monkeypatch):
    """Let the default be rows end to end, past the cache whatever the size of the output."""
    default = cpu.default_config

    def config(pattern, target):
        chosen = default(pattern, target)
        return dataclasses.replace(chosen, rows=len(pattern.loops) > 1, stream_from=1, piece=16)

    monkeypatch.setattr(cpu, "default_config", config)


def patterns(inner: int, dtype: str) -> list[Workload]:
    """Every way in which three operands can move in rows of ``inner`` elements."""
    shapes = [(1, 1), ("r", 1), (1, inner), ("r", inner)]
    every = [
        Workload(*each, dtype, "multidirectional") for each in itertools.product(shapes, repeat=3)
    ]
    return [
        workload
        for workload in every
        if len(loops := access_pattern(workload).loops) == 2
        and loops[-1].extent * access_pattern(workload).width >= 128
    ]


def are_end_to_end(workload: Workload) -> bool:
    target = resolve("native").tvm
    pattern = access_pattern(workload)
    return cpu.span_of(pattern, cpu.default_config(pattern, target)).end_to_end


@pytest.mark.parametrize(
    ("dtype", "inner"),
    [
        pytest.param("uint8", 131, marks=pytest.mark.slow),
        pytest.param("uint8", 192, marks=pytest.mark.slow),
        pytest.param("float16", 77, marks=pytest.mark.slow),
        pytest.param("float32", 33, marks=pytest.mark.slow),
        pytest.param("float32", 64, marks=pytest.mark.slow),
        pytest.param("float32", 255, marks=pytest.mark.slow),
        pytest.param("float64", 17, marks=pytest.mark.slow),
        ("complex128", 29),
    ],
)
def test_every_way_to_move_at_every_alignment_of_out(dtype, inner, end_to_end, tmp_path):
    workloads = patterns(inner, dtype)
    assert len(workloads) >= 6
    assert all(are_end_to_end(workload) for workload in workloads)
    library = te_select.load(te_select.export(workloads, tmp_path / "rows.so"))
    rng = np.random.default_rng(inner)
    for workload, rows in itertools.product(workloads, ROWS):
        static = workload.bind({"r": rows})
        operands = s.operands(rng, static)
        want = s.expected(static, *operands)
        shift = int(rng.integers(0, 64))
        shift -= shift % operands[1].itemsize if rng.integers(0, 4) else 0
        memory = np.full(want.size + 128, 0x5A, np.uint8)
        out = memory[shift : shift + want.size].view(operands[1].dtype).reshape(static.out_shape)
        library[workload.name](*operands, out=out)
        assert np.array_equal(s.as_bytes(out), want), (str(workload), rows, shift)
        beyond = np.concatenate([memory[:shift], memory[shift + want.size :]])
        assert (beyond == 0x5A).all(), (str(workload), rows, shift)


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("side", ["then", "else_"])
def test_in_place_of_a_side(vector_bytes, side, end_to_end, monkeypatch):
    default = cpu.default_config
    monkeypatch.setattr(
        cpu,
        "default_config",
        lambda *known: dataclasses.replace(default(*known), vector_bytes=vector_bytes),
    )
    workload = Workload((301, 1), (301, 63), (301, 63))
    assert are_end_to_end(workload)
    operands = s.operands(np.random.default_rng(vector_bytes), workload)
    want = s.expected(workload, *operands)
    out = operands[("then", "else_").index(side) + 1]
    build.kernel(workload, tuning_logs=False)(*operands, out=out)
    assert np.array_equal(s.as_bytes(out), want)


@pytest.mark.parametrize(
    ("cond", "else_", "asks"),
    [((40, 1), (40, 255), True), ((40, 1), (255,), False), ((40, 255), (40, 255), False)],
)
def test_lines_are_asked_for_if_sides_take_turns(cond, else_, asks, end_to_end):
    workload = Workload(cond, (40, 255), else_)
    kernel = build.kernel(workload, tuning_logs=False)
    assert ("te_select_prefetch" in kernel.source("tir")) == asks
    operands = s.operands(np.random.default_rng(0), workload)
    assert np.array_equal(s.as_bytes(kernel(*operands)), s.expected(workload, *operands))


def test_rows_of_any_named_length_past_the_cache(end_to_end):
    kernel = build.kernel(Workload(("r", 1), ("r", "c"), ("c",)), tuning_logs=False)
    rng = np.random.default_rng(0)
    for columns, rows in itertools.product((*range(1, 34), 63, 64, 255, 256), ROWS):
        static = kernel.workload.bind({"r": rows, "c": columns})
        operands = s.operands(rng, static)
        assert np.array_equal(s.as_bytes(kernel(*operands)), s.expected(static, *operands))


@on_x86_64
def test_rows_end_to_end_are_the_default_past_the_cache():
    def rows(*shape):
        return are_end_to_end(Workload((shape[0], 1), shape, shape))

    assert rows(65537, 63)
    assert rows(65537, 255)
    assert not rows(65537, 256)
    assert not rows(65537, 31)
    assert not rows(2048, 63)
