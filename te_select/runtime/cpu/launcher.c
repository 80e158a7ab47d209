/* Runs TVM's parallel loops on OpenMP, so that a kernel needs no TVM where it is shipped to. */
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "host_cpu.h"

typedef struct {
  void* sync_handle;
  int32_t num_task;
} parallel_env; /* TVMParallelGroupEnv of TVM's c_backend_api.h */

typedef int (*parallel_task)(int task_id, parallel_env* env, void* cdata);

/* TVM's code calls its parallel loops through this pointer, which libtvm_runtime would fill. Weak,
 * because an object without a parallel loop does not define it; hidden, because another library's
 * must never be bound instead. */
extern void* __TVMBackendParallelLaunch __attribute__((weak, visibility("hidden")));

/* Not of the initial-exec model: its memory is given to some 400 libraries, never given back. */
static _Thread_local int32_t budget = 1;
/* libgomp ends the process where the system refuses a thread, and many more than there are
 * processors only get in each other's way. */
enum { SAFE_THREADS = 64 };

static int32_t env_threads;  /* TE_SELECT_NUM_THREADS, or 0 */
static char bad_threads[64]; /* what it says instead, or empty */
static int in_forked_child;

void te_select_set_threads(int32_t threads) { budget = threads; }

const char* te_select_bad_threads(void) { return *bad_threads ? bad_threads : NULL; }

static int32_t count_tasks(int32_t wanted) {
  /* libgomp's threads do not live on in a forked child, and waiting for them hangs. */
  if (budget <= 1 || in_forked_child || omp_in_parallel()) return 1;
  int32_t tasks = env_threads ? env_threads : omp_get_max_threads();
  if (tasks > budget) tasks = budget;
  if (wanted > 0 && tasks > wanted) tasks = wanted;
  if (tasks <= SAFE_THREADS) return tasks;
  int32_t processors = omp_get_num_procs();
  int32_t most = processors > SAFE_THREADS ? processors : SAFE_THREADS;
  return tasks < most ? tasks : most;
}

static int launch(parallel_task task, void* cdata, int num_task) {
  int32_t tasks = count_tasks(num_task);
  if (tasks <= 1) {
    parallel_env env = {NULL, 1};
    return task(0, &env, cdata);
  }
  int failed = 0;
#pragma omp parallel num_threads(tasks) reduction(| : failed)
  {
    /* The team may be smaller than asked for, and the loop is divided by num_task. */
    parallel_env env = {NULL, omp_get_num_threads()};
    failed |= task(omp_get_thread_num(), &env, cdata) != 0;
    te_select_fence();
  }
  return failed;
}

static void mark_child(void) { in_forked_child = 1; }

/* For a library that is loaded after the fork, and so has not seen it. */
TVM_FFI_DLL_EXPORT int __tvm_ffi_te_select_run_serially(void* self, const TVMFFIAny* args,
                                                        int32_t num_args, TVMFFIAny* result) {
  mark_child();
  result->type_index = kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
  return 0;
}

/* A positive whole number, INT32_MAX for larger ones; 0 for what is none. */
static int32_t parse_count(const char* text) {
  int64_t value = 0;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9') return 0;
    value = value * 10 + (*text - '0');
    if (value > INT32_MAX) value = INT32_MAX;
  }
  return (int32_t)value;
}

static void read_environment(void) {
  const char* text = getenv("TE_SELECT_NUM_THREADS");
  if (!text || !*text) return;
  env_threads = parse_count(text);
  if (env_threads) return;
  snprintf(bad_threads, sizeof(bad_threads), "%s", text);
  for (char* c = bad_threads; *c; ++c) { /* a message must be UTF-8 */
    if (*c < ' ' || *c > '~') *c = '?';
  }
}

__attribute__((constructor)) static void install(void) {
  read_environment();
  pthread_atfork(NULL, NULL, mark_child);
  if (&__TVMBackendParallelLaunch) __TVMBackendParallelLaunch = (void*)launch;
}
