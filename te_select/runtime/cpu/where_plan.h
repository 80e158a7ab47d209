/* The loops of one call, and the block of the two innermost ones that kernels do. */
#ifndef TE_SELECT_WHERE_PLAN_H_
#define TE_SELECT_WHERE_PLAN_H_

#include "host_cpu.h"
#include "where.h"

enum { LONG_ROW_BYTES = 1024, SHORT_ROW_BYTES = 128 }; /* as schedules/cpu/config.py has them */
enum {
  TILE_BYTES = 1 << 14,
  TILE_ROW_BYTES = TILE_BYTES / 16
}; /* 16 rows: lines of 4-byte items */

typedef struct {
  int64_t extent;
  int64_t stride[TE_SELECT_OPERANDS]; /* bytes */
} te_select_loop;

typedef struct {
  int32_t count;
  int32_t width;
  te_select_loop loops[TE_SELECT_WHERE_RANK + 1]; /* outermost first */
  char* data[TE_SELECT_OPERANDS];
} te_select_nest;

/* m rows of n elements, with the bytes from one to the next. */
typedef struct {
  int64_t m, n;
  int64_t row[TE_SELECT_OPERANDS], col[TE_SELECT_OPERANDS];
} te_select_block;

static inline int64_t te_select_item(int operand, int32_t width) {
  return operand == COND ? 1 : width;
}

/* Makes the loops of a call: no unit axes, the strides of out descending and positive, neighbours
 * merged where every operand allows it. An element of no kernel's width is a loop of its own. False
 * where out has no element. */
int te_select_make_nest(const te_select_where_call* call, te_select_nest* nest);

/* Copies m x n elements of `item` bytes; it walks first along the smaller strides. */
void te_select_copy(char* to, int64_t to_row, int64_t to_col, const char* from, int64_t from_row,
                    int64_t from_col, int64_t m, int64_t n, int64_t item);

/* Whether along its rows every operand of a block stays, or lies side by side. */
int te_select_is_smooth(const te_select_block* block, int32_t width);

/* The number of the kernel of rows for a block; -1 where none is needed, or none fits. */
int te_select_rows_number(const te_select_block* block, int32_t width);

/* Selects a block that is smooth; by itself, or by copies of what is not in tiles. The tile is no
 * larger than TILE_BYTES. Nonzero means failure. */
int te_select_run_block(const te_select_where_kernels* kernels, const te_select_block* block,
                        int32_t width, char* const* data, int64_t flags);
int te_select_run_tile(const te_select_where_kernels* kernels, const te_select_block* block,
                       int32_t width, char* const* data);

#endif
