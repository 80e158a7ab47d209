"""What a kernel tells the host half, by its access pattern and its config."""

from __future__ import annotations

import pytest

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.runtime.call.cpu.decisions import Decisions

N = 1 << 20


def decisions(*shapes, dtype="float32", **config):
    return Decisions.of(access_pattern(Workload(*shapes, dtype, "multidirectional")), config)


@pytest.mark.parametrize(
    ("shapes", "dtype", "fills"),
    [
        ([(N,), (N,), (N,)], "float32", False),
        ([(N,), (N,), ()], "float32", False),
        ([(), (N,), (N,)], "float32", False),
        ([(1, N), (9, N), ()], "float64", False),
        ([(N,), (), ()], "uint8", False),  # half as many bytes are read as written, or more
        ([(N,), (), ()], "float16", False),
        ([(N,), (), ()], "float32", True),
        ([(N,), (), ()], "float64", True),
        ([(9, 1), (1, N), ()], "float32", True),  # then is read again for every row
        ([(9, N), (9, 1), (1, N)], "float32", True),
    ],
)
def test_what_is_mostly_written_stays_in_the_cache_for_longer(shapes, dtype, fills):
    assert decisions(*shapes, dtype=dtype).is_fill == fills


@pytest.mark.parametrize(
    ("shapes", "once"),
    [
        ([(N,), (N,), (N,)], True),
        ([(), (), ()], True),
        ([(9, N), (9, 1), (1, N)], True),
        ([(1, N), (9, N), ()], False),
        ([(9, 1), (9, N), (1, N)], False),
        ([(), (N,), (N,)], False),
    ],
)
def test_cond_is_read_once_where_it_moves_along_every_loop(shapes, once):
    assert decisions(*shapes).reads_cond_once == once


def test_knobs_are_those_of_the_config():
    knobs = {"bytes_per_thread": 9, "stream_from": -1, "skip": 1, "backwards": -1}
    made = decisions((N,), (N,), (N,), unroll=4, **knobs)
    assert made.numbers == (9, -1, 1, -1, 0, 1)
    assert decisions((), (), ()).numbers == (0, 0, 0, 0, 0, 1)
