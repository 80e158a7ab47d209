"""Short rows and rows end to end, stored past the cache, against NumPy, bit for bit."""

import dataclasses
from itertools import product

import numpy as np
from pytest import fixture, mark

from te_select import Workload, export, load
from te_select.backends.targets import resolve
from te_select.compiler import build
from te_select.compiler.sources import source
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import schedule as cpu
from tests.support import flat, shapes
from tests.support import strategies as s
from tests.support.cases import the_others_slow

pytestmark = mark.usefixtures("one_process")

LINE = 64
ROWS = (0, 1, 2, 3, 17, 40)
MANY_ROWS = (1, 17, 1001)  # 1 KB and more go past the cache


@fixture
def default(monkeypatch):
    """A function that changes knobs of the default, by what it says of a pattern."""
    before = cpu.default_config

    def change(of):
        def config(pattern, target):
            return dataclasses.replace(before(pattern, target), **of(pattern))

        monkeypatch.setattr("te_select.schedules.cpu.schedule.default_config", config)

    return change


@fixture
def end_to_end(default):
    """Let the default be rows end to end, past the cache whatever the size of the output."""
    default(lambda pattern: {"rows": len(pattern.loops) > 1, "stream_from": 1, "piece": 16})


def span_of(workload):
    pattern = access_pattern(workload)
    return cpu.span_of(pattern, cpu.default_config(pattern, resolve("native").tvm))


def check_at(kernel, static, operands, shift):
    """Compare a result that begins so many bytes after a line, and the bytes beside it."""
    want = s.expected(static, *operands)
    memory = np.full(want.size + 3 * LINE, 0x5A, np.uint8)
    start = -memory.ctypes.data % LINE + shift
    out = memory[start : start + want.size].view(operands[1].dtype).reshape(static.out_shape)
    kernel(*operands, out=out)
    assert np.array_equal(s.as_bytes(out), want), (str(static), shift)
    beyond = np.concatenate([memory[:start], memory[start + want.size :]])
    assert (beyond == 0x5A).all(), (str(static), shift)


SHORT = [("uint8", (3, 100)), ("float16", (5, 12)), ("float32", (3, 6)), ("float64", (7,))]


@mark.parametrize("dtype, inners", the_others_slow(SHORT, SHORT[:1]))
def test_short_rows_at_every_alignment_of_out(dtype, inners, default, tmp_path):
    default(lambda _: {"stream_from": 1, "piece": 1 << 20})
    workloads = [
        Workload(*shapes, dtype, "multidirectional")
        for inner in inners
        for shapes in ([("r", 1), ("r", inner), (inner,)], [("r", inner), ("r", inner), ("r", 1)])
    ]
    assert all(span_of(w).streaming and span_of(w).inner > 1 for w in workloads)
    library = load(export(workloads, tmp_path / "rows.so"))
    rng = np.random.default_rng(len(dtype))
    for workload, rows in product(workloads, MANY_ROWS):
        static = workload.bind({"r": rows})
        operands = s.operands(rng, static)
        for shift in (*range(0, LINE, max(workload.element.width, 4)), 1, 35):
            check_at(library[workload.name], static, operands, shift)


def patterns(inner, dtype):
    """Every way in which three operands can move in rows of ``inner`` elements."""
    shapes = [(1, 1), ("r", 1), (1, inner), ("r", inner)]
    every = [Workload(*each, dtype, "multidirectional") for each in product(shapes, repeat=3)]
    return [
        workload
        for workload in every
        if len(loops := access_pattern(workload).loops) == 2
        and loops[-1].extent * access_pattern(workload).width >= 128
    ]


LONGER = [
    ("uint8", 131),
    ("float16", 77),
    ("float32", 33),
    ("float32", 64),
    ("float64", 17),
    ("complex128", 29),
]


@mark.parametrize("dtype, inner", the_others_slow(LONGER, LONGER[-1:]))
def test_every_way_to_move_end_to_end_at_every_alignment(dtype, inner, end_to_end, tmp_path):
    workloads = patterns(inner, dtype)
    assert len(workloads) >= 6
    assert all(span_of(workload).end_to_end for workload in workloads)
    library = load(export(workloads, tmp_path / "rows.so"))
    rng = np.random.default_rng(inner)
    for workload, rows in product(workloads, ROWS):
        static = workload.bind({"r": rows})
        shift = int(rng.integers(0, 64))
        shift -= shift % min(workload.element.width, 64) if rng.integers(0, 4) else 0
        check_at(library[workload.name], static, s.operands(rng, static), shift)


@mark.parametrize(
    "cond, else_, asks",
    [((40, 1), (40, 255), True), ((40, 1), (255,), False), ((40, 255), (40, 255), False)],
)
def test_lines_are_asked_for_if_sides_take_turns(cond, else_, asks, end_to_end):
    workload = Workload(cond, (40, 255), else_)
    kernel = build.kernel(workload, tuning_logs=False)
    assert ("te_select_prefetch" in kernel.source("tir")) == asks


@mark.parametrize("past_cache", [False, True])
@mark.parametrize(
    "of, dtype",
    [
        ("r,1 r,c c", "uint8"),
        ("r,1 r,c r,c", "float32"),
        ("r,c r,1 ()", "float16"),
        ("r,1,1 r,c,3 c,3", "complex128"),
    ],
)
def test_rows_of_any_named_length(of, dtype, past_cache, request):
    if past_cache:
        request.getfixturevalue("end_to_end")
    kernel = build.kernel(Workload(*shapes(of), dtype, "multidirectional"), tuning_logs=False)
    rng = np.random.default_rng(0)
    for columns, rows in product((*range(34), 63, 64, 127, 128, 255, 256, 300), ROWS):
        static = kernel.workload.bind({"r": rows, "c": columns})
        operands = s.operands(rng, static)
        assert np.array_equal(s.as_bytes(kernel(*operands)), s.expected(static, *operands))


@mark.parametrize("may_be", [False, True])
@mark.parametrize("dtype, n", [("uint8", 1024), ("float32", 256), ("float64", 128)])
def test_runs_of_1_kb_may_be_stored_past_the_cache(dtype, n, may_be, default):
    """LLVM leaves out the stores of a way that a run of known length never takes."""
    default(lambda _: {"stream_from": 1})
    n -= not may_be
    text = source(flat(n, dtype), "x86-64-v3", None, "llvm")
    assert ("!nontemporal" in text) == may_be
