/* Kernels that run on the CPU. */
#ifndef TE_SELECT_HOST_CPU_H_
#define TE_SELECT_HOST_CPU_H_

#include "level.h"

/* What a call tells a kernel. */
enum {
  TE_SELECT_STREAM = 1,    /* store past the cache */
  TE_SELECT_SMALL = 2,     /* so few bytes are moved that one thread does it, inside the caches */
  TE_SELECT_SKIP = 4,      /* look at cond first, and leave unread what a block does not select */
  TE_SELECT_BACKWARDS = 8, /* where out lies just ahead of an input, walk backwards */
};

/* A knob that leaves its decision to the machine that the library runs on. */
enum { TE_SELECT_BY_MACHINE = -1 };

/* A compiled function, of cond, then, else, out, the size of every named dim, and the flags above:
 * int32_t (void*, void*, void*, void*, int64_t..., int64_t). Nonzero means failure. */
typedef void (*te_select_code)(void);

/* Calls compiled code that has a certain number of named dims. */
typedef int32_t (*te_select_run)(te_select_code code, void* const data[TE_SELECT_OPERANDS],
                                 const int64_t* sizes, int64_t flags);

/* A kernel's code for one level. */
typedef struct {
  te_select_code code;
  int64_t bytes_per_thread; /* 0: there is no parallel loop */
  int64_t stream_from;      /* bytes of out; 0: never past the cache */
  int64_t skip;             /* 0 or 1 */
  int64_t backwards;        /* 0 or 1; of these four, each may be TE_SELECT_BY_MACHINE */
  int32_t is_fill;          /* reads less than half as much as it writes */
  int32_t reads_cond_once;
} te_select_version;

typedef struct {
  te_select_kernel common;
  te_select_run run;
  const te_select_version* versions; /* one for each level of the library */
} te_select_cpu_kernel;

/* Checks the arguments and runs the kernel; nothing is written before every check has passed.
 * Follows the calling convention of TVMFFISafeCallType. */
int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode);

/* The same for a plain C function: of the memory of cond, then, else and out, and the sizes of the
 * named dims. Returns a te_select_status. */
int te_select_call_plain(const te_select_cpu_kernel* kernel, void* const* data,
                         const int64_t* sizes);

/* Makes this thread's stores past the cache visible in order, as its ordinary ones are. */
static inline void te_select_fence(void) {
#ifdef __SSE__
  __builtin_ia32_sfence();
#endif
}

/* How a parallel loop of this thread is to be run: on how many threads, in how many tasks. One of
 * each but during a call that sets it. */
void te_select_set_parallel(int32_t threads, int32_t tasks);

/* How many iterations the parallel loop has that runs next; called by the compiled code. */
void te_select_set_pieces(int64_t pieces);

#endif
