/* Kernels that run on the CPU. */
#ifndef TE_SELECT_HOST_CPU_H_
#define TE_SELECT_HOST_CPU_H_

#include "host.h"

/* cond, then, else, out, the size of every named dim, whether to store past the cache, and whether
 * so few bytes are moved that one thread does it. Nonzero means failure. */
typedef int32_t (*te_select_run)(void* const data[TE_SELECT_OPERANDS], const int64_t* sizes,
                                 int64_t stream, int64_t small);

typedef struct {
  te_select_kernel common;
  int64_t bytes_per_thread; /* 0: never more than one thread */
  int64_t stream_from;      /* bytes of out; 0: never past the cache */
  te_select_run run;
} te_select_cpu_kernel;

/* Checks the arguments and runs the kernel; nothing is written before every check has passed.
 * Follows the calling convention of TVMFFISafeCallType. */
int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode);

/* Makes this thread's stores past the cache visible in order, as its ordinary ones are. */
static inline void te_select_fence(void) {
#ifdef __SSE__
  __builtin_ia32_sfence();
#endif
}

/* The most tasks that a parallel loop of this thread is worth; 1 but during a call that sets it. */
void te_select_set_threads(int32_t threads);

/* What TE_SELECT_NUM_THREADS said when the library was loaded, if that is no positive whole number;
 * else NULL. */
const char* te_select_bad_threads(void);

#endif
