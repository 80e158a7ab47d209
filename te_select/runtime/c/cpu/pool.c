/* A pool of helper threads.
 *
 * The work of a call is a number of tasks. The caller and every helper own a range of them. The
 * ranges are the same at each call, so that each core finds in its cache what the last call left
 * there. A thread that has done its own range takes tasks from ranges whose owners have not come,
 * or do not go on. So the caller waits for a helper only if the helper has begun a task; if no
 * helper comes, the caller does all the work.
 *
 * The ticket of a range is one word: its next task and its end. A thread takes a task by raising
 * the ticket by one, with a compare-and-swap. It reads the job only after that: the caller waits
 * while a task is under way, so the job does not change.
 *
 * After a job, helpers look for work for a short while, and then sleep. To wake a thread takes some
 * microseconds, so the caller wakes one helper, and every helper that has come wakes two others, on
 * other CPUs than its own and the caller's. The caller sleeps, too, while a helper finishes its last
 * task: then the system can continue a helper that it has stopped on the caller's core.
 *
 * `pool_cores.c` decides whether a call has helpers at all, and `pool_team.c` whether OpenMP's threads
 * take their place.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "pool_cores.h"
#include "pool_tasks.h"
#include "pool_team.h"

enum {
  HELPER_SPINS = 3000,      /* looks for a new job before a helper sleeps; some 100 us */
  CALLER_SPINS = 600,       /* looks for the end of others' tasks before the caller sleeps; 20 us */
  STACK_BYTES = 512 * 1024, /* of a helper; kernels need little, and the default is 8 MB */
  WAKES_EACH = 2            /* so many others are woken by a helper */
};

/* Every library defines this variable, and the process has it once: the dynamic linker merges
 * symbols of this type. Of several static libraries, the linker takes the group of the first. */
__asm__(
    ".pushsection .bss.te_select_pool,\"awG\",%nobits,te_select_pool_v7,comdat\n"
    ".balign 8\n.globl te_select_pool_v7\n.type te_select_pool_v7, %gnu_unique_object\n"
    ".size te_select_pool_v7, 8\nte_select_pool_v7:\n.zero 8\n.popsection\n");
extern _Atomic(te_select_pool*) te_select_pool_v7 __attribute__((visibility("default")));

static _Atomic int32_t is_child;

/* ---- waiting ---------------------------------------------------------------------------------- */

