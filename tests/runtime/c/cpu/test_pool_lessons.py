"""When the pool lets a thread take others' tasks. The clock is made up by the test."""

import platform
import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

from pytest import fixture, mark

from tests.support import c_half


@fixture
def pool():
    types = {"looks_at": "iiiq>q", "let_pass": "q", "count_pauses": ">q", "looks_after": "iq>q"}
    return c_half.load(c_half.built("pool_lessons_test.c"), **types)


def test_tasks_whose_owner_has_not_come_are_taken_at_once(pool):
    assert pool.looks_at(3, 3, 5, 0) == 0


def test_working_owner_is_left_alone_until_a_task_is_too_long(pool):
    """The patience is 1,000 ns, which is 1,000 looks at the clock."""
    assert 1000 < pool.looks_at(0, 1, 3, 0) < 1010
    assert -1700 < pool.looks_at(0, 1, 3, 800) <= -1600  # the owner does both tasks that were left


@mark.parametrize("tasks", [2, 50])
def test_owner_is_waited_for_as_long_as_two_own_tasks_took(pool, tasks):
    """For this many nanoseconds, each of which is a look at the clock."""
    assert 2000 <= pool.looks_after(tasks, 1000) < 2010


def test_call_gets_one_thread_while_another_call_has_the_pool(pool):
    pool.set_busy(1)
    assert pool.at_hand(4) == 1
    pool.set_busy(0)
    assert pool.at_hand(4) == 4


def test_threads_that_call_beside_the_pools_user_are_counted(pool):
    """By a bit for each, which two threads may share."""
    assert pool.call(2) == 0
    pool.set_busy(1)
    assert (pool.at_hand(1), pool.call(1), pool.turned_away()) == (1, 0, 0)  # they want no help
    assert (pool.call(2), pool.turned_away()) == (0, 1)
    pool.set_busy(0)
    assert (pool.call(2), pool.turned_away()) == (0, 0)
    pool.set_busy(1)
    for _ in range(3):
        assert (pool.at_hand(2), pool.turned_away()) == (1, 1)
    together = threading.Barrier(9)  # so that no thread takes the place of an earlier one
    with ThreadPoolExecutor(9) as callers:
        list(callers.map(lambda _: (together.wait(), pool.at_hand(2)), range(9)))
    assert 1 < pool.turned_away() <= 10
    pool.set_busy(0)
    assert (pool.call(2), pool.turned_away()) == (0, 0)


def test_cores_are_left_to_other_callers_for_2_ms(pool):
    assert pool.call_beside_two() == 0
    assert (pool.at_hand(4), pool.at_hand(2)) == (2, 2)
    pool.let_pass(2_000_000)
    assert pool.at_hand(4) == 4


def wait_until(holds):
    end = monotonic() + 60
    while not holds():
        assert monotonic() < end
        sleep(0.001)


def settle(pool):
    """Have all helpers sleep; they do so at once if they were only asked to come."""
    pool.wake_to_ask()
    wait_until(lambda: pool.asleep() == 3)


def test_job_says_if_helpers_were_awake_and_their_share(pool):
    """Of 4 tasks."""
    for threads, share in ((4, 3), (3, 3), (2, 2)):
        assert pool.call(threads) == 0
        assert pool.fair_share() == share
    settle(pool)
    assert (pool.call(2), pool.were_awake()) == (0, 0)
    settle(pool)
    pool.take_for_asleep(1, 0)  # the only one that a call of two threads needs
    assert (pool.call(2), pool.were_awake()) == (0, 1)
    pool.take_for_asleep(1, 1)
    assert (pool.call(4), pool.were_awake()) == (0, 0)


@mark.skipif(platform.machine() != "x86_64", reason="others have no such instruction")
def test_helpers_wait_for_a_job_unless_they_were_only_asked(pool):
    assert pool.call(4) == 0
    settle(pool)
    pool.count_pauses()
    settle(pool)
    assert pool.count_pauses() == 0
    assert pool.call(4) == 0
    paused = []
    wait_until(lambda: paused.append(pool.count_pauses()) or sum(paused) >= 3 * 3000)
