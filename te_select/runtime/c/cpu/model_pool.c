/* Inside a model that TVM compiles, TVM's threads do the tasks. This file is in object files for TVM
 * alone.
 *
 * A model with parallel loops has a pointer to what launches them, which TVM's loader sets. TVM's
 * threads spin for a while after each loop, so helpers of our own would wait for a core: a call
 * between two loops took twice as long (0.4 MB, two threads, Zen 3). A model without such loops has
 * no pointer, and TVM may use one thread only. Then the pool of pool.c does the tasks. */
#include <stdatomic.h>
#include <stddef.h>

#include "pool.h"

/* As in tvm/runtime/c_backend_api.h. */
typedef struct {
  void* sync_handle;
  int32_t num_task;
} tvm_environment;
typedef int (*tvm_task)(int id, tvm_environment* environment, void* data);
extern int (*__TVMBackendParallelLaunch)(tvm_task each, void* data, int num_task)
    __attribute__((weak));

typedef struct {
  te_select_task task;
  void* data;
  int32_t tasks, threads;
  _Atomic int32_t failed, alone;
} job;

/* The share of one of TVM's threads. */
static int do_share(int id, tvm_environment* environment, void* data) {
  job* j = data;
  int32_t threads = (int32_t)te_select_least(environment->num_task, j->threads);
  if (threads <= 1) {
    j->alone = 1;
  } else if (id < threads) {
    int64_t end = te_select_share(j->tasks, id + 1, threads);
    for (int64_t task = te_select_share(j->tasks, id, threads); task < end; ++task) {
      if (j->task((int32_t)task, j->tasks, j->data)) j->failed = 1;
    }
    te_select_fence();
  }
  return 0;
}

int te_select_parallel_in_model(te_select_task task, void* data, int32_t tasks, int32_t threads) {
  if (!&__TVMBackendParallelLaunch || !__TVMBackendParallelLaunch) return -1;
  job j = {.task = task, .data = data, .tasks = tasks, .threads = threads};
  enum { ALL_THREADS = 0 };
  if (__TVMBackendParallelLaunch(do_share, &j, ALL_THREADS)) return 1;
  return j.alone ? -1 : j.failed;
}
