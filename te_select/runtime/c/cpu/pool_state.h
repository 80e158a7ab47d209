/* What the caller and the helpers of the pool share. */
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"

enum { TE_SELECT_LINE_BYTES = 64 }; /* of the cache */
#define TE_SELECT_ON_A_LINE _Alignas(TE_SELECT_LINE_BYTES)

typedef struct {
  TE_SELECT_ON_A_LINE _Atomic uint64_t ticket; /* the next task, and below it the end */
} te_select_range;

enum { TE_SELECT_MOST_RUNTIMES = 4, TE_SELECT_MOST_TEAMS = 8 };
enum {
  TE_SELECT_SEARCH_NONE,
  TE_SELECT_SEARCH_WANTED,
  TE_SELECT_SEARCH_BEGUN,
  TE_SELECT_SEARCH_OFF
};

/* An OpenMP runtime of this process, which stays loaded. */
typedef struct {
  void (*parallel)(void (*run)(void*), void* data, unsigned threads, unsigned flags);
  int (*in_parallel)(void);
  int (*max_threads)(void);
  int (*thread_number)(void);
  /* Its memory of each thread, from pthread_self() on; and what that is until a thread uses it: the
   * image, and zeros after it. */
  intptr_t memory;
  size_t bytes, image_bytes;
  const char* image;
} te_select_runtime;

/* A thread that calls, and its team of a runtime. */
typedef struct {
  pthread_t caller;
  const te_select_runtime* of;
  int32_t is_known;   /* it has done a call */
  int32_t has_others; /* it has more threads than the caller */
  clockid_t clock;    /* time on a CPU of another thread of it, or of the caller if it has none */
  int64_t late_until_ns, late_for_ns; /* until then it is not asked, and how long it was so last */
} te_select_team;

/* Libraries of several versions share it. Another layout needs another name, te_select_pool_v8, here, in
 * pool.c, static_code.py and their tests. */
typedef struct {
  TE_SELECT_ON_A_LINE _Atomic uint32_t generation; /* raised with every job */
  TE_SELECT_ON_A_LINE _Atomic uint32_t finished;   /* tasks of helpers */
  _Atomic uint32_t awaited; /* how many the caller waits for, sleeping on this; else 0 */
  TE_SELECT_ON_A_LINE _Atomic int32_t busy; /* a call has the pool; guards what is not atomic */
  int32_t helpers;                          /* how many were started */
  int32_t starved_calls;                    /* calls in a row in which helpers did little */
  _Atomic int64_t serial_until_ns; /* until then calls run alone; 0 if the cores are free */
  int64_t serial_since_ns;         /* when the cores turned out to have other work */
  _Atomic int64_t asked;           /* when helpers were asked to come; 0 if they were not */
  _Atomic int32_t came_at_once;    /* how many did */
  _Atomic uint64_t turned_away;    /* a bit for each thread that called during the last job */
  _Atomic int32_t others;          /* so many other threads called lately ... */
  _Atomic int64_t others_until;    /* ... and a core is left to each of them until then */
  _Atomic int32_t unhelped_calls;  /* in a row, in which helpers did little, awake or not */
  _Atomic int32_t search;          /* for runtimes: TE_SELECT_SEARCH_... */
  _Atomic int32_t runtimes;        /* how many there are */
  te_select_runtime runtime[TE_SELECT_MOST_RUNTIMES];
  unsigned long long loaded; /* how many libraries the process had loaded before the last look */
  te_select_team teams[TE_SELECT_MOST_TEAMS];
  int32_t started_a_team;  /* by mistake; no other is tried */
  int32_t by_team;         /* a team did the last call */
  _Atomic uint64_t apart;  /* CPUs for helpers, as bits; 0 leaves them where they are */
  _Atomic int32_t forked;  /* this process is a child, without the helpers */
  _Atomic int32_t threads; /* of the job; 0 if helpers were only asked to come */
  te_select_task task;
  void* data;
  _Atomic int32_t tasks;
  _Atomic int32_t failed;
  te_select_range ranges[TE_SELECT_MOST_THREADS];
  te_select_range to_wake;                         /* helpers that nobody has woken yet */
  _Atomic uint32_t sleeps[TE_SELECT_MOST_THREADS]; /* 1 for a helper that sleeps on it */
  _Atomic uint64_t kept[TE_SELECT_MOST_THREADS];   /* CPUs that a helper was given, as bits */
  _Atomic pid_t ids[TE_SELECT_MOST_THREADS]; /* of the helpers; 0 for one that has not begun */
} te_select_pool;

static inline void te_select_wake(void* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Nanoseconds of a clock; -1 if it is that of a thread that has ended. */
static inline int64_t te_select_read_clock(clockid_t clock) {
  struct timespec t;
  return clock_gettime(clock, &t) ? -1 : t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t te_select_now_ns(void) { return te_select_read_clock(CLOCK_MONOTONIC); }
