/* The walk of where, in the library of its kernels: the loops of one call, and the block of the two
 * innermost ones, which kernels do. */
#pragma once

#include "cond_sampling.h"
#include "pool.h"
#include "where_abi.h"

/* Rows that have a kernel each, and rows that share vectors, as the schedules know them. */
enum { TE_SELECT_LONG_ROW_BYTES = 1024, TE_SELECT_SHORT_ROW_BYTES = 128 };
/* Rows below this go to a kernel of rows, many at a time, at the speed of a kernel of the very shape.
 * One by one, rows of 1,264 bytes took 1.2-1.4x the time (Zen 5). */
enum { TE_SELECT_JOINED_ROW_BYTES = 4096 };
enum { TE_SELECT_TILE_BYTES = 1 << 14 }; /* of one operand */
/* Of a tile of 16 rows: a column of 4-byte elements is a cache line. */
enum { TE_SELECT_TILE_ROW_BYTES = TE_SELECT_TILE_BYTES / 16 };

typedef struct {
  int32_t count;
  int32_t width;
  te_select_loop loops[TE_SELECT_WHERE_RANK + 1]; /* outermost first */
  char* data[TE_SELECT_OPERANDS];
} te_select_nest;

/* m rows of n elements; row and col are the bytes from one row or one element to the next. */
typedef struct {
  int64_t m, n;
  int64_t row[TE_SELECT_OPERANDS], col[TE_SELECT_OPERANDS];
} te_select_block;

/* How an input is converted on the way. */
typedef struct {
  te_select_where_run make; /* NULL: it is not */
  int32_t item;             /* bytes of an item in memory */
  int32_t flags;
  const char* bits; /* where booleans in bits begin, whose addresses count bits; else NULL */
} te_select_stage;

static inline int te_select_is_staged(const te_select_stage* stages, int operand) {
  return stages && operand < TE_SELECT_INPUTS && stages[operand].make;
}

/* Whether cond is made of bits; whether a side is made. */
static inline int te_select_makes_bits(const te_select_stage* stages) {
  return te_select_is_staged(stages, TE_SELECT_COND) && stages[TE_SELECT_COND].bits;
}
static inline int te_select_makes_side(const te_select_stage* stages) {
  return te_select_is_staged(stages, TE_SELECT_THEN) || te_select_is_staged(stages, TE_SELECT_ELSE);
}

/* Bytes of an item of an operand in memory. `stages` is NULL if nothing is converted. */
static inline int64_t te_select_item_in_memory(const te_select_stage* stages, int operand,
                                               int32_t width) {
  return te_select_is_staged(stages, operand) ? stages[operand].item
                                              : te_select_item(operand, width);
}

/* Makes n elements of `width` bytes of items that are `stride` bytes apart. Nonzero means failure. */
int te_select_make_run(const te_select_stage* stage, const char* from, int64_t stride, int64_t n,
                       char* to, int64_t width);

/* Makes m rows of n elements of an operand of a block, one after the other. */
int te_select_make_block(const te_select_stage* stage, const te_select_block* block, int operand,
                         const char* from, int64_t m, int64_t n, char* to, int64_t width);

/* Makes all of an input that a call reads again and again, if it has no more than `most` bytes then:
 * in `element` if it has one, else in memory that is to be freed. The call has it instead. Returns -1
 * if there is no memory. */
int te_select_make_once(te_select_where_call* call, te_select_stage* stage, int operand,
                        int64_t most, char* element, char** memory);

/* Makes the loops of a call: without axes of extent 1; with positive strides of out, the largest
 * first; neighbours are merged if the strides of every operand allow it. An element wider than all
 * kernels, or of a width between theirs, becomes a loop of its parts. Returns 0 if out is empty. */
int te_select_make_nest(const te_select_where_call* call, te_select_nest* nest);

/* Copies m x n elements of `item` bytes. The inner loop is the one with the smaller strides. */
void te_select_copy(char* to, int64_t to_row, int64_t to_col, const char* from, int64_t from_row,
                    int64_t from_col, int64_t m, int64_t n, int64_t item);

/* Whether along the rows of a block every operand is contiguous or stays. */
int te_select_is_smooth(const te_select_block* block, int32_t width);

/* The number of the kernel of runs for the rows of a smooth block; 0 if one element is repeated. */
static inline int te_select_runs_number(const te_select_block* block) {
  int moving = 0;
  for (int i = TE_SELECT_COND; i < TE_SELECT_OUT; ++i) moving = 2 * moving + (block->col[i] != 0);
  return moving;
}

/* The number of the kernel of rows for a block; -1 if none is needed, or none fits. */
int te_select_rows_number(const te_select_block* block, int32_t width);

/* Whether a block is given to a kernel of rows that needs a row of an operand's single element. */
int te_select_fills_rows(const te_select_block* block, int32_t width);

/* Select a block. The first function needs a smooth block. The second one first converts inputs, and
 * copies the operands that are not smooth. `room` is memory of this thread for each operand: for a row
 * if the first function fills one, for the whole block in the second. Nonzero means failure. */
int te_select_run_block(const te_select_where_kernels* kernels, const te_select_block* block,
                        int32_t width, char* const* data, int64_t flags, char* const* room);
int te_select_run_tile(const te_select_where_kernels* kernels, const te_select_stage* stages,
                       const te_select_block* block, int32_t width, char* const* data,
                       int64_t flags, char* const* room);

/* Finds out which operands of a tile are converted or copied, as a sum of 1 << operand, and the strides
 * that it has then. */
int te_select_shape_tile(const te_select_stage* stages, const te_select_block* block, int32_t width,
                         te_select_block* tile);

/* A caller's pool of threads, in the place of our own. */
typedef struct {
  te_select_parallel_for run;
  void* pool;
  int32_t threads; /* the most of a call; 0: as many as of our own pool */
} te_select_pool_of_caller;

/* Runs tasks 0 to tasks - 1, each once, of which no more than `threads` run at a time. Returns
 * nonzero if a task did. */
int te_select_parallel_on(const te_select_pool_of_caller* pool, te_select_task task, void* data,
                          int32_t tasks, int32_t threads);

/* Selects with these kernels, on the threads of a caller's pool, or on our own if that is NULL; or
 * only sets `plan`, unless that is NULL. `stages` are those of the inputs, or NULL. Returns one of the
 * results in `where_call.h`. */
int32_t te_select_where_walk(const te_select_where_kernels* kernels,
                             const te_select_machine* machine, const te_select_where_call* call,
                             const te_select_stage* stages, const te_select_pool_of_caller* pool,
                             te_select_where_plan* plan);

/* The `chain` of te_select_where_library. */
int32_t te_select_run_chain(const te_select_where_kernels* kernels,
                            const te_select_machine* machine, const te_select_where_chain* of);
