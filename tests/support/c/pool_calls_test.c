/* The pool, whose system calls are counted for each thread. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local int system_calls;
#define syscall(...) (++system_calls, syscall(__VA_ARGS__))
#define sched_getaffinity(...) (++system_calls, sched_getaffinity(__VA_ARGS__))
#define sched_setaffinity(...) (++system_calls, sched_setaffinity(__VA_ARGS__))
#define sched_getscheduler(...) (++system_calls, sched_getscheduler(__VA_ARGS__))
#define sched_setscheduler(...) (++system_calls, sched_setscheduler(__VA_ARGS__))
#include "pool.c"
#include "pool_cores.c"
#include "pool_team.c"

static const struct timespec a_while = {0, 1000000};
static _Thread_local int last_job;
static _Atomic int jobs, came;

static int work(int32_t task, int32_t tasks, void* data) {
  if (last_job != jobs) ++came;
  last_job = jobs;
  nanosleep(&a_while, NULL);
  return task >= tasks || data;
}

/* Threads that took part. */
int start(int threads) {
  came = 0;
  ++jobs;
  return te_select_parallel(work, NULL, 2 * threads, (te_select_crew){threads, 0}) ? -1 : came;
}

int asleep(void) {
  int count = 0;
  for (int i = 1; i < TE_SELECT_MOST_THREADS; ++i) count += the_pool()->sleeps[i] != 0;
  return count;
}

int threads_that_came(void) { return came; }

/* What the caller makes in a call, once all helpers sleep; -1 if they do not. */
int calls_after_pause(int threads, int helpers) {
  for (int k = 0; asleep() < helpers; ++k) {
    if (k > 20000) return -1;
    nanosleep(&a_while, NULL);
  }
  system_calls = 0;
  return start(threads) < 0 ? -1 : system_calls;
}
