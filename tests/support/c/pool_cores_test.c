/* The clock is made up, and there are no threads: the test says what helpers do. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
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
  (void)id;
  memset(set, 0, size);
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
#include "pool_cores.c"

enum { CORES = 8 };

static te_select_pool p = {.helpers = 3, .ids = {0, 1, 2, 3}};

/* Nanoseconds for which calls run alone after this one. */
int64_t teach(int awake, uint32_t done, int64_t waited) {
  te_select_pool_record_result(&p, awake, done, 48, waited);
  return p.serial_until_ns ? p.serial_until_ns - clock_ns : 0;
}

/* Threads of a call that wants so many, after a job while which threads of these bits called. */
int left_beside(uint64_t turned_away, int wanted) {
  p.turned_away = turned_away;
  te_select_pool_record_result(&p, 1, 48, 48, 0);
  return te_select_leave_cores(&p, wanted, CORES);
}
int left(int wanted) { return te_select_leave_cores(&p, wanted, CORES); }

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
void choose(int policy) { policy_of[1] = policy; }
int policy_of_first(void) { return policy_of[1]; }

/* The caller is on CPU `on`, and may use those of the bits `allowed`. */
static void place_caller(int on, int allowed) {
  caller_on = on;
  CPU_ZERO(&caller);
  for (size_t cpu = 0; cpu < 8; ++cpu) {
    if (allowed >> cpu & 1) CPU_SET(cpu, &caller);
  }
}

/* The CPUs of a helper, as bits; 0 if it was never moved. */
int cpus_of(int helper) {
  int found = 0;
  for (size_t cpu = 0; cpu < 8; ++cpu) {
    if (CPU_ISSET(cpu, &helper_runs_on[helper])) found |= 1 << cpu;
  }
  return found;
}

/* A helper begins with an id, or is to begin if that is 0; it has not been moved. */
void begin(int helper, int id) {
  p.ids[helper] = id;
  CPU_ZERO(&helper_runs_on[helper]);
}
void run_apart(int on, int allowed, int threads) {
  place_caller(on, allowed);
  te_select_keep_apart(&p, threads);
}
int are_free_from(int on, int allowed) {
  place_caller(on, allowed);
  return te_select_cores_are_free(&p);
}
