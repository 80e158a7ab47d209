/* What the generated stubs tell the argument checks about one kernel. */
#ifndef TE_SELECT_HOST_H_
#define TE_SELECT_HOST_H_

#include <stdint.h>
#include <tvm/ffi/c_api.h>

enum { TE_SELECT_OPERANDS = 4, TE_SELECT_MAX_NAMES = 3 * 64 };

/* cond, then, else, out, the size of every named dim, and whether to store past the cache. Nonzero
 * means failure. */
typedef int32_t (*te_select_run)(void* const data[TE_SELECT_OPERANDS], const int64_t* sizes,
                                 int64_t stream);

typedef struct {
  int32_t ndim;
  const int64_t* dims; /* >= 0 is an extent; -(k + 1) is the k-th name */
} te_select_shape;

typedef struct {
  const char* name;
  uint8_t code; /* DLDataTypeCode of then, else and out */
  uint8_t bits;
  int32_t num_names;
  const char* const* names;
  te_select_shape shapes[TE_SELECT_OPERANDS]; /* cond, then, else, out */
  int64_t bytes_per_thread;                   /* 0: never more than one thread */
  int64_t stream_from;                        /* bytes of out; 0: never past the cache */
  te_select_run run;
} te_select_kernel;

/* Checks the arguments (cond, then, else, out) and runs the kernel; nothing is written before every
 * check has passed. With `as_bits` nonzero, any type of the right width is taken. Follows the
 * calling convention of TVMFFISafeCallType. */
int te_select_call(const te_select_kernel* kernel, const TVMFFIAny* args, int32_t num_args,
                   TVMFFIAny* result, int as_bits);

/* Makes this thread's stores past the cache visible in order, as its ordinary ones are. */
static inline void te_select_fence(void) {
#ifdef __SSE__
  __builtin_ia32_sfence();
#endif
}

/* The most tasks that the next parallel loop of this thread is worth. */
void te_select_set_threads(int32_t threads);

#endif
