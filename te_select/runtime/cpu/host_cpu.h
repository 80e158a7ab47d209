/* Kernels that run on the CPU. */
#ifndef TE_SELECT_HOST_CPU_H_
#define TE_SELECT_HOST_CPU_H_

#include "host.h"

/* What a call tells a kernel. */
enum {
  TE_SELECT_STREAM = 1,    /* store past the cache */
  TE_SELECT_SMALL = 2,     /* so few bytes are moved that one thread does it, inside the caches */
  TE_SELECT_SKIP = 4,      /* look at cond first, and leave unread what a block does not select */
  TE_SELECT_BACKWARDS = 8, /* where out lies just ahead of an input, walk backwards */
};

/* A knob that leaves its decision to the machine that the library runs on. */
enum { TE_SELECT_BY_MACHINE = -1 };

/* cond, then, else, out, the size of every named dim, and the flags above. Nonzero means failure. */
typedef int32_t (*te_select_run)(void* const data[TE_SELECT_OPERANDS], const int64_t* sizes,
                                 int64_t flags);

/* Code for CPUs with some features. */
typedef struct {
  const char* name;            /* of the target */
  const char* const* features; /* as /proc/cpuinfo spells them; ends with NULL */
} te_select_level;

typedef struct {
  int32_t num_levels;
  const te_select_level* levels; /* the best last */
} te_select_library;

typedef struct {
  te_select_kernel common;
  const te_select_library* library;
  int64_t bytes_per_thread; /* 0: there is no parallel loop */
  int64_t stream_from;      /* bytes of out; 0: never past the cache */
  int64_t skip;             /* 0 or 1 */
  int64_t backwards;        /* 0 or 1; of these four, each may be TE_SELECT_BY_MACHINE */
  int32_t is_fill;          /* reads less than half as much as it writes */
  int32_t reads_cond_once;
  const te_select_run* runs; /* one for each level */
} te_select_cpu_kernel;

/* Checks the arguments and runs the kernel; nothing is written before every check has passed.
 * Follows the calling convention of TVMFFISafeCallType. */
int te_select_call(const te_select_cpu_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, te_select_mode mode);

/* The best level that this CPU can run; negative where it can run none. A library has one table of
 * levels. */
int32_t te_select_level_of(const te_select_library* library);

/* A feature of a level that this CPU lacks; NULL where it lacks none. */
const char* te_select_lacking(const te_select_level* level);

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
