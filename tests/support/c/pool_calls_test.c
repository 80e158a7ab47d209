/* The pool, whose system calls are counted for each thread. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local int system_calls;
static void count_call(void);
#define syscall(...) (count_call(), syscall(__VA_ARGS__))
#define sched_getaffinity(...) (++system_calls, sched_getaffinity(__VA_ARGS__))
#define sched_setaffinity(...) (++system_calls, sched_setaffinity(__VA_ARGS__))
#define sched_getscheduler(...) (++system_calls, sched_getscheduler(__VA_ARGS__))
#define sched_setscheduler(...) (++system_calls, sched_setscheduler(__VA_ARGS__))
#include "pool.c"
#include "pool_cores.c"
#include "pool_team.c"

static const struct timespec a_while = {0, 1000000};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_changed = PTHREAD_COND_INITIALIZER;
static _Thread_local int last_job, is_caller;
static int jobs, came, wanted, caller_sleeps;

/* Waits a minute at most. */
static int wait_until(const int* number, int least) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 60;
  int failed = 0;
  while (*number < least && !failed) failed = pthread_cond_timedwait(&has_changed, &lock, &end);
  return failed;
}

static void count_call(void) {
  ++system_calls;
  if (!is_caller || !the_pool()->awaited) return;
  pthread_mutex_lock(&lock);
  caller_sleeps = 1;
  pthread_cond_broadcast(&has_changed);
  pthread_mutex_unlock(&lock);
}

/* A task ends once all threads have come, however busy the cores are; of a helper, once the caller
 * sleeps. */
static int work(int32_t task, int32_t tasks, void* data) {
  pthread_mutex_lock(&lock);
  came += last_job != jobs;
  last_job = jobs;
  if (came == wanted) pthread_cond_broadcast(&has_changed);
  int failed = wait_until(&came, wanted) || (!is_caller && wait_until(&caller_sleeps, 1));
  pthread_mutex_unlock(&lock);
  return failed;
}

/* Threads that took part; -1 if not all came. */
int start(int threads) {
  is_caller = 1;
  caller_sleeps = came = 0;
  wanted = threads;
  ++jobs;
  return te_select_parallel(work, NULL, threads, (te_select_crew){threads, 0}) ? -1 : came;
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
