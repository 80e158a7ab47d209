/* The machine that a library runs on, and what follows from it. */
#ifndef TE_SELECT_MACHINE_H_
#define TE_SELECT_MACHINE_H_

#include <stddef.h>
#include <stdint.h>

/* Whether a span looks at cond first, and leaves unread what a block of it does not select. */
enum { TE_SELECT_SKIP_NEVER, TE_SELECT_SKIP_READ_ONCE, TE_SELECT_SKIP_ALWAYS };

/* Stores go past the cache from so many bytes moved on: per thread that takes part, and per
 * last-level cache that these threads have. Where less than half as much is read as is written, the
 * bytes of out count instead, against the second pair. */
typedef struct {
  int64_t stream_per_thread, stream_per_l3;
  int64_t fill_per_thread, fill_per_l3;
  int64_t bytes_per_thread; /* moved, from which on one more thread pays */
  int64_t skip;             /* one of the above */
  int64_t backwards;        /* whether spans may walk backwards, out lying just ahead of an input */
} te_select_decisions;

typedef struct {
  char vendor[16]; /* as CPUID spells it; empty where that is not known */
  int32_t family, model;
  int64_t l2, l3;         /* bytes; of one core, and of one last-level cache */
  int32_t threads_per_l3; /* that share it */
  const char* origin;     /* of the decisions: "measured: NAME", "reasoned: NAME", ... */
  te_select_decisions decisions;
} te_select_machine;

/* The machine, found out once. */
const te_select_machine* te_select_this_machine(void);

/* What is wrong with TE_SELECT_PROFILE, in one line; NULL where nothing is. */
const char* te_select_bad_profile(void);

/* Whether stores go past the cache. */
int te_select_streams(const te_select_machine* machine, int64_t moved, int64_t out, int fill,
                      int32_t threads);

/* What was known when the library was loaded, as lines of "KEY = VALUE". */
const char* te_select_machine_text(void);

/* ---- between machine.c and profile.c ---------------------------------------------------------- */

/* Fills in the decisions of a machine that was detected. */
void te_select_take_profile(te_select_machine* machine);

/* Writes what is known of a machine, and where the user's file is, cut to `size` bytes. */
void te_select_describe_machine(const te_select_machine* machine, char* text, size_t size);

#endif
