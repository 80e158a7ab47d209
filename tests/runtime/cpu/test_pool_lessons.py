"""When the pool lets a thread take others' tasks. The clock is made up by the test."""

from __future__ import annotations

import ctypes
import platform
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import c_half

DRIVER = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

/* A look at this clock takes 1 ns, and now and then the owner of a range takes a task. */
static int64_t clock_ns = 1000000000, looks, looks_a_task;
static _Atomic uint64_t* moving;

static int look_at_clock(clockid_t id, struct timespec* t) {
  (void)id;
  ++looks;
  ++clock_ns;
  if (looks_a_task && looks % looks_a_task == 0) *moving += UINT64_C(1) << 32;
  t->tv_sec = clock_ns / 1000000000;
  t->tv_nsec = clock_ns % 1000000000;
  return 0;
}
#define clock_gettime look_at_clock
#define te_select_pool_v4 pool_of_this_test
static _Atomic int64_t pauses;
#define __builtin_ia32_pause() (++pauses)
#define te_select_learn hear_and_learn
#include "pool.c"
#undef te_select_learn
#include "free_cores.c"
_Atomic(pool*) pool_of_this_test;

/* What the last job said of its helpers. */
static int said_awake, said_fair;
void hear_and_learn(pool* p, int awake, uint32_t done, uint32_t fair, int64_t waited) {
  said_awake = awake;
  said_fair = (int)fair;
  te_select_learn(p, awake, done, fair, waited);
}
int were_awake(void) { return said_awake; }
int fair_share(void) { return said_fair; }

int asleep(void) { return the_pool()->sleeping; }
void say_asleep(int count) { the_pool()->sleeping = count; }
void ask_helpers(void) { ask(the_pool(), now_ns()); }
int answers(void) { return the_pool()->came_at_once; }
int64_t count_pauses(void) { return atomic_exchange(&pauses, 0); }

/* Looks until it is known whether tasks are left; negative where none is. */
int64_t looks_at(int32_t begin, int32_t next, int32_t end, int64_t each) {
  range r = {(uint64_t)next << 32 | (uint32_t)end};
  looks = 0;
  looks_a_task = each;
  moving = &r.ticket;
  int left = is_left(&r, begin, 1000);
  looks_a_task = 0;
  return left ? looks : -looks;
}

static int take_time(int32_t task, int32_t tasks, void* data) {
  clock_ns += *(int64_t*)data;
  return task >= tasks;
}

/* Looks at the last task of another thread, after `count` tasks of our own that take `ns` each. */
int64_t looks_after(int32_t count, int64_t ns) {
  static pool p;
  p.task = take_time;
  p.data = &ns;
  p.tasks = 2 * count;
  p.ranges[0].ticket = (uint32_t)count;
  p.ranges[1].ticket = (uint64_t)(2 * count - 1) << 32 | (uint32_t)(2 * count);
  looks = 0;
  return work(&p, 0, 2, now_ns()) == (uint32_t)count + 1 ? looks : -1;
}

int at_hand(int wanted) { return te_select_threads_at_hand(wanted); }
void set_busy(int busy) { the_pool()->busy = busy; }

static int nothing(int32_t task, int32_t tasks, void* data) { return task >= tasks || data; }
int call(int threads) { return te_select_parallel(nothing, NULL, 4, threads); }

/* How many threads were turned away since the last job began. */
int turned_away(void) { return __builtin_popcountll(the_pool()->turned_away); }

/* A job while which two other threads call. */
static int meet_two(int32_t task, int32_t tasks, void* data) {
  the_pool()->turned_away = 3;
  return task >= tasks || data;
}
void let_pass(int64_t ns) { clock_ns += ns; }
int call_beside_two(void) { return te_select_parallel(meet_two, NULL, 4, 2); }
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lessons")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TE_SELECT_NUM_THREADS", "4")
        half = c_half.build(folder, DRIVER, ["cpu/processors.c"])
        loaded = ctypes.CDLL(str(half))
    loaded.looks_at.restype = ctypes.c_int64
    loaded.let_pass.argtypes = (ctypes.c_int64,)
    loaded.count_pauses.restype = ctypes.c_int64
    loaded.looks_after.restype = ctypes.c_int64
    loaded.looks_after.argtypes = (ctypes.c_int32, ctypes.c_int64)
    loaded.looks_at.argtypes = (*[ctypes.c_int32] * 3, ctypes.c_int64)
    return loaded


def test_tasks_whose_owner_has_not_come_are_taken_at_once(pool):
    assert pool.looks_at(3, 3, 5, 0) == 0


def test_owner_who_works_is_left_alone_until_one_task_takes_too_long(pool):
    """The patience is 1,000 ns, which is 1,000 looks at the clock."""
    assert 1000 < pool.looks_at(0, 1, 3, 0) < 1010
    assert -1700 < pool.looks_at(0, 1, 3, 800) <= -1600  # the owner does both tasks that were left


@pytest.mark.parametrize("tasks", [2, 50])
def test_owner_is_waited_for_as_long_as_two_of_our_own_tasks_took(pool, tasks):
    """For this many nanoseconds, each of which is a look at the clock."""
    assert 2000 <= pool.looks_after(tasks, 1000) < 2010


def test_call_gets_one_thread_while_another_call_has_the_pool(pool):
    pool.set_busy(1)
    assert pool.at_hand(4) == 1
    pool.set_busy(0)
    assert pool.at_hand(4) == 4


def test_threads_that_call_while_another_call_has_the_pool_are_counted(pool):
    """By a bit for each, which two threads may share."""
    assert pool.call(2) == 0
    pool.set_busy(1)
    assert (pool.at_hand(1), pool.call(1), pool.turned_away()) == (1, 0, 0)  # they want no help
    for _ in range(3):
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
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_job_says_whether_helpers_were_awake_and_what_their_share_is(pool):
    """Of 4 tasks."""
    for threads, share in ((4, 3), (3, 3), (2, 2)):
        assert pool.call(threads) == 0
        assert pool.fair_share() == share
    for asleep in (3, 0):
        wait_until(lambda: pool.asleep() == 3)
        pool.say_asleep(asleep)
        assert (pool.call(2), pool.were_awake()) == (0, not asleep)
    pool.say_asleep(3)  # nobody has woken them


@pytest.mark.skipif(platform.machine() != "x86_64", reason="others have no such instruction")
def test_helpers_wait_for_the_next_job_unless_they_were_only_asked(pool):
    assert pool.call(4) == 0
    wait_until(lambda: pool.asleep() == 3)
    assert pool.count_pauses() >= 3 * 3000
    pool.ask_helpers()
    wait_until(lambda: pool.answers() == 3 and pool.asleep() == 3)
    assert pool.count_pauses() == 0
