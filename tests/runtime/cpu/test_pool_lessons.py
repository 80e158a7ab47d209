"""When the pool lets a thread take others' tasks. The clock is made up by the test."""

from __future__ import annotations

import ctypes
import threading
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
#include "pool.c"
#include "free_cores.c"
_Atomic(pool*) pool_of_this_test;

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
    loaded.looks_at.argtypes = (*[ctypes.c_int32] * 3, ctypes.c_int64)
    return loaded


def test_tasks_whose_owner_has_not_come_are_taken_at_once(pool):
    assert pool.looks_at(3, 3, 5, 0) == 0


def test_owner_who_works_is_left_alone_until_one_task_takes_too_long(pool):
    """The patience is 1,000 ns, which is 1,000 looks at the clock."""
    assert 1000 < pool.looks_at(0, 1, 3, 0) < 1010
    assert -1700 < pool.looks_at(0, 1, 3, 800) <= -1600  # the owner does both tasks that were left


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
