/* How threads take tasks out of ranges. */
#pragma once

#include "pool_state.h"

enum { TE_SELECT_PATIENCE = 2 }; /* an owner whose task takes this many times ours has stopped */

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

/* Takes a task out of a range; -1 if none is left. */
static inline int32_t take_task(te_select_range* r) {
  uint64_t ticket = atomic_load_explicit(&r->ticket, memory_order_relaxed);
  for (;;) {
    uint32_t next = (uint32_t)(ticket >> 32), end = (uint32_t)ticket;
    if (next >= end) return -1;
    if (atomic_compare_exchange_weak_explicit(&r->ticket, &ticket, ticket + (UINT64_C(1) << 32),
                                              memory_order_acquire, memory_order_relaxed)) {
      return (int32_t)next;
    }
  }
}

/* Takes and does tasks of a range until none is left; returns how many this thread did. */
static inline uint32_t do_tasks_of(te_select_pool* p, te_select_range* r, int is_helper) {
  uint32_t done = 0;
  for (int32_t task; (task = take_task(r)) >= 0; ++done) {
    if (p->task(task, p->tasks, p->data)) atomic_store(&p->failed, 1);
    if (is_helper) {
      te_select_fence();
      /* Sequentially consistent with the look at `awaited` in `end_wait`. */
      atomic_fetch_add(&p->finished, 1);
    }
  }
  return done;
}

/* Waits while the owner of a range takes one task after another, because the owner has their data
 * in its cache. Returns whether tasks are left that the owner does not take. */
static inline int is_left(te_select_range* r, int32_t begin, int64_t patience) {
  uint64_t ticket = atomic_load_explicit(&r->ticket, memory_order_relaxed);
  int64_t since = 0;
  while ((uint32_t)(ticket >> 32) < (uint32_t)ticket) {
    if ((int32_t)(ticket >> 32) == begin) return 1; /* the owner has not come */
    int64_t now = te_select_now_ns();
    if (!since) since = now;
    if (now - since > patience) return 1;
    relax();
    uint64_t before = ticket;
    ticket = atomic_load_explicit(&r->ticket, memory_order_relaxed);
    if (ticket != before) since = 0;
  }
  return 0;
}

static inline int32_t begin_of(int32_t owner, int32_t tasks, int32_t threads) {
  return (int32_t)te_select_share(tasks, owner, threads);
}

/* Does tasks of the `own` range and then of the others until none is left; returns how many. */
static inline uint32_t te_select_do_tasks(te_select_pool* p, int32_t own, int32_t threads,
                                          int64_t start) {
  uint32_t done = do_tasks_of(p, &p->ranges[own], own > 0);
  int64_t patience = done ? TE_SELECT_PATIENCE * (te_select_now_ns() - start) / done : 0;
  for (int32_t i = 1; i < threads; ++i) {
    int32_t other = (own + i) % threads;
    /* This may already be a later job. Then `begin` is wrong, which only makes this thread wait. */
    int32_t tasks = atomic_load_explicit(&p->tasks, memory_order_relaxed);
    if (is_left(&p->ranges[other], begin_of(other, tasks, threads), patience)) {
      done += do_tasks_of(p, &p->ranges[other], own > 0);
    }
  }
  return done;
}
