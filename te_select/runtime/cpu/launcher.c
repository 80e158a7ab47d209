/* Runs the parallel loops of TVM's code on the pool, so that a library runs without TVM. */
#include "host_cpu.h"
#include "pool.h"

typedef struct {
  void* sync_handle;
  int32_t num_task;
} parallel_env; /* TVMParallelGroupEnv of TVM's c_backend_api.h */

typedef int (*parallel_task)(int task_id, parallel_env* env, void* cdata);

/* TVM's code runs its parallel loops through this pointer. libtvm_runtime would set it; here
 * `install` does. It is weak, because an object without a parallel loop does not define it. It is
 * hidden, so that it is never bound to the pointer of another library. */
extern void* __TVMBackendParallelLaunch __attribute__((weak, visibility("hidden")));

/* Not of the initial-exec model: its memory suffices for some 400 libraries, and is never freed. */
static _Thread_local int32_t threads = 1, tasks = 1;
static _Thread_local int64_t pieces = 1;

void te_select_set_parallel(int32_t most_threads, int32_t most_tasks) {
  threads = most_threads;
  tasks = most_tasks;
}

void te_select_set_pieces(int64_t count) { pieces = count; }

/* TVM's code cuts the loop into parts of as many pieces. */
typedef struct {
  parallel_task task;
  void* cdata;
  int32_t parts;
} loop;

static int run_task(int32_t task, int32_t count, void* data) {
  const loop* l = data;
  parallel_env env = {NULL, l->parts};
  int32_t end = (int32_t)te_select_share(l->parts, task + 1, count);
  int failed = 0;
  for (int32_t i = (int32_t)te_select_share(l->parts, task, count); i < end; ++i) {
    failed |= l->task(i, &env, l->cdata); /* a failure of one part leaves none of the others out */
  }
  return failed;
}

/* So few pieces of a task are parts of their own, because a part cannot be cut. */
enum { FEW = 8 };

static int launch(parallel_task task, void* cdata, int num_task) {
  (void)num_task;
  loop l = {task, cdata, 1};
  if (threads <= 1 || pieces <= 1) return run_task(0, 1, &l);
  int64_t chunk = pieces > FEW * tasks ? (pieces + tasks - 1) / tasks : 1;
  l.parts = (int32_t)((pieces + chunk - 1) / chunk);
  int32_t even = l.parts < threads ? l.parts : l.parts / threads * threads;
  return te_select_parallel(run_task, &l, even < tasks ? even : tasks, threads);
}

/* For a library that a forked child loads: it has not seen the fork. */
TVM_FFI_DLL_EXPORT int __tvm_ffi_te_select_run_serially(void* self, const TVMFFIAny* args,
                                                        int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args;
  te_select_run_serially();
  result->type_index = kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
  return 0;
}

__attribute__((constructor)) static void install(void) {
  if (&__TVMBackendParallelLaunch) __TVMBackendParallelLaunch = (void*)launch;
}
