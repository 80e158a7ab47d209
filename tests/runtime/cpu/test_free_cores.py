"""When calls run alone because the cores have other work, and when they have helpers again."""

from __future__ import annotations

import ctypes
import os

import pytest

from tests.support import c_half

# The clock is made up, and there are no threads: the test says what helpers do.
LESSONS = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

static int64_t clock_ns = 1000000000;

static int look_at_clock(clockid_t id, struct timespec* t) {
  (void)id;
  t->tv_sec = clock_ns / 1000000000;
  t->tv_nsec = clock_ns % 1000000000;
  return 0;
}
#define clock_gettime look_at_clock

#include <sched.h>

/* The helpers' threads are made up, too: what the system is asked for is kept. */
static cpu_set_t caller, helper_runs_on[9];
static int caller_on, policy_of[9], refused; /* the policy is SCHED_OTHER, which is 0 */

static int look_at_caller(pid_t id, size_t size, cpu_set_t* set) {
  (void)id, (void)size;
  *set = caller;
  return 0;
}
static int move_helper(pid_t id, size_t size, const cpu_set_t* set) {
  (void)size;
  helper_runs_on[id] = *set;
  return 0;
}
static int set_policy_of_helper(pid_t id, int wanted, const struct sched_param* none) {
  (void)none;
  if (!refused) policy_of[id] = wanted;
  return refused;
}
#define sched_getcpu() caller_on
#define sched_getaffinity look_at_caller
#define sched_setaffinity move_helper
#define sched_setscheduler set_policy_of_helper
#define sched_getscheduler(id) policy_of[id]
#include "free_cores.c"

enum { CORES = 8 };
int32_t te_select_max_threads(void) { return CORES; }

static pool p = {.helpers = 3, .ids = {0, 1, 2, 3}};

/* Nanoseconds for which calls run alone after this one. */
int64_t teach(int awake, uint32_t done, int64_t waited) {
  te_select_learn(&p, awake, done, 48, waited);
  return p.alone_until ? p.alone_until - clock_ns : 0;
}

/* Threads of a call that wants so many, after a job while which threads of these bits called. */
int left_beside(uint64_t turned_away, int wanted) {
  p.turned_away = turned_away;
  te_select_learn(&p, 1, 48, 48, 0);
  return te_select_leave_cores(&p, wanted);
}
int left(int wanted) { return te_select_leave_cores(&p, wanted); }

int are_free(void) { return te_select_cores_are_free(&p); }
void answer(void) { te_select_answer(&p); }
void let_pass(int64_t ns) { clock_ns += ns; }
int times_asked(void) { return (int)p.generation; }
/* That of all helpers; -1 if they differ. */
int policy_of_helpers(void) {
  for (int32_t i = 2; i <= p.helpers; ++i) {
    if (policy_of[i] != policy_of[1]) return -1;
  }
  return policy_of[1];
}
void refuse(int all) { refused = all; }

/* The caller is on CPU `on`, and may use those of the bits `allowed`. */
static void place_caller(int on, int allowed) {
  caller_on = on;
  CPU_ZERO(&caller);
  for (int cpu = 0; cpu < 8; ++cpu) {
    if (allowed >> cpu & 1) CPU_SET(cpu, &caller);
  }
}

/* The CPUs of a helper, as bits; 0 if it was never moved. */
int cpus_of(int helper) {
  int found = 0;
  for (int cpu = 0; cpu < 8; ++cpu) found |= !!CPU_ISSET(cpu, &helper_runs_on[helper]) << cpu;
  return found;
}

void run_apart(int on, int allowed, int threads) {
  place_caller(on, allowed);
  te_select_keep_apart(&p, threads);
}
int are_free_from(int on, int allowed) {
  place_caller(on, allowed);
  return te_select_cores_are_free(&p);
}
"""
# Threads that do nothing but answer; calls are made to run alone by hand.
ANSWERS = r"""
#define _GNU_SOURCE
#include "pool.h"

#include "free_cores.h"

extern _Atomic(pool*) te_select_pool_v4;

static int nothing(int task, int tasks, void* data) {
  (void)tasks;
  for (volatile int k = 0; k < 1000; ++k) {}
  return data && task < 0;
}

