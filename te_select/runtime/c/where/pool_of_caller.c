/* Runs tasks by the parallel-for of a caller.
 *
 * It gets a piece for each thread that the call is to have. A piece takes one task after another
 * until none is left. So no more tasks run at a time than there is memory for, however many threads
 * the pool has; and if the pool runs the pieces one by one, the first of them does everything. */
#include <stdatomic.h>

#include "where_plan.h"

typedef struct {
  te_select_task task;
  void* data;
  int32_t tasks;
  _Atomic int32_t next, failed;
} job;

static void do_tasks(void* data, __attribute__((unused)) size_t piece) {
  job* j = data;
  for (int32_t task; (task = atomic_fetch_add(&j->next, 1)) < j->tasks;) {
    if (j->task(task, j->tasks, j->data)) atomic_store(&j->failed, 1);
  }
  te_select_fence();
}

int te_select_parallel_on(const te_select_pool_of_caller* pool, te_select_task task, void* data,
                          int32_t tasks, int32_t threads) {
  job j = {.task = task, .data = data, .tasks = tasks};
  pool->run(pool->pool, do_tasks, (size_t)te_select_least(threads, tasks), &j);
  do_tasks(&j, 0); /* what a pool leaves that has been shut down */
  return atomic_load(&j.failed);
}
