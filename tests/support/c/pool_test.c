/* Jobs of the pool that say what is wrong. */
#define _GNU_SOURCE
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool_cores.h"

#ifdef NO_THREAD_EVER_RUNS
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* d) {
  *t = pthread_self();
  return 0;
}
#endif

#ifdef NO_THREAD_CAN_BE_MADE
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* d) {
  return 11; /* EAGAIN */
}
#endif

enum { MOST = 1 << 16 };
typedef struct {
  _Atomic int done[MOST];
  int fails, nests, spins;
} work;

static int leaf(int task, int tasks, void* data) {
  ++*(_Atomic int*)data;
  return 0;
}

static int run(int task, int tasks, void* data) {
  work* w = data;
  ++w->done[task];
  for (volatile int k = 0; k < w->spins; ++k) {
  }
  if (w->nests) {
    _Atomic int inner = 0;
    if (te_select_parallel(leaf, &inner, 16, (te_select_crew){4, 0}) || inner < 1 || inner > 16)
      return 1;
  }
  return task + 1 == w->fails;
}

/* How many tasks were not done exactly once; -1 where the pool's answer on failure is wrong. */
int try_once(int tasks, int threads, int fails, int nests, int spins) {
  work* w = calloc(1, sizeof(work));
  w->fails = fails;
  w->nests = nests;
  w->spins = spins;
  int failed = te_select_parallel(run, w, tasks, (te_select_crew){threads, 0});
  int alone = w->done[0] == 1 && !w->done[1]; /* as one task, which is all the work */
  int wrong = 0;
  for (int i = 0; i < tasks; ++i) wrong += w->done[i] != 1;
  free(w);
  if (alone) return failed == (fails == 1) ? 0 : -1;
  if (failed != (fails > 0 && fails <= tasks)) return -1;
  return wrong;
}

int at_hand(int wanted) { return te_select_crew_at_hand(wanted, TE_SELECT_MOST_THREADS).threads; }

static int note_thread(int task, int tasks, void* data) {
  ((pthread_t*)data)[task] = pthread_self();
  for (volatile int k = 0; k < 20000; ++k) {
  }
  return 0;
}

/* Of two tasks, the first waits for a while until the second has begun, too. */
static _Atomic int met;
static int meet(int task, int tasks, void* data) {
  _Atomic int* begun = data;
  int first = ++*begun == 1;
  for (int k = 0; first && tasks == 2 && k < 20000 && *begun < 2; ++k) sched_yield();
  if (first) met = *begun == 2;
  return 0;
}

int both_at_once(void) {
  _Atomic int begun = 0;
  struct timespec pause = {0, 5000000};
  nanosleep(&pause, NULL); /* helpers sleep by now */
  met = 0;
  te_select_parallel(meet, &begun, 2, (te_select_crew){2, 0});
  return met;
}

/* How many threads took part in 64 tasks. */
int takers(int threads) {
  pthread_t seen[64];
  te_select_parallel(note_thread, seen, 1, (te_select_crew){1, 0});
  for (int i = 1; i < 64; ++i) seen[i] = seen[0];
  te_select_parallel(note_thread, seen, 64, (te_select_crew){threads, 0});
  int count = 0;
  for (int i = 0; i < 64; ++i) {
    int k = 0;
    while (k < i && !pthread_equal(seen[k], seen[i])) ++k;
    count += k == i;
  }
  return count;
}

extern _Atomic(te_select_pool*) te_select_pool_v7;

/* As after so many jobs that their count begins anew after the next. */
void wrap(void) { te_select_pool_v7->generation = UINT32_MAX; }

/* As after a stall. Helpers come back by their answer alone, not because enough time has passed. */
void stall(void) {
  te_select_pool* p = te_select_pool_v7;
  te_select_pool_record_result(p, 1, 0, 1, 1000000000);
  p->serial_since_ns += INT64_C(3600) * 1000000000;
}
