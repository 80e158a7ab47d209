"""When the pool lets calls run alone. The clock is made up by the test."""

from __future__ import annotations

import ctypes

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
#define te_select_pool_v2 pool_of_this_test
#include "pool.c"
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

int64_t teach(int awake, uint32_t by_helpers, int64_t took, int64_t waited) {
  pool* p = the_pool();
  learn(p, awake, by_helpers, 64, 4, clock_ns - took, waited);
  return p->alone_ns;
}

int at_hand(int wanted) { return te_select_threads_at_hand(wanted); }
void let_pass(int64_t ns) { clock_ns += ns; }
void set_busy(int busy) { the_pool()->busy = busy; }
"""
MS = 1_000_000
STALL, NO_STALL = 200_001, 200_000
FAIR = 48  # the share of three out of four threads in 64 tasks


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return c_half.build(tmp_path_factory.mktemp("lessons"), DRIVER, [])


@pytest.fixture
def pool(built, tmp_path):
    """A new pool."""
    loaded = c_half.copied(built, tmp_path)
    loaded.looks_at.restype = loaded.teach.restype = ctypes.c_int64
    loaded.looks_at.argtypes = (*[ctypes.c_int32] * 3, ctypes.c_int64)
    loaded.teach.argtypes = (ctypes.c_int, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64)
    loaded.let_pass.argtypes = (ctypes.c_int64,)
    return loaded


def test_tasks_whose_owner_has_not_come_are_taken_at_once(pool):
    assert pool.looks_at(3, 3, 5, 0) == 0


def test_owner_who_works_is_left_alone_until_one_task_takes_too_long(pool):
    """The patience is 1,000 ns, which is 1,000 looks at the clock."""
    assert 1000 < pool.looks_at(0, 1, 3, 0) < 1010
    assert -1700 < pool.looks_at(0, 1, 3, 800) <= -1600  # the owner does both tasks that were left


def test_stopped_thread_makes_calls_run_alone_for_twice_as_long_each_time(pool):
    assert pool.teach(1, FAIR, 0, NO_STALL) == 0
    alone = [pool.teach(1, FAIR, 0, STALL) for _ in range(9)]
    assert alone == [MS * k for k in (2, 4, 8, 16, 32, 64, 128, 256, 256)]


def test_calls_run_alone_until_that_time_has_passed(pool):
    assert pool.at_hand(4) == 4
    assert pool.teach(1, FAIR, 0, STALL) == 2 * MS
    assert pool.at_hand(4) == 1
    pool.let_pass(MS)
    assert pool.at_hand(4) == 1
    pool.let_pass(MS)
    assert pool.at_hand(4) == 4


def test_four_calls_in_a_row_with_little_help_make_the_next_run_alone(pool):
    little, enough = FAIR // 4 - 1, FAIR // 4
    assert [pool.teach(1, little, 0, 0) for _ in range(3)] == [0, 0, 0]
    assert pool.teach(1, enough, 0, 0) == 0
    assert [pool.teach(1, little, 0, 0) for _ in range(4)] == [0, 0, 0, 2 * MS]


def test_helpers_that_had_to_be_woken_are_not_blamed(pool):
    assert [pool.teach(0, 0, 0, 0) for _ in range(9)] == [0] * 9


def test_trouble_is_forgotten_after_four_times_as_long_with_help(pool):
    assert pool.teach(1, FAIR, 0, STALL) == 2 * MS
    assert pool.teach(1, FAIR, 7 * MS, 0) == 2 * MS
    assert pool.teach(1, FAIR, 2 * MS, 0) == 0
    assert pool.teach(1, FAIR, 0, STALL) == 2 * MS


def test_call_gets_one_thread_while_another_call_has_the_pool(pool):
    pool.set_busy(1)
    assert pool.at_hand(4) == 1
    pool.set_busy(0)
    assert pool.at_hand(4) == 4
