"""Short rows that share vectors, stored past the cache, against NumPy, bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest

import te_select
from te_select import Workload
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import schedule as cpu
from tests.support import strategies as s

LINE = 64
ROWS = (1, 17, 1001)  # 1 KB and more go past the cache


@pytest.fixture
def past_the_cache(monkeypatch):
    """Let the default store past the cache whatever the size of the output."""
    default = cpu.default_config

    def config(pattern, target):
        return dataclasses.replace(default(pattern, target), stream_from=1, piece=1 << 20)

    monkeypatch.setattr(cpu, "default_config", config)


def span_of(workload: Workload):
    pattern = access_pattern(workload)
    return cpu.span_of(pattern, cpu.default_config(pattern, resolve("native").tvm))


@pytest.mark.parametrize(
    ("dtype", "inners"),
    [
        ("uint8", (3, 100)),
        pytest.param("float16", (5, 12), marks=pytest.mark.slow),
        ("float32", (3, 6)),
        pytest.param("float64", (7,), marks=pytest.mark.slow),
    ],
)
def test_every_alignment_of_out(dtype, inners, past_the_cache, tmp_path):
    workloads = [
        Workload(*shapes, dtype, "multidirectional")
        for inner in inners
        for shapes in ([("r", 1), ("r", inner), (inner,)], [("r", inner), ("r", inner), ("r", 1)])
    ]
    assert all(span_of(w).streaming and span_of(w).inner > 1 for w in workloads)
    library = te_select.load(te_select.export(workloads, tmp_path / "rows.so"))
    rng = np.random.default_rng(len(dtype))
    width = np.dtype(dtype).itemsize
    for workload, rows in itertools.product(workloads, ROWS):
        static = workload.bind({"r": rows})
        operands = s.operands(rng, static)
        want = s.expected(static, *operands)
        for shift in (*range(0, LINE, max(width, 4)), 1, 35):
            memory = np.full(want.size + 3 * LINE, 0x5A, np.uint8)
            start = -memory.ctypes.data % LINE + shift
            out = (
                memory[start : start + want.size].view(operands[1].dtype).reshape(static.out_shape)
            )
            library[workload.name](*operands, out=out)
            assert np.array_equal(s.as_bytes(out), want), (str(workload), rows, shift)
            beyond = np.concatenate([memory[:start], memory[start + want.size :]])
            assert (beyond == 0x5A).all(), (str(workload), rows, shift)
