/* The clock is made up, and there are no threads: the test says what helpers do. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <time.h>

static int64_t clock_ns = 1000000000;

static int look_at_clock(clockid_t id, struct timespec* t) {
  t->tv_sec = clock_ns / 1000000000;
  t->tv_nsec = clock_ns % 1000000000;
  return 0;
}
#define clock_gettime look_at_clock

#include <sched.h>

/* The helpers' threads are made up, too: what the system is asked for is kept. */
static cpu_set_t caller, helper_runs_on[9];
static int caller_on, policy_of[9], refused; /* the policy is SCHED_OTHER, which is 0 */
static int this_one;                         /* the helper that asks for a policy */

static int look_at_caller(pid_t id, size_t size, cpu_set_t* set) {
  *set = caller;
  return 0;
}
static int move_helper(pid_t id, size_t size, const cpu_set_t* set) {
  helper_runs_on[id] = *set;
  return 0;
}
static int set_policy_of_helper(pid_t id, int wanted, const struct sched_param* none) {
  if (!refused) policy_of[this_one] = wanted;
  return refused;
}
#define sched_getcpu() caller_on
#define sched_getaffinity look_at_caller
#define sched_setaffinity move_helper
#define sched_setscheduler set_policy_of_helper
#define sched_getscheduler(id) policy_of[(id) + this_one]
#include "pool_cores.c"

static int32_t asked;

enum { CORES = 8 };

static te_select_pool p = {.helpers = 3, .ids = {0, 1, 2, 3}, .sleeps = {0, 1, 1, 1}};

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

int are_free(void) {
  int64_t before = p.asked;
  int found = te_select_cores_are_free(&p);
  asked += p.asked && p.asked != before;
  return found;
}
static int32_t gives_way[9];
void answer(int helper) {
  this_one = helper;
  te_select_answer(&p, &gives_way[helper]);
}
void take_part(int helper) {
  this_one = helper;
  te_select_stop_giving_way(&gives_way[helper]);
}
int all_were_woken(void) { return !p.sleeps[1] && (int32_t)p.to_wake.ticket == p.helpers + 1; }
void let_pass(int64_t ns) { clock_ns += ns; }
int times_asked(void) { return asked; }
int times_told(void) { return (int)p.generation; }
int policy(int helper) { return policy_of[helper]; }
void refuse(int all) { refused = all; }
void choose(int helper, int policy) { policy_of[helper] = policy; }

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
/* The caller notes its CPUs, and a thread on CPU `by` wakes a helper. */
void wake_apart(int on, int allowed, int by, int helper) {
  place_caller(on, allowed);
  note_cpus(&p);
  caller_on = by;
  keep_apart(&p, helper);
}
/* The caller has another CPU than the first 64, too. */
int notes_large_machine(void) {
  place_caller(0, 3);
  CPU_SET(64, &caller);
  note_cpus(&p);
  return p.apart != 0;
}
