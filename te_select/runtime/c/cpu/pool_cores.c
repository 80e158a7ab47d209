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

#include <sched.h>
#include <string.h>

#include "pool_tasks.h"

enum {
  STALL_NS = 200000,  /* a task takes less than 10 us; after this the system has stopped a thread */
  STARVED_CALLS = 4,  /* in a row, in which helpers that were awake did little: calls run alone */
  ALONE_NS = 2000000, /* for this time; then helpers are asked whether they come at once */
  /* Of 100 helpers, 99 came within 0.1 ms on a free core, and 1 within 0.76 ms beside a busy loop
   * (Zen 5). */
  AT_ONCE_NS = 400000,
  BY_NOTHING = 1, /* of a helper that gives way: its policy is the program's */
  BY_POLICY = 2,
  MOST_ALONE_NS = 256000000 /* after this, calls have helpers again, whether they came or not */
};

/* On a virtual machine a CPU that sleeps looks taken, and the system wakes helpers on the waking
 * thread's CPU, where they stop it: 60 calls on 2^18 elements after a pause took twice as long (Zen 5).
 * They may run on all other CPUs of the caller. A machine of more than 64 CPUs has room for them. */
static void note_cpus(te_select_pool* p) {
  cpu_set_t all;
  uint64_t first;
  int cpu = sched_getcpu();
  if (sched_getaffinity(0, sizeof(all), &all)) return;
  memcpy(&first, &all, sizeof(first));
  int is_small = cpu >= 0 && cpu < 64 && CPU_COUNT(&all) == __builtin_popcountll(first);
  p->apart = is_small ? first & ~(UINT64_C(1) << cpu) : 0;
}

/* Gives a helper these CPUs but the one of the thread that is about to wake it. */
static void keep_apart(te_select_pool* p, int32_t number) {
  uint64_t cpus = p->apart;
  int cpu = cpus ? sched_getcpu() : -1;
  uint64_t others = cpu >= 0 && cpu < 64 ? cpus & ~(UINT64_C(1) << cpu) : cpus;
  if (others) cpus = others;
  pid_t id = p->ids[number];
  if (!cpus || cpus == p->kept[number] || !id) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  memcpy(&set, &cpus, sizeof(cpus));
  p->kept[number] = sched_setaffinity(id, sizeof(set), &set) ? 0 : cpus;
}

void te_select_wake_some(te_select_pool* p, int32_t count) {
  for (int32_t number; count > 0 && (number = take_task(&p->to_wake)) > 0;) {
    if (!atomic_load(&p->sleeps[number])) continue;
    keep_apart(p, number);
    if (!atomic_exchange(&p->sleeps[number], 0)) continue;
    te_select_wake(&p->sleeps[number], 1);
    --count;
  }
}

int te_select_wake_helpers(te_select_pool* p, int32_t end) {
  int32_t first = 1;
  while (first < end && !atomic_load(&p->sleeps[first])) ++first;
  if (first >= end) return 1;
  note_cpus(p);
  /* After the generation was raised: a helper that has not seen it sleeps. */
  atomic_store(&p->to_wake.ticket, (uint64_t)(uint32_t)first << 32 | (uint32_t)end);
  te_select_wake_some(p, 1);
  return 0;
}

/* Whether the system has done it for this thread. */
static int set_policy(int policy) {
  const struct sched_param none = {0};
  return !sched_setscheduler(0, policy, &none);
}

void te_select_stop_giving_way(int32_t* gives_way) {
  if (*gives_way != BY_POLICY || set_policy(SCHED_OTHER)) *gives_way = 0;
}

/* Has the helpers answer that do not sleep. */
static void tell_helpers(te_select_pool* p, int64_t asked) {
  atomic_store(&p->came_at_once, 0);
  atomic_store(&p->asked, asked);
  atomic_store_explicit(&p->threads, 0, memory_order_relaxed);
  atomic_fetch_add(&p->generation, 1);
}

static void go_alone(te_select_pool* p) {
  p->serial_since_ns = te_select_now_ns();
  p->serial_until_ns = p->serial_since_ns + ALONE_NS;
  p->starved_calls = 0;
  tell_helpers(p, 0); /* they give way from now on */
}

int32_t te_select_leave_cores(te_select_pool* p, int32_t wanted, int32_t most) {
  if (!p->others_until || te_select_now_ns() >= p->others_until) return wanted;
  return (int32_t)te_select_least(wanted, most - p->others);
}

void te_select_pool_record_result(te_select_pool* p, int awake, uint32_t done, uint32_t fair,
                                  int64_t waited) {
  int32_t others = __builtin_popcountll(p->turned_away);
  if (others) {
    p->others = others;
    p->others_until = te_select_now_ns() + ALONE_NS;
  }
  if (4 * done >= fair) {
    p->starved_calls = p->unhelped_calls = 0;
  } else {
    p->starved_calls += awake;
    ++p->unhelped_calls;
  }
  int goes_alone = waited > STALL_NS || p->starved_calls == STARVED_CALLS;
  if (goes_alone || p->unhelped_calls == STARVED_CALLS) {
    int32_t none = TE_SELECT_SEARCH_NONE;
    atomic_compare_exchange_strong(&p->search, &none, TE_SELECT_SEARCH_WANTED);
  }
  if (goes_alone) go_alone(p);
}

int te_select_is_crowded(const te_select_pool* p) {
  return p->unhelped_calls >= STARVED_CALLS || p->serial_until_ns;
}

void te_select_forget_crowd(te_select_pool* p) {
  p->unhelped_calls = STARVED_CALLS - 1; /* one call like that will do */
  p->serial_until_ns = p->asked = 0;
}

/* Under SCHED_BATCH a helper that wakes stops no other thread, so it comes at once only to a free core.
 * Only the default policy is changed: a program may have chosen another for its threads. */
void te_select_answer(te_select_pool* p, int32_t* gives_way) {
  if (*gives_way) {
    if (te_select_now_ns() - p->asked < AT_ONCE_NS) {
      atomic_fetch_add(&p->came_at_once, 1);
      te_select_stop_giving_way(gives_way); /* a job may follow, for which it may stop others */
    }
    return;
  }
  int may_change = sched_getscheduler(0) == SCHED_OTHER;
  *gives_way = may_change && set_policy(SCHED_BATCH) ? BY_POLICY : BY_NOTHING;
}

int te_select_cores_are_free(te_select_pool* p) {
  if (!p->serial_until_ns) return 1; /* since the caller looked */
  int64_t now = te_select_now_ns();
  if (now < p->serial_until_ns) return 0;
  if (!p->asked) {
    tell_helpers(p, now);
    te_select_wake_helpers(p, p->helpers + 1);
    return 0;
  }
  /* One thread of many may have other reasons to come late. */
  int come = 4 * p->came_at_once >= 3 * p->helpers;
  if (come || now - p->serial_since_ns > MOST_ALONE_NS) {
    p->asked = p->serial_until_ns = 0;
    return 1;
  }
  if (now - p->asked > AT_ONCE_NS) {
    p->asked = 0;
    p->serial_until_ns = now + ALONE_NS;
  }
  return 0;
}
