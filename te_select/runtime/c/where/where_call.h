/* Select for operands of any shapes and strides, from C and C++. */
#ifndef TE_SELECT_WHERE_CALL_H_
#define TE_SELECT_WHERE_CALL_H_

#include <stddef.h>
#include <stdint.h>

#include "operand_order.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TE_SELECT_WHERE_RANK = 64 };

/* One call: out = cond ? then : else. */
typedef struct te_select_where_call {
  int32_t ndim;  /* of out */
  int32_t width; /* bytes of an element of then, else and out; cond has one byte */
  int64_t shape[TE_SELECT_WHERE_RANK];
  /* Bytes, for every axis of out; 0: broadcast along it. */
  int64_t strides[TE_SELECT_OPERANDS][TE_SELECT_WHERE_RANK];
  char* data[TE_SELECT_OPERANDS];
} te_select_where_call;

/* The result of a call. If it is not negative, the call was done, and the result is the number of the
 * kernel for its loops: its place in te_select_where_kernels, counted in the order of memory. A place
 * that no kernel has means that tiles were copied, or that one element was repeated. If
 * TE_SELECT_WHERE_MISSING_KERNEL is added, the kernel is one of rows that is missing and would be
 * faster. */
enum {
  TE_SELECT_WHERE_DONE = 0,
  TE_SELECT_WHERE_NO_KERNEL = -1, /* not done: no kernel has this width */
  TE_SELECT_WHERE_REFUSED = -2,   /* not done: this CPU cannot run the kernels */
  TE_SELECT_WHERE_FAILED = -3,    /* not done: there is no memory for tiles; or a kernel failed */
  TE_SELECT_WHERE_UNSOUND = -4,   /* not done: the call makes no sense, or out overlaps an input */
  TE_SELECT_WHERE_MISSING_KERNEL = 1 << 8
};

/* Sets the strides of an operand for the axes of out, of its own shape and its strides in bytes; it
 * is compact if they are NULL. `ndim`, `width` and `shape` of the call are set before. Returns 0 if
 * the operand does not broadcast to out, or there is no such operand or rank. */
int te_select_broadcast(te_select_where_call* call, int operand, int32_t ndim, const int64_t* shape,
                        const int64_t* strides);

/* The parallel-for of a pool of threads. It calls piece(data, i) once for every i below count, in any
 * order and on any threads, and returns when all of them have returned. */
typedef void (*te_select_parallel_for)(void* pool, void (*piece)(void* data, size_t i),
                                       size_t count, void* data);

/* Selects on the threads of a pool, or of te_select's own one if `run` is NULL. A call has at most
 * `threads` pieces at a time, or as many as te_select's own pool has threads if that is 0; a call
 * that does not pay for a second thread is done by the caller. Returns a result of the above. Out may
 * be then or else itself: the same address and strides. */
int32_t te_select_where_call_on(const te_select_where_call* call, te_select_parallel_for run,
                                void* pool, int32_t threads);

#ifdef __cplusplus
}
#endif

#endif
