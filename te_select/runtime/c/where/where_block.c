/* The innermost loops of a call: chooses their kernel, and has copied what no kernel can read. */
#include <string.h>

#include "where_plan.h"

enum { ALONG_BOTH, DOWN, ALONG }; /* how an operand moves in rows; see `rows` in where_abi.h */
enum { WIDEST_IN_ROWS = 8 };      /* bytes of the widest elements that have kernels of rows */

/* ---- blocks ------------------------------------------------------------------------------------- */

int te_select_is_smooth(const te_select_block* block, int32_t width) {
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (block->col[i] != te_select_item(i, width) && (block->col[i] || i == TE_SELECT_OUT))
      return 0;
  }
  return 1;
}

/* Whether the rows of an operand are one long row. */
static int is_merged(const te_select_block* block, int operand) {
  return block->row[operand] == block->n * block->col[operand];
}

static int digit(const te_select_block* block, int operand, int64_t item) {
  int64_t row = block->row[operand], col = block->col[operand];
  if (row == 0) return ALONG; /* if it has one element, run_rows makes a row of it */
  if (col == 0) return row == item ? DOWN : -1;
  return row == block->n * item ? ALONG_BOTH : -1;
}

int te_select_rows_number(const te_select_block* block, int32_t width) {
  if (width > WIDEST_IN_ROWS || block->m <= 1 || block->n * width >= TE_SELECT_JOINED_ROW_BYTES ||
      !is_merged(block, TE_SELECT_OUT))
    return -1;
  int cond = digit(block, TE_SELECT_COND, 1);
  int then = digit(block, TE_SELECT_THEN, width), else_ = digit(block, TE_SELECT_ELSE, width);
  if (cond < 0 || then < 0 || else_ < 0 || (cond == then && then == else_)) return -1;
  return 9 * cond + 3 * then + else_;
}

static int is_single(const te_select_block* block, int operand) {
  return !block->row[operand] && !block->col[operand];
}

int te_select_fills_rows(const te_select_block* block, int32_t width) {
  int singles = 0;
  for (int i = TE_SELECT_COND; i < TE_SELECT_OUT; ++i) singles += is_single(block, i);
  return singles && te_select_rows_number(block, width) >= 0;
}

static void fill_row(char* const* data, int64_t n, int32_t width) {
  const char* side = *data[TE_SELECT_COND] ? data[TE_SELECT_THEN] : data[TE_SELECT_ELSE];
  char element[16];
  memcpy(element, side, (size_t)width); /* the side may be the first element of out */
  te_select_copy(data[TE_SELECT_OUT], 0, width, element, 0, 0, 1, n, width);
}

/* Does m rows of n elements one by one, with a kernel of runs. */
static int run_each(const te_select_where_kernels* kernels, const te_select_block* block,
                    int32_t width, char* const* data, int64_t m, int64_t n, int64_t flags) {
  int moving = te_select_runs_number(block);
  te_select_where_run kernel =
      te_select_kernel_at(&kernels->runs[te_select_width_index(width)][moving]);
  char* at[TE_SELECT_OPERANDS];
  memcpy(at, data, sizeof(at));
  for (int64_t i = 0; i < m; ++i) {
    if (!moving) {
      fill_row(at, n, width);
    } else {
      int failed = kernel((void* const*)at, &n, flags);
      if (failed) return failed;
    }
    for (int k = 0; k < TE_SELECT_OPERANDS; ++k) at[k] += block->row[k];
  }
  return 0;
}

static int run_rows(te_select_where_run kernel, const te_select_block* block, int32_t width,
                    char* const* data, int64_t flags, char* const* room) {
  char* given[TE_SELECT_OPERANDS];
  memcpy(given, data, sizeof(given));
  for (int i = TE_SELECT_COND; i < TE_SELECT_OUT; ++i) {
    if (!is_single(block, i)) continue;
    int64_t item = te_select_item(i, width);
    te_select_copy(room[i], 0, item, data[i], 0, 0, 1, block->n, item);
    given[i] = room[i];
  }
  int64_t sizes[] = {block->m, block->n};
  return kernel((void* const*)given, sizes, flags);
}

int te_select_run_block(const te_select_where_kernels* kernels, const te_select_block* block,
                        int32_t width, char* const* data, int64_t flags, char* const* room) {
  int merged = 1;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) merged &= is_merged(block, i);
  if (merged) return run_each(kernels, block, width, data, 1, block->m * block->n, flags);
  int number = te_select_rows_number(block, width);
  te_select_where_run kernel =
      number < 0 ? NULL : te_select_kernel_at(&kernels->rows[te_select_width_index(width)][number]);
  if (kernel) return run_rows(kernel, block, width, data, flags, room);
  return run_each(kernels, block, width, data, block->m, block->n, flags);
}

