"""How helpers that sleep are woken."""

import pytest

from tests.support import c_half


@pytest.fixture
def pool():
    return c_half.copied(c_half.built("pool_calls_test.c"))


@pytest.mark.parametrize("threads", [2, 8, 64, 128])
def test_caller_wakes_one_helper_and_then_sleeps(pool, threads):
    """In at most four system calls, whoever else is to be woken: the helpers do that."""
    assert pool.start(threads) == threads
    made = sorted(pool.calls_after_pause(threads, threads - 1) for _ in range(20))
    assert made[10] >= min(2, threads - 1)  # a single helper that is awake needs no call
    assert made[-2] <= 4  # a helper of the call before may have ended a wait once more
    assert pool.threads_that_came() == threads


def test_helpers_that_a_call_does_not_need_sleep_on(pool):
    pool.start(9)
    pool.calls_after_pause(9, 8)
    for _ in range(20):
        assert 0 < pool.calls_after_pause(3, 8) <= 4
        assert pool.asleep() >= 6
