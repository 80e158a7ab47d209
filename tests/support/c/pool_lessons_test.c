/* The pool with a clock that is made up. */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

/* A look at this clock takes 1 ns, and now and then the owner of a range takes a task. */
static int64_t clock_ns = 1000000000, looks, looks_a_task;
static _Atomic uint64_t* moving;

static int look_at_clock(clockid_t id, struct timespec* t) {
  ++looks;
  ++clock_ns;
  if (looks_a_task && looks % looks_a_task == 0) *moving += UINT64_C(1) << 32;
  t->tv_sec = clock_ns / 1000000000;
  t->tv_nsec = clock_ns % 1000000000;
  return 0;
}
#define clock_gettime look_at_clock
#define te_select_pool_v7 pool_of_this_test
static _Atomic int64_t pauses;
#define __builtin_ia32_pause() (++pauses)
#define te_select_pool_record_result hear_and_record
#include "pool.c"
#undef te_select_pool_record_result
#include "pool_cores.c"
#include "pool_team.c"
_Atomic(te_select_pool*) pool_of_this_test;

/* What the last job said of its helpers. */
static int said_awake, said_fair;
void hear_and_record(te_select_pool* p, int awake, uint32_t done, uint32_t fair, int64_t waited) {
  said_awake = awake;
  said_fair = (int)fair;
  te_select_pool_record_result(p, awake, done, fair, waited);
}
int were_awake(void) { return said_awake; }
int fair_share(void) { return said_fair; }

int asleep(void) {
  int count = 0;
  for (int i = 1; i < 4; ++i) count += the_pool()->sleeps[i] != 0;
  return count;
}
/* As if a helper that sleeps did not; nobody wakes it then. */
void take_for_asleep(int number, int asleep) { the_pool()->sleeps[number] = (uint32_t)asleep; }
void wake_to_ask(void) {
  tell_helpers(the_pool(), te_select_now_ns());
  te_select_wake_helpers(the_pool(), 4);
}
int64_t count_pauses(void) { return atomic_exchange(&pauses, 0); }

/* Looks until it is known whether tasks are left; negative where none is. */
int64_t looks_at(int32_t begin, int32_t next, int32_t end, int64_t each) {
  te_select_range r = {(uint64_t)next << 32 | (uint32_t)end};
  looks = 0;
  looks_a_task = each;
  moving = &r.ticket;
  int left = is_left(&r, begin, 1000);
  looks_a_task = 0;
  return left ? looks : -looks;
}

static int take_time(int32_t task, int32_t tasks, void* data) {
  clock_ns += *(int64_t*)data;
  return task >= tasks;
}

/* Looks at the last task of another thread, after `count` tasks of our own that take `ns` each. */
int64_t looks_after(int32_t count, int64_t ns) {
  static te_select_pool p;
  p.task = take_time;
  p.data = &ns;
  p.tasks = 2 * count;
  p.ranges[0].ticket = (uint32_t)count;
  p.ranges[1].ticket = (uint64_t)(2 * count - 1) << 32 | (uint32_t)(2 * count);
  looks = 0;
  return te_select_do_tasks(&p, 0, 2, te_select_now_ns()) == (uint32_t)count + 1 ? looks : -1;
}

int at_hand(int wanted) { return te_select_crew_at_hand(wanted, 4).threads; }
void set_busy(int busy) { the_pool()->busy = busy; }

static int nothing(int32_t task, int32_t tasks, void* data) { return 0; }
int call(int threads) { return te_select_parallel(nothing, NULL, 4, (te_select_crew){threads, 0}); }

/* How many threads were turned away since the last job began. */
int turned_away(void) { return __builtin_popcountll(the_pool()->turned_away); }

/* A job while which two other threads call. */
static int meet_two(int32_t task, int32_t tasks, void* data) {
  the_pool()->turned_away = 3;
  return 0;
}
void let_pass(int64_t ns) { clock_ns += ns; }
int call_beside_two(void) {
  int failed = te_select_parallel(meet_two, NULL, 4, (te_select_crew){2, 0});
  the_pool()->serial_until_ns = 0; /* on a busy machine, helpers may have come too late */
  return failed;
}
