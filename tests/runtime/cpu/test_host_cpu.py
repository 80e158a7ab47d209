"""What a call gives a kernel: pointers, sizes, whether to store past the cache, and threads."""

from __future__ import annotations

import pytest

from tests.support import cpu_probe

THREADS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("probe")
    cpu_probe.build(made)
    return made


@pytest.fixture
def probe(folder, monkeypatch):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", str(THREADS))
    return lambda **how: cpu_probe.Probe(folder, **how)


def test_pointers_and_sizes_are_those_of_the_operands(probe):
    made = probe()
    arrays = made(5, 7)
    assert list(made.seen.sizes) == [7, 5]  # by name, whatever their order in the shapes
    assert list(made.seen.pointers) == [array.ctypes.data for array in arrays]


def test_stores_past_the_cache_begin_at_the_bytes_of_out_that_were_asked_for(probe):
    made = probe(stream_from=64)
    streams = []
    for n in (15, 16, 17):
        made(n)
        streams.append(made.seen.stream)
    assert streams == [0, 1, 1]
    never = probe()
    never(1 << 16)
    assert never.seen.stream == 0


def test_threads_are_as_many_as_the_bytes_moved_are_worth(probe):
    made = probe(bytes_per_thread=100)
    tasks = {}
    for n in (1, 15, 16, 23, 24, 1000):  # 13, 195, 208, 299, 312 and 13,000 bytes
        made(n)
        tasks[n] = made.seen.tasks
        assert made.seen.ran == sum(1 << (8 * k) for k in range(tasks[n]))  # each of them once
    assert tasks == {1: 1, 15: 1, 16: 2, 23: 2, 24: 3, 1000: THREADS}


def test_small_call_after_a_large_one_has_one_thread_again(probe):
    made = probe(bytes_per_thread=100)
    for n, tasks in ((1000, THREADS), (1, 1)):
        made(n)
        assert made.seen.tasks == tasks


def test_kernel_without_a_parallel_loop_is_given_one_thread(probe):
    made = probe()
    made(1 << 16)
    assert (made.seen.tasks, made.seen.small) == (1, 1)


def test_call_is_small_where_one_thread_does_it_inside_the_caches(probe):
    made = probe(bytes_per_thread=100, stream_from=256)
    small = []
    for n in (15, 16, 63, 64):
        made(n)
        small.append(made.seen.small)
    assert small == [1, 0, 0, 0]
    streamed = probe(stream_from=64)
    streamed(16)
    assert streamed.seen.small == 0


def test_every_thread_that_stored_past_the_cache_orders_its_stores(probe):
    serial = probe(stream_from=64)
    serial(15)
    assert serial.fences.value == 0
    serial(16)
    assert serial.fences.value == 1
    parallel = probe(stream_from=64, bytes_per_thread=100)
    parallel(1000)
    assert parallel.seen.tasks == THREADS
    assert parallel.fences.value >= THREADS


def test_kernel_may_ask_for_fewer_threads(probe):
    made = probe(bytes_per_thread=100)
    for wanted in (1, 3, 1000):
        made.seen.wanted = wanted
        made(1000)
        assert made.seen.tasks == min(wanted, THREADS)


@pytest.mark.parametrize("which", range(1, THREADS + 1))
def test_failure_of_one_thread_is_that_of_the_call(probe, which):
    made = probe(bytes_per_thread=100)
    made.seen.fails = which
    with pytest.raises(RuntimeError, match="the kernel failed"):
        made(1000)
    if which == 1:
        with pytest.raises(RuntimeError, match="the kernel failed"):
            made(1)
    assert made.seen.ran == (0x01010101 if which > 1 else 1)
    made.seen.fails = 0
    made(1)
    assert made.seen.tasks == 1


def test_nothing_is_called_where_out_has_no_element(probe):
    made = probe(stream_from=1, bytes_per_thread=1)
    made(0, 5)
    assert made.seen.calls == 0
    made(1)
    assert made.seen.calls == 1