/* ---- tiles -------------------------------------------------------------------------------------- */

/* Whether an operand must be copied: its rows are strided, or they are short and no kernel could do
 * several at once. */
static int must_be_copied(const te_select_block* block, int operand, int32_t width) {
  int64_t item = te_select_item(operand, width);
  int64_t col = block->col[operand];
  if (col != item && (col || operand == TE_SELECT_OUT)) return 1;
  if (block->m == 1 || block->n * width >= TE_SELECT_SHORT_ROW_BYTES) return 0;
  return operand == TE_SELECT_OUT ? !is_merged(block, TE_SELECT_OUT)
                                  : digit(block, operand, item) < 0;
}

int te_select_shape_tile(const te_select_stage* stages, const te_select_block* block, int32_t width,
                         te_select_block* tile) {
  int made = 0;
  *tile = *block;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (!te_select_is_staged(stages, i) && !must_be_copied(block, i, width)) continue;
    int64_t item = te_select_item(i, width);
    int64_t m = block->row[i] || i == TE_SELECT_OUT ? block->m : 1;
    int64_t n = block->col[i] || i == TE_SELECT_OUT ? block->n : 1;
    tile->row[i] = m > 1 ? n * item : 0;
    tile->col[i] = n > 1 || block->n == 1 ? item : 0;
    made |= 1 << i;
  }
  return made;
}

static int make_operand(const te_select_stage* stages, const te_select_block* block, int operand,
                        int32_t width, const char* from, char* to) {
  int64_t item = te_select_item(operand, width);
  int64_t m = block->row[operand] ? block->m : 1, n = block->col[operand] ? block->n : 1;
  if (te_select_is_staged(stages, operand)) {
    return te_select_make_block(&stages[operand], block, operand, from, m, n, to, item);
  }
  te_select_copy(to, n * item, item, from, block->row[operand], block->col[operand], m, n, item);
  return 0;
}

/* The side that a tile does not read, because cond is one value; else -1. */
static int unread_side(const te_select_block* tile, const char* cond) {
  int64_t count = tile->m * tile->n;
  int is_run =
      tile->col[TE_SELECT_COND] == 1 && (tile->m == 1 || tile->row[TE_SELECT_COND] == tile->n);
  if (!is_run || memcmp(cond, cond + 1, (size_t)(count - 1)) != 0) return -1;
  return *cond ? TE_SELECT_ELSE : TE_SELECT_THEN;
}

/* Lets cond be one value, and both sides the one that it selects. */
static void read_other_side(te_select_block* tile, char** given, int unread) {
  int read = TE_SELECT_THEN + TE_SELECT_ELSE - unread;
  tile->row[TE_SELECT_COND] = tile->col[TE_SELECT_COND] = 0;
  tile->row[unread] = tile->row[read];
  tile->col[unread] = tile->col[read];
  given[unread] = given[read];
}

int te_select_run_tile(const te_select_where_kernels* kernels, const te_select_stage* stages,
                       const te_select_block* block, int32_t width, char* const* data,
                       int64_t flags, char* const* room) {
  te_select_block tile;
  char* given[TE_SELECT_OPERANDS];
  int made = te_select_shape_tile(stages, block, width, &tile), unread = -1;
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) given[i] = made >> i & 1 ? room[i] : data[i];
  for (int i = TE_SELECT_COND; i < TE_SELECT_OUT; ++i) {
    if (made >> i & 1 && i != unread && make_operand(stages, block, i, width, data[i], given[i])) {
      return -1;
    }
    if (i == TE_SELECT_COND && te_select_makes_side(stages)) unread = unread_side(&tile, given[i]);
  }
  if (unread >= 0) read_other_side(&tile, given, unread);
  int in_place = given[TE_SELECT_OUT] == data[TE_SELECT_OUT];
  int failed = te_select_run_block(kernels, &tile, width, given, in_place ? flags : 0, room);
  if (!failed && !in_place) {
    te_select_copy(data[TE_SELECT_OUT], block->row[TE_SELECT_OUT], block->col[TE_SELECT_OUT],
                   given[TE_SELECT_OUT], tile.row[TE_SELECT_OUT], width, block->m, block->n, width);
  }
  return failed;
}
