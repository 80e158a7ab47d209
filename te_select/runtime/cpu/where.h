/* Select for operands of any shapes and strides, by a family of kernels for the innermost loops. */
#ifndef TE_SELECT_WHERE_H_
#define TE_SELECT_WHERE_H_

#include <stdint.h>

enum { TE_SELECT_WHERE_VERSION = 2, TE_SELECT_WHERE_RANK = 64 };
enum { TE_SELECT_WIDTHS = 5, TE_SELECT_RUNS = 8, TE_SELECT_ROWS = 27 }; /* 1, 2, 4, 8, 16 bytes */

/* One call. The order of operands is cond, then, else, out. */
typedef struct {
  int32_t ndim;
  int32_t width; /* bytes of an element of then, else and out */
  int64_t shape[TE_SELECT_WHERE_RANK];
  int64_t strides[4]
                 [TE_SELECT_WHERE_RANK]; /* bytes, for every axis of out; 0: broadcast along it */
  char* data[4];
} te_select_where_call;

/* The result of a call. A result of TE_SELECT_WHERE_MISSING_KERNEL or more means: the call was done,
 * but the kernel of rows with the number `result - TE_SELECT_WHERE_MISSING_KERNEL` is missing and
 * would be faster. */
enum {
  TE_SELECT_WHERE_DONE = 0,
  TE_SELECT_WHERE_NO_KERNEL = -1, /* not done: no kernel has this width */
  TE_SELECT_WHERE_REFUSED = -2,   /* not done: see `refusal` */
  TE_SELECT_WHERE_FAILED = -3,    /* not done: there is no memory for tiles; or a kernel failed */
  TE_SELECT_WHERE_MISSING_KERNEL = 1
};

/* A kernel: data of cond, then, else and out; sizes; flags. As te_select_run of host_cpu.h. */
typedef int32_t (*te_select_where_run)(void* const data[4], const int64_t* sizes, int64_t flags);

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
static inline int te_select_broadcast(te_select_where_call* call, int operand, int32_t ndim,
                                      const int64_t* shape, const int64_t* strides) {
  if (ndim > call->ndim) return 0;
  int32_t before = call->ndim - ndim;
  for (int32_t i = 0; i < before; ++i) call->strides[operand][i] = 0;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] == 1) {
      call->strides[operand][before + i] = 0;
    } else if (shape[i] == call->shape[before + i]) {
      call->strides[operand][before + i] = strides[i];
    } else {
      return 0;
    }
  }
  return 1;
}

/* The address of the first byte of an operand, and the address behind its last byte. */
static inline void te_select_extent(const te_select_where_call* call, int operand, uintptr_t* first,
                                    uintptr_t* end) {
  int64_t below = 0, above = operand ? call->width : 1;
  for (int32_t i = 0; i < call->ndim; ++i) {
    int64_t reach = call->strides[operand][i] * (call->shape[i] - 1);
    if (reach < 0) below += reach;
    else above += reach;
  }
  *first = (uintptr_t)call->data[operand] + (uintptr_t)below;
  *end = (uintptr_t)call->data[operand] + (uintptr_t)above;
}

/* Whether out may overlap an input or itself; the result must then be written elsewhere first. It
 * is no overlap if then or else is out itself: the same address and strides. */
static inline int te_select_where_overlaps(const te_select_where_call* call) {
  uintptr_t first, end, from, to;
  uint64_t elements = 1;
  for (int32_t i = 0; i < call->ndim; ++i) elements *= (uint64_t)call->shape[i];
  if (!elements) return 0;
  te_select_extent(call, 3, &first, &end);
  for (int operand = 0; operand < 3; ++operand) {
    te_select_extent(call, operand, &from, &to);
    if (to <= first || end <= from) continue;
    int same = operand && call->data[operand] == call->data[3];
    for (int32_t i = 0; i < call->ndim && same; ++i) {
      same = call->shape[i] == 1 || call->strides[operand][i] == call->strides[3][i];
    }
    if (!same) return 1;
  }
  /* Out overlaps itself unless a step of each axis leads past all axes with smaller steps. */
  for (int32_t i = 0; i < call->ndim; ++i) {
    int64_t step = call->strides[3][i] < 0 ? -call->strides[3][i] : call->strides[3][i];
    int64_t inside = call->width;
    if (call->shape[i] == 1) continue;
    for (int32_t k = 0; k < call->ndim; ++k) {
      int64_t other = call->strides[3][k] < 0 ? -call->strides[3][k] : call->strides[3][k];
      if (k != i && (other < step || (other == step && k > i))) {
        inside += other * (call->shape[k] - 1);
      }
    }
    if (step < inside) return 1;
  }
  return 0;
}

#endif
