/* Makes what kernels read of operands that they cannot read as they lie: copies, and by stages what
 * are items of another kind, block by block or once for a call. */
#include <stdlib.h>
#include <string.h>

#include "where_plan.h"

enum { GATHERED = 256 }; /* items that are gathered on the stack */
enum { WORD = 8 };       /* bytes of a word of bits */

/* ---- copies ------------------------------------------------------------------------------------- */

typedef struct { uint64_t halves[2]; } sixteen;

/* An element took 0.55 ns and not 0.29 where a loop of one element lay across two lines of code; four
 * take 0.26 each wherever they lie (Zen 4). */
#if defined(__clang__)
#define FOUR_AT_ONCE _Pragma("clang loop unroll_count(4)")
#else
#define FOUR_AT_ONCE _Pragma("GCC unroll 4")
#endif

#define COPY(type)                                         \
  for (int64_t i = 0; i < m; ++i) {                        \
    FOUR_AT_ONCE                                           \
    for (int64_t j = 0; j < n; ++j) {                      \
      type element;                                        \
      memcpy(&element, from + j * from_col, sizeof(type)); \
      memcpy(to + j * to_col, &element, sizeof(type));     \
    }                                                      \
    from += from_row, to += to_row;                        \
  }                                                        \
  break

static void copy_items(char* to, int64_t to_row, int64_t to_col, const char* from, int64_t from_row,
                       int64_t from_col, int64_t m, int64_t n, int64_t item) {
  switch (item) {
    case 1:
      COPY(uint8_t);
    case 2:
      COPY(uint16_t);
    case 4:
      COPY(uint32_t);
    case 8:
      COPY(uint64_t);
    default:
      COPY(sixteen);
  }
}

void te_select_copy(char* to, int64_t to_row, int64_t to_col, const char* from, int64_t from_row,
                    int64_t from_col, int64_t m, int64_t n, int64_t item) {
  if (to_col == item && from_col == item) {
    for (int64_t i = 0; i < m; ++i) {
      memcpy(to + i * to_row, from + i * from_row, (size_t)(n * item));
    }
    return;
  }
  /* The inner loop has the smaller steps in memory. For the buffer, which is in the cache, the
   * order does not matter. */
  int64_t down = llabs(to_row) + llabs(from_row);
  int64_t along = llabs(to_col) + llabs(from_col);
  if (m > 1 && down < along) {
    copy_items(to, to_col, to_row, from, from_col, from_row, n, m, item);
  } else {
    copy_items(to, to_row, to_col, from, from_row, from_col, m, n, item);
  }
}

/* ---- stages -------------------------------------------------------------------------------------- */

static void gather_bits(const te_select_stage* stage, const char* from, int64_t stride, int64_t n,
                        char* to) {
  for (int64_t i = 0; i < n; ++i) {
    uintptr_t bit = (uintptr_t)from + (uintptr_t)(i * stride);
    to[i] = stage->bits[bit / 8] >> bit % 8 & 1;
  }
}

/* The stage makes 64 booleans of two words. The last words are copied, as there may be no memory behind
 * the last byte. */
static int make_of_bits(const te_select_stage* stage, const char* from, int64_t n, char* to) {
  uintptr_t bit = (uintptr_t)from;
  const char* first = stage->bits + bit / 8;
  int64_t place = (int64_t)(bit % 8), bytes = (place + n + 7) / 8;
  int64_t words = bytes < WORD ? 0 : bytes / WORD - 1;
  void* const data[] = {(void*)first, to};
  if (words && stage->make(data, &words, place)) return -1;
  int64_t done = words * WORD, last = 2;
  uint64_t copied[3] = {0};
  char made[2 * 8 * WORD];
  memcpy(copied, first + done, (size_t)(bytes - done));
  void* const at_end[] = {copied, made};
  if (stage->make(at_end, &last, place)) return -1;
  memcpy(to + 8 * done, made, (size_t)(n - 8 * done));
  return 0;
}

