/* Into how many threads and tasks a large call is divided. */
#ifndef TE_SELECT_PARALLEL_PLAN_H_
#define TE_SELECT_PARALLEL_PLAN_H_

#include <stdint.h>

#include "machine.h"
#include "pool.h"

/* A task takes 2 us or more. With 2^17 bytes, calls of te_select.where on 0.4 to 0.8 MB were up to
 * a tenth slower (Zen 5, two threads). */
enum { TE_SELECT_TASK_BYTES = 1 << 18, TE_SELECT_MOST_TASKS = 1 << 16 };

/* Whether the caller is in a parallel region of OpenMP, whose threads use the cores. The loader binds
 * it when this library is loaded, if a runtime is in the scope then. To look for runtimes later would
 * need the loader's lock, which another thread may hold until this call returns. */
extern int omp_in_parallel(void) __attribute__((weak, visibility("default")));

/* The threads of a call that moves so many bytes, at least two of `grain`. */
static inline int32_t te_select_threads_for(const te_select_machine* machine, int64_t moved,
                                            int64_t grain) {
  int32_t most = machine->max_threads;
  int64_t threads = moved / grain < most ? moved / grain : most;
  int32_t at_hand = te_select_threads_at_hand((int32_t)threads, most);
  return at_hand > 1 && omp_in_parallel && omp_in_parallel() ? 1 : at_hand;
}

/* The tasks of a call, as many for each thread: with an odd number of tasks for two threads, calls
 * of 0.4 to 0.8 MB were up to a fifth slower. */
static inline int64_t te_select_tasks_for(int64_t moved, int32_t threads) {
  int64_t wanted = moved / TE_SELECT_TASK_BYTES, most = TE_SELECT_MOST_TASKS / threads;
  int64_t each = wanted > threads ? (wanted + threads - 1) / threads : 1;
  return (each < most ? each : most) * threads;
}

#endif
