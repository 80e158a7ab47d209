/* Selects operands of any shapes and strides, with kernels for the one or two innermost loops.
 *
 * The loops of a call are put in the order of out's memory and merged. There are three ways to do
 * the innermost ones:
 *
 * - A kernel of runs does the innermost loop, if along it every operand is contiguous or stays.
 * - A kernel of rows does the two innermost loops, if rows are short and follow each other in
 *   memory.
 * - Otherwise tiles of the two innermost loops are copied to buffers that stay in the cache.
 *
 * The loops around them are walked here; large calls walk them in tasks of the pool. */
#include "where.h"

#include <string.h>

#include "look.h"
#include "machine.h"
#include "shares.h"
#include "where_plan.h"

enum { WIDE_ROW_BYTES = 1 << 16 }; /* rows from this size on are pieces by themselves, or are cut */

/* A block of the two innermost loops, and the loops around it. */
typedef struct {
  const te_select_where_kernels* kernels;
  te_select_nest around;
  te_select_block whole, piece; /* the two loops, and the part of them that is done at once */
  int64_t along, inside, count; /* pieces along n, in the block, and in all blocks */
  int32_t by_tiles;
  int64_t flags;
} walk;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t count_around(const walk* w) {
  int64_t count = 1;
  for (int32_t i = 0; i < w->around.count; ++i) count *= w->around.loops[i].extent;
  return count;
}

/* ---- the plan ----------------------------------------------------------------------------------- */

static int rows_follow(const te_select_block* block, int32_t width) {
  return block->n * width < JOINED_ROW_BYTES && te_select_rows_number(block, width) >= 0;
}

/* Takes the two innermost loops off the nest, as the block. */
static void take_block(walk* w) {
  static const te_select_loop single = {1, {0, 0, 0, 0}};
  te_select_nest* nest = &w->around;
  te_select_loop row = nest->count ? nest->loops[--nest->count] : single;
  te_select_loop rows = nest->count ? nest->loops[nest->count - 1] : single;
  if (row.extent == 1) { /* a single element */
    for (int i = 0; i < TE_SELECT_OPERANDS; ++i) row.stride[i] = te_select_item(i, nest->width);
  }
  te_select_block* block = &w->whole;
  block->m = rows.extent;
  block->n = row.extent;
  memcpy(block->row, rows.stride, sizeof(block->row));
  memcpy(block->col, row.stride, sizeof(block->col));
  int is_short = block->m > 1 && block->n * nest->width < SHORT_ROW_BYTES;
  int follow = rows_follow(block, nest->width);
  w->by_tiles = !te_select_is_smooth(block, nest->width) || (is_short && !follow);
  if (!w->by_tiles && block->n * nest->width >= WIDE_ROW_BYTES) block->m = 1;
  if (block->m > 1) --nest->count;
}

/* Cuts the block into pieces: tiles fit into their buffers, and every thread has work. */
static void cut(walk* w, int32_t threads, int64_t tasks) {
  int64_t width = w->around.width, around = count_around(w);
  w->piece = w->whole;
  if (w->by_tiles) {
    w->piece.n = least(w->whole.n, (w->whole.m > 1 ? TILE_ROW_BYTES : TILE_BYTES) / width);
    w->piece.m = least(w->whole.m, TILE_BYTES / (w->piece.n * width));
  } else if (threads > 1 && around < tasks) {
    int64_t wanted = ceil_div(tasks, around);
    int64_t lines = LONG_ROW_BYTES / width; /* stores past the cache need whole lines */
    if (w->whole.m > 1) {
      w->piece.m = ceil_div(w->whole.m, wanted);
    } else {
      w->piece.n = least(w->whole.n, ceil_div(ceil_div(w->whole.n, wanted), lines) * lines);
    }
  }
}

static int64_t bytes_of(const te_select_nest* nest, int operand) {
  int64_t bytes = te_select_item(operand, nest->width);
  for (int32_t i = 0; i < nest->count; ++i) {
    if (nest->loops[i].stride[operand]) bytes *= nest->loops[i].extent;
  }
  return bytes;
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static int run_block(const walk* w, const te_select_block* block, char* const* data) {
  if (w->by_tiles) return te_select_run_tile(w->kernels, block, w->around.width, data);
  return te_select_run_block(w->kernels, block, w->around.width, data, w->flags);
}

static int run_piece(const walk* w, char* const* start, int64_t number) {
  int64_t m = number / w->along * w->piece.m, n = number % w->along * w->piece.n;
  te_select_block block = w->piece;
  block.m = least(block.m, w->whole.m - m);
  block.n = least(block.n, w->whole.n - n);
  char* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    data[i] = start[i] + m * block.row[i] + n * block.col[i];
  }
  return run_block(w, &block, data);
}