int call(int threads) { return te_select_parallel(nothing, 0, 64, threads); }
int at_hand(int wanted) { return te_select_threads_at_hand(wanted); }

/* As after a stall. Helpers come back by their answer alone, not because enough time has passed. */
void stall(void) {
  pool* p = te_select_pool_v4;
  te_select_learn(p, 1, 0, 1, 1000000000);
  p->alone_since += INT64_C(3600) * 1000000000;
}
"""
HELPERS = """
    import time

    def policies():
        return [os.sched_getscheduler(id) for id in helpers(2)]

    def alone_until_helpers_answer():
        seen = set()
        end = time.monotonic() + 60
        while pool.at_hand(3) == 1:
            seen.update(policies())
            assert time.monotonic() < end
            time.sleep(0.0005)
        return seen

    assert pool.call(3) == 0
    time.sleep(0.02)
"""
MS = 1_000_000
STALL, NO_STALL = 200_001, 200_000
AT_ONCE = 400_000
FAIR = 48  # tasks that are the helpers' share


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return c_half.build(tmp_path_factory.mktemp("lessons"), LESSONS, [])


@pytest.fixture
def pool(built, tmp_path):
    """A new pool with three helpers."""
    loaded = c_half.copied(built, tmp_path)
    loaded.teach.restype = ctypes.c_int64
    loaded.teach.argtypes = (ctypes.c_int, ctypes.c_uint32, ctypes.c_int64)
    loaded.let_pass.argtypes = (ctypes.c_int64,)
    loaded.left_beside.argtypes = (ctypes.c_uint64, ctypes.c_int)
    return loaded


def ask(pool):
    """Let a call stall, and another one ask the helpers, after the time alone."""
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS)
    pool.are_free()


def answer(pool):
    for _ in range(3):
        pool.answer()


def test_stopped_thread_makes_calls_run_alone(pool):
    assert pool.teach(1, FAIR, NO_STALL) == 0
    assert [pool.teach(1, FAIR, STALL) for _ in range(3)] == [2 * MS] * 3


def test_four_calls_in_a_row_with_little_help_make_the_next_run_alone(pool):
    little, enough = FAIR // 4 - 1, FAIR // 4
    assert [pool.teach(1, little, 0) for _ in range(3)] == [0, 0, 0]
    assert pool.teach(1, enough, 0) == 0
    assert [pool.teach(1, little, 0) for _ in range(4)] == [0, 0, 0, 2 * MS]


def test_helpers_that_had_to_be_woken_are_not_blamed(pool):
    assert [pool.teach(0, 0, 0) for _ in range(9)] == [0] * 9


def test_helpers_are_asked_after_2_ms(pool):
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS - 1)
    assert (pool.are_free(), pool.times_asked()) == (0, 0)
    pool.let_pass(1)
    assert (pool.are_free(), pool.times_asked()) == (0, 1)
    assert (pool.are_free(), pool.times_asked()) == (0, 1)


def test_cores_are_free_once_three_of_four_helpers_have_come(pool):
    ask(pool)
    pool.let_pass(AT_ONCE - 1)
    pool.answer()
    pool.answer()  # two of three
    assert not pool.are_free()
    pool.answer()
    assert pool.are_free()
    assert pool.teach(1, FAIR, 0) == 0


def test_answer_counts_though_the_next_call_is_much_later(pool):
    ask(pool)
    answer(pool)
    pool.let_pass(100 * MS)
    assert pool.are_free()


def test_helpers_that_come_late_are_asked_again_after_2_ms(pool):
    ask(pool)
    pool.let_pass(AT_ONCE)
    answer(pool)
    assert not pool.are_free()
    pool.let_pass(1)
    assert not pool.are_free()
    pool.let_pass(2 * MS - 1)
    assert (pool.are_free(), pool.times_asked()) == (0, 1)
    pool.let_pass(1)
    assert (pool.are_free(), pool.times_asked()) == (0, 2)


def test_answer_from_before_another_stall_does_not_count(pool):
    ask(pool)
    answer(pool)
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS)
    assert (pool.are_free(), pool.times_asked()) == (0, 2)


def test_calls_have_helpers_again_after_256_ms_whatever_they_answer(pool):
    pool.teach(1, FAIR, STALL)
    alone = 0
    while not pool.are_free():
        pool.let_pass(MS)
        alone += 1
    assert 256 <= alone <= 260


def test_call_that_looked_before_the_cores_were_free_asks_nobody(pool):
    ask(pool)
    answer(pool)
    assert pool.are_free()
    assert pool.are_free()  # of another thread
    assert (pool.times_asked(), pool.policy_of_helpers()) == (1, os.SCHED_OTHER)


def test_every_helper_that_is_asked_stops_nobody_until_the_cores_are_free(pool):
    assert pool.policy_of_helpers() == os.SCHED_OTHER
    ask(pool)
    assert pool.policy_of_helpers() == os.SCHED_BATCH
    answer(pool)
    assert pool.are_free()
    assert pool.policy_of_helpers() == os.SCHED_OTHER


def test_policy_that_could_not_be_restored_is_restored_later(pool):
    for refused, policy in ((1, os.SCHED_BATCH), (0, os.SCHED_OTHER)):
        ask(pool)
        answer(pool)
        pool.refuse(refused)
        assert pool.are_free()
        assert pool.policy_of_helpers() == policy


def test_helpers_follow_the_cpus_of_each_caller(pool):
    for on, allowed, left in (
        (0, 0b11, 0b10),
        (0, 0b11111111, 0b11111110),
        (0, 0b10001, 0b10000),
        (4, 0b10000, 0b10000),  # it has no other CPU: they stay
    ):
        pool.run_apart(on, allowed, 4)
        assert [pool.cpus_of(helper) for helper in (1, 2, 3)] == [left] * 3


def test_only_the_helpers_of_a_call_are_moved(pool):
    pool.run_apart(0, 0b11, 3)
    assert [pool.cpus_of(helper) for helper in (1, 2, 3)] == [0b10, 0b10, 0]
    pool.run_apart(0, 0b11, 4)
    assert pool.cpus_of(3) == 0b10


def test_every_helper_that_is_asked_wakes_on_another_cpu_than_the_callers(pool):
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS)
    assert not pool.are_free_from(1, 0b111)
    assert pool.times_asked() == 1
    assert [pool.cpus_of(helper) for helper in (1, 2, 3)] == [0b101] * 3


def test_a_core_is_left_to_each_thread_that_called_for_2_ms(pool):
    """There are 8 cores."""
    assert pool.left_beside(0, 8) == 8
    assert pool.left_beside(0b1001, 8) == 6
    assert (pool.left(7), pool.left(6), pool.left(2)) == (6, 6, 2)
    pool.let_pass(2 * MS - 1)
    assert pool.left(8) == 6
    pool.let_pass(1)
    assert pool.left(8) == 8


def test_threads_that_no_longer_call_are_forgotten_when_the_time_is_over(pool):
    assert pool.left_beside(0xFF, 8) == 0
    assert pool.left_beside(0, 8) == 0  # a job without others says nothing of them
    pool.let_pass(2 * MS)
    assert pool.left_beside(1, 8) == 7


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    sources = ["cpu/pool.c", "cpu/free_cores.c", "cpu/processors.c"]
    return c_half.build(tmp_path_factory.mktemp("answers"), ANSWERS, sources)


def test_helpers_answer_and_stop_nobody_until_then(answering):
    code = """
        for k in range(5):
            assert pool.at_hand(3) == 3
            assert policies() == [os.SCHED_OTHER] * 2
            pool.stall()
            assert pool.at_hand(3) == 1
            assert os.SCHED_BATCH in alone_until_helpers_answer()
            assert policies() == [os.SCHED_OTHER] * 2
            assert pool.call(3) == 0
    """
    c_half.run(answering, HELPERS, code)


def test_policy_that_a_program_chose_is_kept(answering):
    """Threads inherit it from the thread that starts them."""
    code = """
        assert policies() == [os.SCHED_BATCH] * 2
        pool.stall()
        assert alone_until_helpers_answer() == {os.SCHED_BATCH}
        assert policies() == [os.SCHED_BATCH] * 2
    """
    c_half.run(
        answering,
        HELPERS,
        code,
        before="import os\nos.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))\n",
    )
