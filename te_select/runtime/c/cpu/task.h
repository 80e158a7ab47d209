/* A task: a share of a call's work. */
#pragma once

#include <stdint.h>

typedef int (*te_select_task)(int32_t task, int32_t tasks, void* data);

/* Orders this thread's stores past the cache before its later stores. */
static inline void te_select_fence(void) {
#ifdef __SSE__
  __builtin_ia32_sfence();
#endif
}

static inline int64_t te_select_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t te_select_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Where a part begins. Splits `things` evenly over `parts`; any run of consecutive parts gets an even
 * share, too. */
static inline int64_t te_select_share(int64_t things, int64_t part, int64_t parts) {
  return things / parts * part + things % parts * part / parts;
}