static void sleep_on(void* word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* ---- helpers ---------------------------------------------------------------------------------- */

typedef struct {
  te_select_pool* pool;
  int32_t number; /* from 1 */
} helper;

/* Sleeps until there is another job than the last. */
static void wait_for_job(te_select_pool* p, int32_t number, uint32_t last) {
  atomic_store(&p->sleeps[number], 1);
  while (atomic_load(&p->sleeps[number]) && atomic_load(&p->generation) == last) {
    sleep_on(&p->sleeps[number], 1);
  }
  atomic_store(&p->sleeps[number], 0);
}

/* Wakes the caller if it sleeps and helpers have done what it waits for. */
static void end_wait(te_select_pool* p) {
  uint32_t awaited = atomic_load(&p->awaited);
  if (awaited && awaited == atomic_load(&p->finished) &&
      atomic_compare_exchange_strong(&p->awaited, &awaited, 0)) {
    te_select_wake(&p->awaited, 1);
  }
}

static void* run_helper(void* argument) {
  helper self = *(helper*)argument;
  free(argument);
  te_select_pool* p = self.pool;
  atomic_store(&p->ids[self.number], (pid_t)syscall(SYS_gettid));
  uint32_t seen = atomic_load(&p->generation) - 1;
  int32_t spins = HELPER_SPINS, gives_way = 0;
  for (;;) {
    uint32_t generation = atomic_load_explicit(&p->generation, memory_order_acquire);
    for (int32_t i = 0; generation == seen && i < spins; ++i) {
      relax();
      generation = atomic_load_explicit(&p->generation, memory_order_acquire);
    }
    if (generation == seen) {
      wait_for_job(p, self.number, seen);
      continue;
    }
    seen = generation;
    te_select_wake_some(p, WAKES_EACH);
    if (p->search == TE_SELECT_SEARCH_WANTED) te_select_look_for_runtimes(p);
    int32_t threads = atomic_load_explicit(&p->threads, memory_order_relaxed);
    spins = threads ? HELPER_SPINS : 0; /* if helpers were only asked, no job follows soon */
    if (!threads) te_select_answer(p, &gives_way);
    if (self.number >= threads) continue;
    te_select_stop_giving_way(&gives_way);
    if (te_select_do_tasks(p, self.number, threads, te_select_now_ns())) end_wait(p);
  }
  return NULL;
}

/* Starts helpers until there are `wanted`, or the system refuses one. They block all signals. */
static void start_helpers(te_select_pool* p, int32_t wanted) {
  if (p->helpers >= wanted) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  while (p->helpers < wanted) {
    helper* argument = malloc(sizeof(helper));
    pthread_t thread;
    if (!argument) break;
    *argument = (helper){p, p->helpers + 1};
    if (pthread_create(&thread, &attributes, run_helper, argument)) {
      free(argument);
      break;
    }
    pthread_setname_np(thread, "te_select");
    ++p->helpers;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static te_select_pool* the_pool(void) {
  te_select_pool* p = atomic_load_explicit(&te_select_pool_v7, memory_order_acquire);
  if (p) return p;
  te_select_pool* made = NULL;
  if (posix_memalign((void**)&made, TE_SELECT_LINE_BYTES, sizeof(te_select_pool))) return NULL;
  memset(made, 0, sizeof(te_select_pool));
  const char* wish = getenv("TE_SELECT_TEAM");
  if (wish && !strcmp(wish, "0")) made->search = TE_SELECT_SEARCH_OFF;
  if (!atomic_compare_exchange_strong(&te_select_pool_v7, &p, made)) {
    free(made);
    return p;
  }
  return made;
}

static int run_alone(te_select_task task, void* data) { return task(0, 1, data) != 0; }

/* Waits until helpers have done `count` tasks. Returns the nanoseconds it slept, or 0. */
static int64_t wait_for(te_select_pool* p, uint32_t count) {
  uint32_t finished = atomic_load_explicit(&p->finished, memory_order_acquire);
  for (int32_t i = 0; finished != count && i < CALLER_SPINS; ++i) {
    relax();
    finished = atomic_load_explicit(&p->finished, memory_order_acquire);
  }
  if (finished == count) return 0;
  int64_t start = te_select_now_ns();
  for (;;) {
    atomic_store(&p->awaited, count);
    if (atomic_load(&p->finished) == count) break;
    sleep_on(&p->awaited, count);
  }
  atomic_store(&p->awaited, 0);
  return te_select_now_ns() - start;
}

static int claim_pool(te_select_pool* p) {
  int32_t nobody = 0;
  return atomic_compare_exchange_strong(&p->busy, &nobody, 1);
}

/* Notes a thread that calls while another call has the pool. */
static void turn_away(te_select_pool* p) {
  uint64_t mixed = (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9E3779B97F4A7C15);
  atomic_fetch_or(&p->turned_away, UINT64_C(1) << (mixed >> 58));
}

static void release_pool(te_select_pool* p) {
  atomic_store_explicit(&p->busy, 0, memory_order_release);
}

/* Whether the caller is in a parallel region of OpenMP, whose threads use the cores. The loader binds
 * it when this library is loaded, if a runtime is in the scope then. To look for runtimes in a call
 * would need the loader's lock, which another thread may hold until this call returns. */
extern int omp_in_parallel(void) __attribute__((weak, visibility("default")));

te_select_crew te_select_crew_at_hand(int32_t wanted, int32_t most) {
  const te_select_crew alone = {1, 0};
  if (wanted <= 1 || is_child) return alone;
  te_select_pool* p = the_pool();
  if (!p || p->forked) return alone;
  if (p->busy) {
    turn_away(p);
    return alone;
  }
  if ((omp_in_parallel && omp_in_parallel()) || te_select_in_region(p)) return alone;
  wanted = te_select_leave_cores(p, wanted, most);
  if (wanted <= 1) return alone;
  te_select_crew crew = {wanted, 0};
  if (te_select_is_crowded(p)) {
    if (!claim_pool(p)) return alone;
    te_select_take_team(p, &crew);
    int welcome = crew.team || te_select_cores_are_free(p);
    release_pool(p);
    if (!welcome) return alone;
  }
  return crew;
}

/* Gives each thread of a job a range of its tasks. */
static void share_tasks(te_select_pool* p, int32_t tasks, int32_t threads) {
  atomic_store_explicit(&p->tasks, tasks, memory_order_relaxed);
  atomic_store_explicit(&p->failed, 0, memory_order_relaxed);
  atomic_store_explicit(&p->finished, 0, memory_order_relaxed);
  atomic_store_explicit(&p->threads, threads, memory_order_relaxed);
  for (int32_t i = 0; i < threads; ++i) {
    uint64_t next = (uint32_t)begin_of(i, tasks, threads);
    uint32_t end = (uint32_t)begin_of(i + 1, tasks, threads);
    atomic_store_explicit(&p->ranges[i].ticket, next << 32 | end, memory_order_release);
  }
}

/* Runs a job with helpers, and records how that went. */
static void run_with_helpers(te_select_pool* p, int32_t tasks, int32_t threads) {
  atomic_fetch_add(&p->generation, 1);
  int were_awake = te_select_wake_helpers(p, threads);
  int64_t start = te_select_now_ns();
  uint32_t by_helpers = (uint32_t)tasks - te_select_do_tasks(p, 0, threads, start);
  int64_t waited = wait_for(p, by_helpers);
  uint32_t fair = (uint32_t)(tasks - begin_of(1, tasks, threads));
  te_select_pool_record_result(p, were_awake, by_helpers, fair, waited);
}

/* The linker prefers that of model_pool.c. Were this one not defined, gold would not give it the address
 * 0 in a program that may be loaded anywhere, but that of the program itself. */
__attribute__((weak)) int te_select_parallel_in_model(te_select_task task, void* data,
                                                      int32_t tasks, int32_t threads) {
  (void)task;
  (void)data;
  (void)tasks;
  (void)threads;
  return -1;
}

int te_select_parallel(te_select_task task, void* data, int32_t tasks, te_select_crew crew) {
  int32_t most = (int32_t)te_select_least(tasks, TE_SELECT_MOST_THREADS);
  int32_t threads = (int32_t)te_select_least(crew.threads, most);
  if (threads <= 1 || is_child) return run_alone(task, data);
  int failed_in_model = te_select_parallel_in_model(task, data, tasks, threads);
  if (failed_in_model >= 0) return failed_in_model;
  te_select_pool* p = the_pool();
  if (!p || p->forked) return run_alone(task, data);
  if (!claim_pool(p)) { /* the helpers of another call use the cores */
    turn_away(p);
    return run_alone(task, data);
  }
  atomic_store(&p->turned_away, 0);
  p->task = task;
  p->data = data;
  if (crew.team) {
    share_tasks(p, tasks, threads);
    /* A helper that comes late from the last job may have taken some of them. */
    wait_for(p, (uint32_t)tasks - te_select_run_on_team(p, crew.team, threads));
  } else {
    start_helpers(p, threads - 1);
    if (threads > p->helpers + 1) threads = p->helpers + 1;
    share_tasks(p, tasks, threads);
    run_with_helpers(p, tasks, threads);
  }
  int failed = atomic_load_explicit(&p->failed, memory_order_relaxed);
  release_pool(p);
  return failed;
}

void te_select_run_serially(void) {
  is_child = 1;
  te_select_pool* p = te_select_pool_v7;
  if (p) p->forked = 1;
}

/* Helpers wait in the code of the library that has started them. If a program closes it, the dynamic
 * linker keeps the first library that defines the variable above, but none of those after it. A
 * program, whose name is empty, is never closed. By the name that the linker has, no file is opened. */
__attribute__((constructor)) static void stay_loaded_and_watch_forks(void) {
  struct link_map* own = te_select_library_of((void*)take_task);
  if (own && *own->l_name) dlopen(own->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  pthread_atfork(NULL, NULL, te_select_run_serially);
}