/* Does the pieces from `first` to `end` - 1. `at` has the indices of the loops around them. */
static int run_pieces(const walk* w, int64_t first, int64_t end) {
  const te_select_nest* nest = &w->around;
  int64_t at[TE_SELECT_WHERE_RANK + 1], rest = first / w->inside, piece = first % w->inside;
  char* data[TE_SELECT_OPERANDS];
  memcpy(data, nest->data, sizeof(data));
  for (int32_t k = nest->count - 1; k >= 0; --k) {
    at[k] = rest % nest->loops[k].extent;
    rest /= nest->loops[k].extent;
    for (int i = 0; i < TE_SELECT_OPERANDS; ++i) data[i] += at[k] * nest->loops[k].stride[i];
  }
  for (int64_t number = first; number < end; ++number) {
    int failed = run_piece(w, data, piece);
    if (failed) return failed;
    if (++piece < w->inside) continue;
    piece = 0;
    for (int32_t k = nest->count - 1; k >= 0; --k) {
      const te_select_loop* loop = &nest->loops[k];
      int64_t steps = ++at[k] < loop->extent ? 1 : 1 - loop->extent;
      for (int i = 0; i < TE_SELECT_OPERANDS; ++i) data[i] += steps * loop->stride[i];
      if (steps == 1) break;
      at[k] = 0;
    }
  }
  return 0;
}

static int run_task(int32_t task, int32_t tasks, void* data) {
  const walk* w = data;
  return run_pieces(w, te_select_share(w->count, task, tasks),
                    te_select_share(w->count, task + 1, tasks));
}

static int run_cut(walk* w, int32_t threads, int64_t tasks) {
  if (!w->around.count && w->piece.m == w->whole.m && w->piece.n == w->whole.n) {
    return run_block(w, &w->whole, w->around.data); /* short calls: without the six divisions */
  }
  w->along = ceil_div(w->whole.n, w->piece.n);
  w->inside = w->along * ceil_div(w->whole.m, w->piece.m);
  w->count = w->inside * count_around(w);
  if (threads == 1) return run_pieces(w, 0, w->count);
  return te_select_parallel(run_task, w, (int32_t)least(tasks, w->count), threads);
}

static int looks(const walk* w, const te_select_machine* machine, int reads_once) {
  const te_select_block* block = &w->whole;
  if (block->col[COND] != 1) return 0; /* its runs are no runs of memory, or it is one value */
  te_select_cond cond = {.data = w->around.data[COND], .run = block->n, .count = w->around.count};
  for (int32_t k = 0; k < w->around.count; ++k) {
    cond.extent[k] = w->around.loops[k].extent;
    cond.stride[k] = w->around.loops[k].stride[COND];
  }
  if (block->m > 1) {
    cond.extent[cond.count] = block->m;
    cond.stride[cond.count++] = block->row[COND];
  }
  return te_select_looks(machine, &cond, reads_once, w->around.width);
}

static int32_t run_walk(walk* w) {
  const te_select_machine* machine = te_select_this_machine();
  int64_t out = bytes_of(&w->around, OUT), cond = bytes_of(&w->around, COND);
  int64_t then = bytes_of(&w->around, THEN), other = bytes_of(&w->around, ELSE);
  int64_t moved = te_select_moved(cond, then, other, out);
  take_block(w);
  int32_t threads = 1;
  int64_t tasks = 1, grain = machine->decisions.bytes_per_thread;
  if (grain > 0 && moved >= 2 * grain) {
    threads = te_select_threads_for(moved, grain);
    tasks = te_select_tasks_for(moved, threads);
    if (looks(w, machine, cond * w->around.width == out)) w->flags |= TE_SELECT_SKIP;
  }
  int is_fill = 2 * (moved - out) < out;
  if (te_select_streams(machine, moved, out, is_fill, threads)) w->flags |= TE_SELECT_STREAM;
  if (machine->decisions.backwards) w->flags |= TE_SELECT_BACKWARDS;
  cut(w, threads, tasks);
  int failed = run_cut(w, threads, tasks);
  if (w->flags & TE_SELECT_STREAM) te_select_fence();
  return failed ? TE_SELECT_WHERE_FAILED : TE_SELECT_WHERE_DONE;
}

int32_t te_select_where_walk(const te_select_where_kernels* kernels,
                             const te_select_where_call* call) {
  walk w; /* to set all of it to zero would take a tenth of a short call */
  w.kernels = kernels;
  w.flags = 0;
  if (!te_select_make_nest(call, &w.around)) return TE_SELECT_WHERE_DONE;
  int width = __builtin_ctz((unsigned)w.around.width);
  for (int i = 1; i < TE_SELECT_RUNS; ++i) {
    if (!kernels->runs[width][i]) return TE_SELECT_WHERE_NO_KERNEL;
  }
  int32_t result = run_walk(&w);
  if (result != TE_SELECT_WHERE_DONE || w.by_tiles) return result;
  int number = te_select_rows_number(&w.whole, w.around.width);
  if (number < 0 || kernels->rows[width][number]) return result;
  return TE_SELECT_WHERE_WISH + TE_SELECT_ROWS * width + number;
}
