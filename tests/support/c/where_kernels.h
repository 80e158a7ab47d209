/* Kernels of where() in plain C. All call `run`, which is for the file that includes this. */
#include <string.h>

#include "where_plan.h"

static int32_t run(int32_t width, int32_t rows, int32_t number, void* const* data, int64_t m,
                   int64_t n, int64_t flags);

/* How an operand moves: with every element, from row to row, or along a row. */
static inline int64_t place(int32_t way, int64_t i, int64_t n) {
  return way == 0 ? i : way == 1 ? i / n : way == 2 ? i % n : 0;
}

/* What a kernel computes. */
static inline void select_all(int32_t width, int32_t rows, int32_t number, void* const* data,
                              int64_t m, int64_t n) {
  int32_t ways[] = {number / 9, number / 3 % 3, number % 3};
  for (int k = 0; k < TE_SELECT_OUT && !rows; ++k) ways[k] = number >> (2 - k) & 1 ? 0 : -1;
  for (int64_t i = 0; i < m * n; ++i) {
    int side = ((char*)data[TE_SELECT_COND])[place(ways[TE_SELECT_COND], i, n)] ? TE_SELECT_THEN
                                                                                : TE_SELECT_ELSE;
    memmove((char*)data[TE_SELECT_OUT] + i * width,
            (char*)data[side] + place(ways[side], i, n) * width, (size_t)width);
  }
}

/* clang-format off */
#define RUN(w, k)                                                                        \
  static int32_t run_##w##_##k(void* const* data, const int64_t* sizes, int64_t flags) { \
    return run(w, 0, k, data, 1, sizes[0], flags);                                       \
  }
#define ROWS(w, k)                                                                       \
  static int32_t rows_##w##_##k(void* const* data, const int64_t* sizes, int64_t flags) { \
    return run(w, 1, k, data, sizes[0], sizes[1], flags);                                \
  }
#define EACH_RUN(X, w) X(w, 1) X(w, 2) X(w, 3) X(w, 4) X(w, 5) X(w, 6) X(w, 7)
#define EACH_ROW(X, w)                                                              \
  X(w, 1) X(w, 2) X(w, 3) X(w, 4) X(w, 5) X(w, 6) X(w, 7) X(w, 8) X(w, 9) X(w, 10)  \
  X(w, 11) X(w, 12) X(w, 14) X(w, 15) X(w, 16) X(w, 17) X(w, 18) X(w, 19) X(w, 20)  \
  X(w, 21) X(w, 22) X(w, 23) X(w, 24) X(w, 25)
#define EACH_WIDTH(EACH, X) EACH(X, 1) EACH(X, 2) EACH(X, 4) EACH(X, 8) EACH(X, 16)
EACH_WIDTH(EACH_RUN, RUN)
EACH_WIDTH(EACH_ROW, ROWS)
/* clang-format on */

#define INDEX(w) __builtin_ctz(w)
#define TAKE_RUN(w, k) te_select_put_kernel(&kernels->runs[INDEX(w)][k], run_##w##_##k);
#define TAKE_ROWS(w, k) \
  if (w < 16) te_select_put_kernel(&kernels->rows[INDEX(w)][k], rows_##w##_##k);

static inline void take_runs(te_select_where_kernels* kernels) { EACH_WIDTH(EACH_RUN, TAKE_RUN) }

/* Elements of 16 bytes have no kernels of rows. */
static inline void take_rows(te_select_where_kernels* kernels) { EACH_WIDTH(EACH_ROW, TAKE_ROWS) }
