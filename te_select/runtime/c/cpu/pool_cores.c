/* Which cores helpers may run on, and whether these are free.
 *
 * If the caller had to wait long for a helper, or helpers came too late several times, the cores have
 * other work. Then calls run alone, and from time to time one of them wakes the helpers without work.
 * Meanwhile the helpers have a policy under which the system does not stop other programs for them.
 * If they come at once, the cores are free again.
 *
 * After concurrent calls, the pool uses one helper fewer per other caller for a while, so that each
 * caller has a core. Without this, two threads that met at a barrier after each call took 1.2-1.5x the
 * time (Zen 4, two cores, 2^16 to 2^20 elements).
 */
#define _GNU_SOURCE
#include "pool_cores.h"

#include <limits.h>
#include <sched.h>

enum {
  STALL_NS = 200000,  /* a task takes less than 10 us; after this the system has stopped a thread */
  STARVED_CALLS = 4,  /* in a row, in which helpers that were awake did little: calls run alone */
  ALONE_NS = 2000000, /* for this time; then helpers are asked whether they come at once */
  /* Of 100 helpers, 99 came within 0.1 ms on a free core, and 1 within 0.76 ms beside a busy loop
   * (Zen 5). */
  AT_ONCE_NS = 400000,
  MOST_ALONE_NS = 256000000 /* after this, calls have helpers again, whether they came or not */
};

/* On a virtual machine a CPU that sleeps looks taken, and the system wakes helpers on the caller's
 * CPU, where they stop the caller: 60 calls on 2^18 elements after a pause took twice as long
 * (Zen 5). They may run on all other CPUs of the caller. */
void te_select_keep_apart(te_select_pool* p, int32_t threads) {
  te_select_cpus others;
  int32_t cpu = sched_getcpu(), kept = 0;
  if (cpu < 0 || sched_getaffinity(0, sizeof(others), others.set)) return;
  CPU_CLR_S((size_t)cpu, sizeof(others), others.set);
  if (threads - 1 <= p->kept && CPU_EQUAL_S(sizeof(others), others.set, p->kept_on.set)) return;
  if (!CPU_COUNT_S(sizeof(others), others.set)) return;
  for (int32_t i = 1; i < threads; ++i) {
    pid_t id = atomic_load(&p->ids[i]);
    if (id && !sched_setaffinity(id, sizeof(others), others.set)) ++kept;
  }
  p->kept = kept == threads - 1 ? kept : 0;
  p->kept_on = others;
}

/* Returns whether all helpers have it. */
static int set_policy(te_select_pool* p, int policy) {
  const struct sched_param none = {0};
  int all = 1;
  for (int32_t i = 1; i <= p->helpers; ++i) {
    pid_t id = atomic_load(&p->ids[i]);
    if (id && sched_setscheduler(id, policy, &none)) all = 0;
  }
  return all;
}

/* From now on helpers that wake stop no other thread. Only the default policy is changed: a program
 * may have chosen another for its threads. */
static void give_way(te_select_pool* p) {
  for (int32_t i = 1; i <= p->helpers; ++i) {
    pid_t id = atomic_load(&p->ids[i]);
    if (id && sched_getscheduler(id) != SCHED_OTHER) return;
  }
  set_policy(p, SCHED_BATCH);
  p->gives_way = 1;
}

static void stop_giving_way(te_select_pool* p) {
  if (p->gives_way && set_policy(p, SCHED_OTHER)) p->gives_way = 0;
}

static void go_alone(te_select_pool* p) {
  p->serial_since_ns = te_select_now_ns();
  p->serial_until_ns = p->serial_since_ns + ALONE_NS;
  p->asked = 0;
  p->starved_calls = 0;
}

int32_t te_select_leave_cores(te_select_pool* p, int32_t wanted, int32_t most) {
  if (!p->others_until || te_select_now_ns() >= p->others_until) return wanted;
  int32_t left = most - p->others;
  return left < wanted ? left : wanted;
}

void te_select_pool_record_result(te_select_pool* p, int awake, uint32_t done, uint32_t fair,
                                  int64_t waited) {
  int32_t others = __builtin_popcountll(p->turned_away);
  if (others) {
    p->others = others;
    p->others_until = te_select_now_ns() + ALONE_NS;
  }
  if (waited > STALL_NS) {
    go_alone(p);
  } else if (4 * done >= fair) {
    p->starved_calls = 0;
  } else if (awake && ++p->starved_calls == STARVED_CALLS) {
    go_alone(p);
  }
}

/* Wakes the helpers without work for them. */
static void ask_helpers(te_select_pool* p, int64_t now) {
  te_select_keep_apart(p, p->helpers + 1);
  if (!p->gives_way) give_way(p);
  atomic_store(&p->came_at_once, 0);
  atomic_store(&p->asked, now);
  atomic_store_explicit(&p->threads, 0, memory_order_relaxed);
  atomic_fetch_add(&p->generation, 1);
  te_select_wake(&p->generation, INT_MAX);
}

void te_select_answer(te_select_pool* p) {
  if (te_select_now_ns() - atomic_load(&p->asked) < AT_ONCE_NS)
    atomic_fetch_add(&p->came_at_once, 1);
}

int te_select_cores_are_free(te_select_pool* p) {
  if (!p->serial_until_ns) return 1; /* since the caller looked */
  int64_t now = te_select_now_ns();
  if (now < p->serial_until_ns) return 0;
  if (!p->asked) {
    ask_helpers(p, now);
    return 0;
  }
  /* One thread of many may have other reasons to come late. */
  int come = 4 * p->came_at_once >= 3 * p->helpers;
  if (come || now - p->serial_since_ns > MOST_ALONE_NS) {
    stop_giving_way(p);
    p->asked = p->serial_until_ns = 0;
    return 1;
  }
  if (now - p->asked > AT_ONCE_NS) {
    p->asked = 0;
    p->serial_until_ns = now + ALONE_NS;
  }
  return 0;
}
