/* Threads that do nothing but answer; calls are made to run alone by hand. */
#define _GNU_SOURCE
#include "pool.h"
#include "pool_cores.h"

extern _Atomic(te_select_pool*) te_select_pool_v7;

static int nothing(int task, int tasks, void* data) {
  (void)tasks;
  for (volatile int k = 0; k < 1000; ++k) {
  }
  return data && task < 0;
}

int call(int threads) { return te_select_parallel(nothing, 0, 64, (te_select_crew){threads, 0}); }
int at_hand(int wanted) { return te_select_crew_at_hand(wanted, TE_SELECT_MOST_THREADS).threads; }

/* As after so many jobs that their count begins anew after the next. */
void wrap(void) { te_select_pool_v7->generation = UINT32_MAX; }

/* As after a stall. Helpers come back by their answer alone, not because enough time has passed. */
void stall(void) {
  te_select_pool* p = te_select_pool_v7;
  te_select_pool_record_result(p, 1, 0, 1, 1000000000);
  p->serial_since_ns += INT64_C(3600) * 1000000000;
}
