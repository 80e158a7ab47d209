/* The machine on which a library runs, and the decisions that depend on it. Nothing of this is kept:
 * see first_use.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TE_SELECT_NEVER (INT64_C(1) << 60) /* bytes that no call moves */

/* When a span looks at a block of cond first, and does not read a side that it does not select. */
enum { TE_SELECT_SKIP_NEVER, TE_SELECT_SKIP_IN_RUNS, TE_SELECT_SKIP_ALWAYS };

/* Stores go past the cache in calls that move at least
 *   min(threads * stream_per_thread, 5/4 * l3 * caches) + caches * stream_per_l3
 * bytes; `caches` is how many last-level caches the threads have. Calls that read less than
 * fill_reads bytes for each 100 that they write compare the bytes of out with the second pair: their
 * inputs do not displace the output from the L3, so plain stores win up to larger outputs. */
typedef struct {
  int64_t stream_per_thread, stream_per_l3;
  int64_t fill_per_thread, fill_per_l3, fill_reads;
  int64_t bytes_per_thread; /* bytes moved for which one more thread pays */
  int64_t skip;             /* TE_SELECT_SKIP_... */
  int64_t backwards;        /* whether spans walk backwards if out lies just ahead of an input */
} te_select_decisions;

typedef struct {
  char vendor[16]; /* as CPUID spells it, or "arm-" and a number; empty if it is not known */
  int32_t family, model;
  int has_avx512, has_amx; /* whether CPUID shows them, whatever the system lets programs use */
  int64_t l1, l2; /* bytes of a core's first-level cache for data and of its second-level one */
  int64_t l3;     /* bytes of a last-level cache */
  int32_t threads_per_l3; /* how many share a last-level cache */
  int32_t max_threads;    /* of a call; see te_select_count_threads */
  te_select_decisions decisions;
  int64_t small_below;       /* moved bytes, from which they depend on the call */
  char origin[96];           /* of the decisions: "measured: NAME", "reasoned: NAME", ... */
  char file[1024];           /* of the user's measurements; empty if there is no home folder */
  char file_problem[96];     /* what is wrong with it, in one line; empty if nothing is */
  char profile_problem[160]; /* the same of TE_SELECT_PROFILE */
  char threads_problem[128]; /* the same of TE_SELECT_NUM_THREADS */
  char text[2560];           /* all of this: lines of "KEY = VALUE" */
} te_select_machine;

/* Finds out everything about this machine; returns its `text`. */
const char* te_select_find_machine(te_select_machine* machine);

/* The bytes from which on the stores of a call on so many threads go past the cache; see
 * te_select_decisions. A fill is compared by its output. */
__int128 te_select_streams_from(const te_select_machine* machine, int is_fill, int32_t threads);

/* The bytes moved from which on a call may have a second thread; grain is `bytes_per_thread`. */
static inline int64_t te_select_large_from(int64_t grain) {
  return grain > 0 ? 2 * grain : TE_SELECT_NEVER;
}

/* Reads the first line of a file of a folder; 0 if there is none. */
int te_select_read_line(char* line, int size, const char* folder, const char* name);

/* Copies what a user wrote into a message, which must be UTF-8. */
static inline void te_select_quote(char* to, size_t size, const char* text) {
  for (; *text && size > 1; --size, ++text) *to++ = *text < ' ' || *text > '~' ? '?' : *text;
  *to = 0;
}

/* ---- the parts of te_select_find_machine -------------------------------------------------------- */

/* Sets the vendor, the model and the caches. The second function does so by what Linux says in
 * files, as far as the files have it. */
void te_select_detect_cpu(te_select_machine* machine);
void te_select_detect_by_sysfs(te_select_machine* machine);

/* Sets the number of threads, and returns it: TE_SELECT_NUM_THREADS; else OMP_NUM_THREADS; else that of
 * processors that this process may use, but no more than its container's quota of processor time
 * pays for. From 1 to TE_SELECT_MOST_THREADS. */
int32_t te_select_count_threads(te_select_machine* machine);

/* Replaces impossible sizes, sets the decisions for the machine, and describes it. */
void te_select_take_profile(te_select_machine* machine);
