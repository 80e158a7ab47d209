/* Threads that help with large calls. A process has one pool, however many libraries it loads. */
#pragma once

#include "task.h"

enum { TE_SELECT_MOST_THREADS = 256 }; /* of one call; more would only hinder each other */

/* Who does a call. */
typedef struct {
  int32_t threads;
  int32_t team; /* the number of an OpenMP team of this process, from 1; 0: helpers of the pool */
} te_select_crew;

/* The threads of a call that wants this many, of `most` that any call may have. It is one in a forked
 * child, in a parallel region of OpenMP, while another call has the pool, and for a while after calls
 * that found the cores busy with other work, unless the caller's OpenMP team keeps them busy: then it
 * is that. For a while after several threads called at once, a core is left to each of them. */
te_select_crew te_select_crew_at_hand(int32_t wanted, int32_t most);

/* Runs tasks 0 to tasks - 1, each once, on at most the crew's threads. Returns nonzero if a task
 * did. It waits for tasks that another thread has begun, never for a helper that has not
 * started. */
int te_select_parallel(te_select_task task, void* data, int32_t tasks, te_select_crew crew);

/* The same by the threads of the model that the code is a part of; -1 if it did nothing, because the
 * model has none. Only in object files for TVM it does more than that. */
int te_select_parallel_in_model(te_select_task task, void* data, int32_t tasks, int32_t threads)
    __attribute__((visibility("hidden")));

/* From now on calls run on one thread, because a forked child has no other. */
void te_select_run_serially(void);
