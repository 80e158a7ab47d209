/* A caller's pool of threads, in the place of our own. */
#pragma once

#include "pool.h"
#include "where_call.h"

typedef struct {
  te_select_parallel_for run;
  void* pool;
  int32_t threads; /* the most of a call; 0: as many as of our own pool */
} te_select_pool_of_caller;

/* Runs tasks 0 to tasks - 1, each once, of which no more than `threads` run at a time. Returns
 * nonzero if a task did. */
int te_select_parallel_on(const te_select_pool_of_caller* pool, te_select_task task, void* data,
                          int32_t tasks, int32_t threads);
