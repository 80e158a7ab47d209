/* The pool beside a runtime of OpenMP. The clocks are made up: the test says whether a team works. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <time.h>

int team_is_at_work = 1;
static int64_t clock_ns = 1000000000;
static int look_at_clock(clockid_t id, struct timespec* t) {
  static _Atomic int64_t looks;
  int64_t now = id == CLOCK_MONOTONIC ? clock_ns : team_is_at_work ? ++looks : 0;
  t->tv_sec = now / 1000000000;
  t->tv_nsec = now % 1000000000;
  return 0;
}
#define clock_gettime look_at_clock
static _Atomic int searches; /* that have ended, with their threads */
#define pthread_detach(thread) (pthread_join(thread, NULL), ++searches)
#include "pool.c"
#include "pool_cores.c"
#include "pool_team.c"

enum { TASKS = 16 };
static _Atomic int done[TASKS];

void let_pass(int64_t ns) { clock_ns += ns; }
int64_t* the_clock(void) { return &clock_ns; }

/* Records a call, and waits until runtimes were looked for; returns how many there are. */
static int look_after(te_select_pool* p, uint32_t by_helpers, int64_t waited) {
  int before = searches;
  te_select_pool_record_result(p, 0, by_helpers, 1, waited);
  te_select_look_for_runtimes(p); /* unless a late helper does */
  while (p->search != TE_SELECT_SEARCH_OFF && searches == before) {
  }
  return p->runtimes;
}

/* After calls without help; what real helpers did on a busy machine counts no longer. */
int crowd(void) {
  the_pool()->starved_calls = 0;
  the_pool()->unhelped_calls = STARVED_CALLS - 1;
  return look_after(the_pool(), 0, 0);
}
/* After one call that had help, but waited for it. */
int stall(void) { return look_after(the_pool(), 1, STALL_NS + 1); }
int is_crowded(void) { return te_select_is_crowded(the_pool()); }

static int run(int32_t task, int32_t tasks, void* data) {
  ++done[task];
  return tasks != TASKS;
}

/* Ten times the threads of a call that wants `wanted`, and one if its crew is a team; -1 if a task was
 * not done once. */
int call(int wanted) {
  for (int i = 0; i < TASKS; ++i) done[i] = 0;
  te_select_crew crew = te_select_crew_at_hand(wanted, 8);
  if (crew.threads > 1) {
    if (te_select_parallel(run, NULL, TASKS, crew)) return -1;
    for (int i = 0; i < TASKS; ++i) {
      if (done[i] != 1) return -1;
    }
  }
  return 10 * crew.threads + (crew.team > 0);
}