static int make_contiguous(const te_select_stage* stage, const char* from, int64_t n, char* to) {
  if (stage->bits) return make_of_bits(stage, from, n, to);
  void* const data[] = {(void*)from, to};
  return stage->make(data, &n, stage->flags);
}

int te_select_make_run(const te_select_stage* stage, const char* from, int64_t stride, int64_t n,
                       char* to, int64_t width) {
  int64_t item = stage->item;
  if (stride == item || n == 1) return make_contiguous(stage, from, n, to);
  if (stage->bits) {
    gather_bits(stage, from, stride, n, to);
    return 0;
  }
  char items[GATHERED * 16];
  for (int64_t at = 0; at < n; at += GATHERED) {
    int64_t count = te_select_least(n - at, GATHERED);
    te_select_copy(items, 0, item, from + at * stride, 0, stride, 1, count, item);
    if (make_contiguous(stage, items, count, to + at * width)) return -1;
  }
  return 0;
}

int te_select_make_block(const te_select_stage* stage, const te_select_block* block, int operand,
                         const char* from, int64_t m, int64_t n, char* to, int64_t width) {
  int64_t row = block->row[operand], col = block->col[operand];
  if (row == n * col || n == 1)
    return te_select_make_run(stage, from, n > 1 ? col : row, m * n, to, width);
  for (int64_t i = 0; i < m; ++i) {
    if (te_select_make_run(stage, from + i * row, col, n, to + i * n * width, width)) return -1;
  }
  return 0;
}

/* ---- once for a call ---------------------------------------------------------------------------- */

/* The axes along which an operand moves, and the elements along them. */
typedef struct {
  int32_t count, axes[TE_SELECT_WHERE_RANK];
  int64_t elements;
} moving_axes;

static moving_axes axes_of(const te_select_where_call* call, int operand, int64_t* all) {
  moving_axes found = {.count = 0, .elements = 1};
  *all = 1;
  for (int32_t axis = 0; axis < call->ndim; ++axis) {
    *all *= call->shape[axis];
    if (call->shape[axis] == 1 || !call->strides[operand][axis]) continue;
    found.axes[found.count++] = axis;
    found.elements *= call->shape[axis];
  }
  return found;
}

/* Makes a compact array, in C order. */
static int make_axes(const te_select_stage* stage, const te_select_where_call* call, int operand,
                     const moving_axes* along, int32_t at, const char* from, char** to,
                     int64_t width) {
  int64_t extent = 1, stride = 0;
  if (at < along->count) {
    extent = call->shape[along->axes[at]];
    stride = call->strides[operand][along->axes[at]];
  }
  if (at + 1 >= along->count) {
    int failed = te_select_make_run(stage, from, stride, extent, *to, width);
    *to += extent * width;
    return failed;
  }
  for (int64_t i = 0; i < extent; ++i) {
    if (make_axes(stage, call, operand, along, at + 1, from + i * stride, to, width)) return -1;
  }
  return 0;
}

int te_select_make_once(te_select_where_call* call, te_select_stage* stage, int operand,
                        int64_t most, char* element, char** memory) {
  int64_t all, width = te_select_item(operand, call->width);
  moving_axes along = axes_of(call, operand, &all);
  if (!stage->make || all == 0) return 0;
  if (along.elements > 1 && (along.elements == all || along.elements * width > most)) return 0;
  char* made = along.elements == 1 ? element : (*memory = malloc((size_t)(along.elements * width)));
  if (!made) return -1;
  char* to = made;
  if (make_axes(stage, call, operand, &along, 0, call->data[operand], &to, width)) return -1;
  int64_t stride = width;
  for (int32_t k = along.count - 1; k >= 0; --k) {
    call->strides[operand][along.axes[k]] = stride;
    stride *= call->shape[along.axes[k]];
  }
  call->data[operand] = made;
  stage->make = NULL;
  return 0;
}
