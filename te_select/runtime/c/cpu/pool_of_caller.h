/* A caller's pool of threads, in the place of our own. */
#ifndef TE_SELECT_POOL_OF_CALLER_H_
#define TE_SELECT_POOL_OF_CALLER_H_

#include "machine.h"
#include "pool.h"
#include "where_call.h"

typedef struct {
  te_select_parallel_for run;
  void* pool;
  int32_t threads; /* the most of a call; 0: as many as of our own pool */
} te_select_pool_of_caller;

/* The threads of a call that moves so many bytes, at least two of `grain`. */
static inline int32_t te_select_threads_on(const te_select_pool_of_caller* pool,
                                           const te_select_machine* machine, int64_t moved,
                                           int64_t grain) {
  int64_t most = pool->threads > 0 ? pool->threads : machine->max_threads, paid = moved / grain;
  if (most > TE_SELECT_MOST_THREADS) most = TE_SELECT_MOST_THREADS;
  return (int32_t)(paid < most ? paid : most);
}

/* Runs tasks 0 to tasks - 1, each once, of which no more than `threads` run at a time. Returns
 * nonzero if a task did. */
int te_select_parallel_on(const te_select_pool_of_caller* pool, te_select_task task, void* data,
                          int32_t tasks, int32_t threads);

#endif
