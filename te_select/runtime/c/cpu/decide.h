/* How a call is run: by which threads, in how many tasks, and what its kernel is told. Every entry
 * decides by this. */
#pragma once

#include "cond_sampling.h"
#include "operand_order.h"
#include "pool.h"

/* Flags: what a call tells a kernel. */
enum {
  TE_SELECT_STREAM = 1, /* store past the cache */
  TE_SELECT_SMALL = 2,  /* few bytes are moved: use one thread, and leave out in the caches */
  TE_SELECT_SKIP = 4,   /* look at a block of cond first; do not read a side it does not select */
  TE_SELECT_BACKWARDS = 8, /* walk backwards if out lies just ahead of an input */
};

/* The value of a knob whose decision is left to the machine on which the library runs. */
enum { TE_SELECT_BY_MACHINE = -1 };

/* The knobs of a kernel's calls. Each may be TE_SELECT_BY_MACHINE. */
typedef struct {
  int64_t bytes_per_thread; /* bytes moved for each thread; 0: there is no parallel loop */
  int64_t stream_from;      /* bytes of out from which stores go past the cache; 0: never */
  int64_t skip;             /* 0 or 1 */
  int64_t backwards;        /* 0 or 1 */
  int64_t reads_cond_once;  /* a fact: whether cond moves along every loop */
} te_select_knobs;

typedef struct {
  int64_t flags;
  te_select_crew crew;
  int32_t tasks;
} te_select_manner;

/* Bytes that a call moves, of those of its operands: a single cond reads one side only. */
int64_t te_select_count_moved(const int64_t bytes[TE_SELECT_OPERANDS]);

/* Decides how to run a call with operands of so many bytes, each counted once and below 2^61. It is
 * run by the threads of a caller, of which it may have `of_caller`; or by our own if that is 0. */
te_select_manner te_select_decide(const te_select_machine* machine, const te_select_knobs* knobs,
                                  const int64_t bytes[TE_SELECT_OPERANDS],
                                  const te_select_cond* cond, int32_t of_caller);
