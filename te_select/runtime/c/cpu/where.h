/* Select for operands of any shapes and strides, by a family of kernels for the innermost loops. */
#ifndef TE_SELECT_WHERE_H_
#define TE_SELECT_WHERE_H_

#include <stdint.h>

#include "operand_order.h"

enum { TE_SELECT_WHERE_VERSION = 3, TE_SELECT_WHERE_RANK = 64 };
enum { TE_SELECT_WIDTHS = 5, TE_SELECT_RUNS = 8, TE_SELECT_ROWS = 27 }; /* 1, 2, 4, 8, 16 bytes */

/* One call. */
typedef struct {
  int32_t ndim;
  int32_t width; /* bytes of an element of then, else and out */
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
  TE_SELECT_WHERE_REFUSED = -2,   /* not done: see `refusal` */
  TE_SELECT_WHERE_FAILED = -3,    /* not done: there is no memory for tiles; or a kernel failed */
  TE_SELECT_WHERE_MISSING_KERNEL = 1 << 8
};

/* A kernel: data of cond, then, else and out; sizes; flags. As te_select_run of host_cpu.h. */
typedef int32_t (*te_select_where_run)(void* const data[TE_SELECT_OPERANDS], const int64_t* sizes,
                                       int64_t flags);

/* The kernels. The first index is the width: 0 to 4 for 1, 2, 4, 8 and 16 bytes.
 *
 * runs: one loop of n. The second index is the sum over the operands that move: cond 4, then 2,
 * else 1.
 *
 * rows: m rows of n. The second index has three digits of base 3, for cond, then and else: 0 moves
 * along both loops, 1 along m only, 2 along n only. */
typedef struct {
  te_select_where_run runs[TE_SELECT_WIDTHS][TE_SELECT_RUNS];
  te_select_where_run rows[TE_SELECT_WIDTHS][TE_SELECT_ROWS];
} te_select_where_kernels;

/* What a library of the family offers. */
typedef struct te_select_where_library {
  int64_t version;
  int32_t (*call)(const te_select_where_call* call);
  /* Why calls are refused, a text that is never freed; NULL if they are not refused. */
  const char* (*refusal)(void);
  /* Gives `call` the kernels of another library, too. */
  void (*add)(const struct te_select_where_library* other);
  const te_select_where_kernels* kernels; /* of this library only */
} te_select_where_library;

/* Sets the strides of an operand for the axes of out. Returns 0 if it does not broadcast to out. */
int te_select_broadcast(te_select_where_call* call, int operand, int32_t ndim, const int64_t* shape,
                        const int64_t* strides);

/* Whether out may overlap an input or itself; the result must then be written elsewhere first. It
 * is no overlap if then or else is out itself: the same address and strides. */
int te_select_where_overlaps(const te_select_where_call* call);

#endif
