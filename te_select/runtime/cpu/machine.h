/* The machine on which a library runs, and the decisions that depend on it. */
#ifndef TE_SELECT_MACHINE_H_
#define TE_SELECT_MACHINE_H_

#include <stddef.h>
#include <stdint.h>

#define TE_SELECT_NEVER (INT64_C(1) << 60) /* bytes that no call moves */

/* When a span looks at a block of cond first, and does not read a side that it does not select. */
enum { TE_SELECT_SKIP_NEVER, TE_SELECT_SKIP_IN_RUNS, TE_SELECT_SKIP_ALWAYS };

/* Stores go past the cache in calls that move at least this many bytes: stream_per_thread for each
 * thread, but no more than 5/4 of the last-level caches that these threads have, plus stream_per_l3
 * for each of these caches. Calls that read less than half as much as they write are compared by the
 * bytes of out with the second pair. */
typedef struct {
  int64_t stream_per_thread, stream_per_l3;
  int64_t fill_per_thread, fill_per_l3;
  int64_t bytes_per_thread; /* bytes moved for which one more thread pays */
  int64_t skip;             /* TE_SELECT_SKIP_... */
  int64_t backwards;        /* whether spans walk backwards if out lies just ahead of an input */
} te_select_decisions;

typedef struct {
  char vendor[16]; /* as CPUID spells it, or "arm-" and a number; empty if it is not known */
  int32_t family, model;
  int64_t l2, l3;         /* bytes of the second-level cache of a core, and of a last-level cache */
  int32_t threads_per_l3; /* how many share a last-level cache */
  const char* origin;     /* of the decisions: "measured: NAME", "reasoned: NAME", ... */
  te_select_decisions decisions;
} te_select_machine;

/* This machine, as it was found when the library was loaded. */
const te_select_machine* te_select_this_machine(void);

/* What is wrong with TE_SELECT_PROFILE, in one line; NULL if nothing is. */
const char* te_select_bad_profile(void);

/* Bytes that a call moves, of the bytes of its operands: one value of cond selects one side only. */
static inline int64_t te_select_moved(int64_t cond, int64_t then, int64_t other, int64_t out) {
  int64_t sides = cond > 1 ? then + other : then > other ? then : other;
  return cond + sides + out;
}

/* Whether the stores of a call go past the cache: it moves `moved` bytes, `out` of them output, on
 * `threads` threads; `fill` says that it reads less than half as much as it writes. */
int te_select_streams(const te_select_machine* machine, int64_t moved, int64_t out, int fill,
                      int32_t threads);

/* The same as text: lines of "KEY = VALUE". */
const char* te_select_machine_text(void);

/* ---- between machine.c and profile.c ---------------------------------------------------------- */

/* Sets the decisions for a machine that was detected. */
void te_select_take_profile(te_select_machine* machine);

/* Writes the description of a machine, and the path of the user's file; at most `size` bytes. */
void te_select_describe_machine(const te_select_machine* machine, char* text, size_t size);

#endif
