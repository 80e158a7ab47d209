/* How long a caller of the pool prepares a call, before it does a task itself. */
#include <pthread.h>

#include "../te_select/runtime/c/cpu/pool_state.h"

typedef struct {
  pthread_t caller;
  int64_t first;
} note;

static int run(int32_t task, int32_t tasks, void* data) {
  note* n = data;
  if (pthread_equal(pthread_self(), n->caller) && !n->first) n->first = te_select_now_ns();
  for (volatile int k = 0; k < 3000; ++k) {
  }
  return task >= tasks;
}

int64_t te_select_before_first_task(int32_t threads) {
  note n = {.caller = pthread_self()};
  int64_t start = te_select_now_ns();
  return te_select_parallel(run, &n, 8 * threads, (te_select_crew){threads, 0}) ? -1
                                                                                : n.first - start;
}
