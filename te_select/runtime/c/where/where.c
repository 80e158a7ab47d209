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
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "decide.h"
#include "float_mode.h"
#include "where_plan.h"

enum {
  WIDE_ROW_BYTES = 1 << 16, /* rows from this size on are pieces by themselves, or are cut */
  LINE_BYTES = 64,          /* of the cache */
  FEW_BYTES = 2048 /* rooms of 10 x 10 elements of 4 bytes; malloc took 25 ns of 80 (Zen 4) */
};

/* A block of the two innermost loops, and the loops around it. */
typedef struct {
  const te_select_where_kernels* kernels;
  const te_select_stage* stages;        /* of the inputs; NULL: nothing is converted */
  uint64_t float_mode;                  /* of the caller, for conversions */
  const te_select_pool_of_caller* pool; /* NULL: our own */
  te_select_nest around;
  te_select_block whole, piece; /* the two loops, and the part of them that is done at once */
  int64_t along, inside, count; /* pieces along n, in the block, and in all blocks */
  int32_t by_tiles, threads, team;
  int64_t flags;
  int64_t room_bytes;
  char* rooms;         /* NULL if pieces need none */
  char few[FEW_BYTES]; /* where they are if they are small, so that short calls allocate nothing */
  char* memory;        /* where they are else */
} walk;

/* Memory of a thread for tiles, or for rows of one value: a stack may be too small for them. */
typedef struct {
  _Atomic int32_t taken;
  char* of[TE_SELECT_OPERANDS];
} room;

static int64_t count_around(const walk* w) {
  int64_t count = 1;
  for (int32_t i = 0; i < w->around.count; ++i) count *= w->around.loops[i].extent;
  return count;
}

/* ---- the plan ----------------------------------------------------------------------------------- */

static int64_t item_of(const walk* w, int operand) {
  return te_select_item_in_memory(w->stages, operand, w->around.width);
}

/* Takes the two innermost loops off the nest, as the block. */
static void take_block(walk* w) {
  static const te_select_loop single = {1, {0, 0, 0, 0}};
  te_select_nest* nest = &w->around;
  te_select_loop row = nest->count ? nest->loops[--nest->count] : single;
  te_select_loop rows = nest->count ? nest->loops[nest->count - 1] : single;
  if (row.extent == 1) { /* a single element */
    for (int i = 0; i < TE_SELECT_OPERANDS; ++i) row.stride[i] = item_of(w, i);
  }
  te_select_block* block = &w->whole;
  block->m = rows.extent;
  block->n = row.extent;
  memcpy(block->row, rows.stride, sizeof(block->row));
  memcpy(block->col, row.stride, sizeof(block->col));
  int is_short = block->m > 1 && block->n * nest->width < TE_SELECT_SHORT_ROW_BYTES;
  int follow = block->n * nest->width < TE_SELECT_JOINED_ROW_BYTES &&
               te_select_rows_number(block, nest->width) >= 0;
  w->by_tiles = w->stages || !te_select_is_smooth(block, nest->width) || (is_short && !follow);
  if (!w->by_tiles && block->n * nest->width >= WIDE_ROW_BYTES) block->m = 1;
  if (block->m > 1) --nest->count;
}

/* Bytes in the cache for each element of a block: what is read, made of it and written. */
static int64_t bytes_per_element(const walk* w) {
  te_select_block tile;
  int64_t bytes = 0;
  int made = te_select_shape_tile(w->stages, &w->whole, w->around.width, &tile);
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (!w->whole.col[i]) continue;
    bytes += item_of(w, i) + (made >> i & 1) * te_select_item(i, w->around.width);
  }
  return bytes;
}

/* Whether along rows no operand has strides that leave gaps. */
static int is_without_gaps(const walk* w) {
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    if (w->whole.col[i] && w->whole.col[i] != item_of(w, i)) return 0;
  }
  return 1;
}

/* Cuts the block into pieces whose operands, converted, stay in the first-level cache. Of bits alone
 * pieces are 4 times as large: 10^6 elements took 1.16 times the time of bytes, not 1.28 (Zen 5). */
static void cut_for_stages(walk* w, int64_t cache) {
  int has_gaps = !is_without_gaps(w);
  if (te_select_makes_bits(w->stages) && !te_select_makes_side(w->stages) && !has_gaps) cache *= 4;
  int64_t width = w->around.width, most = cache / bytes_per_element(w);
  int64_t row = most;
  if (w->whole.m > 1 && has_gaps) row = te_select_least(most, TE_SELECT_TILE_ROW_BYTES / width);
  w->piece = w->whole;
  if (w->whole.n > row) w->piece.n = row / LINE_BYTES * LINE_BYTES; /* whole lines of out */
  w->piece.m = te_select_least(w->whole.m, most / w->piece.n);
}

/* Cuts the block into pieces: tiles fit into their buffers, and every thread has work. */
static void cut_block(walk* w, int64_t tasks) {
  int64_t width = w->around.width;
  int64_t around = count_around(w);
  w->piece = w->whole;
  if (w->by_tiles) {
    w->piece.n = te_select_least(
        w->whole.n, (w->whole.m > 1 ? TE_SELECT_TILE_ROW_BYTES : TE_SELECT_TILE_BYTES) / width);
    w->piece.m = te_select_least(w->whole.m, TE_SELECT_TILE_BYTES / (w->piece.n * width));
  } else if (w->threads > 1 && around < tasks) {
    int64_t wanted = te_select_ceil_div(tasks, around);
    int64_t lines = TE_SELECT_LONG_ROW_BYTES / width; /* stores past the cache need whole lines */
    if (w->whole.m > 1) {
      w->piece.m = te_select_ceil_div(w->whole.m, wanted);
    } else {
      w->piece.n = te_select_least(
          w->whole.n, te_select_ceil_div(te_select_ceil_div(w->whole.n, wanted), lines) * lines);
    }
  }
}

/* Bytes in memory; of bits as if they were bytes. */
static int64_t bytes_of(const walk* w, int operand) {
  int64_t bytes = item_of(w, operand);
  for (int32_t i = 0; i < w->around.count; ++i) {
    if (w->around.loops[i].stride[operand]) bytes *= w->around.loops[i].extent;
  }
  return bytes;
}

/* ---- rooms -------------------------------------------------------------------------------------- */

static room* room_at(const walk* w, int32_t number) {
  return (room*)(w->rooms + number * w->room_bytes);
}

/* Makes a room for each thread, before anything is written. Returns 0 if there is no memory. */
static int make_rooms(walk* w) {
  w->memory = w->rooms = NULL;
  if (!w->by_tiles && (w->whole.m == 1 || !te_select_fills_rows(&w->whole, w->around.width))) {
    return 1;
  }
  int64_t elements = w->piece.n * (w->by_tiles ? w->piece.m : 1);
  elements =
      te_select_ceil_div(elements, LINE_BYTES) * LINE_BYTES; /* everything begins on a line */
  w->room_bytes = LINE_BYTES + elements * (1 + 3 * w->around.width);
  int64_t all = LINE_BYTES + w->threads * w->room_bytes;
  char* memory = all <= (int64_t)sizeof(w->few) ? w->few : (w->memory = malloc((size_t)all));
  if (!memory) return 0;
  w->rooms = memory + -(uintptr_t)memory % LINE_BYTES;
  for (int32_t number = 0; number < w->threads; ++number) {
    room* r = room_at(w, number);
    char* at = (char*)r + LINE_BYTES;
    r->taken = 0;
    for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
      r->of[i] = at;
      at += elements * te_select_item(i, w->around.width);
    }
  }
  return 1;
}

/* A room that is free: no more tasks run at once than there are rooms. */
static room* take_room(const walk* w, int32_t task, int32_t tasks) {
  int32_t number = (int32_t)te_select_share(w->threads, task, tasks);
  while (atomic_exchange(&room_at(w, number)->taken, 1)) number = (number + 1) % w->threads;
  return room_at(w, number);
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static int run_block(const walk* w, const te_select_block* block, char* const* data,
                     const room* r) {
  char* const* of = r ? r->of : NULL;
  if (w->by_tiles) {
    int64_t flags = w->stages ? w->flags : 0;
    return te_select_run_tile(w->kernels, w->stages, block, w->around.width, data, flags, of);
  }
  return te_select_run_block(w->kernels, block, w->around.width, data, w->flags, of);
}

static int run_piece(const walk* w, char* const* start, int64_t number, const room* r) {
  int64_t m = number / w->along * w->piece.m, n = number % w->along * w->piece.n;
  te_select_block block = w->piece;
  block.m = te_select_least(block.m, w->whole.m - m);
  block.n = te_select_least(block.n, w->whole.n - n);
  char* data[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) {
    data[i] = start[i] + m * block.row[i] + n * block.col[i];
  }
  return run_block(w, &block, data, r);
}

/* Does the pieces from `first` to `end` - 1. `at` has the indices of the loops around them. */
static int run_pieces(const walk* w, int64_t first, int64_t end, const room* r) {
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
    int failed = run_piece(w, data, piece, r);
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
  room* r = w->rooms ? take_room(w, task, tasks) : NULL;
  int64_t first = te_select_share(w->count, task, tasks);
  uint64_t own_mode = w->stages ? te_select_float_mode() : 0;
  if (w->stages) te_select_set_float_mode(w->float_mode);
  int failed = run_pieces(w, first, te_select_share(w->count, task + 1, tasks), r);
  if (w->stages) te_select_set_float_mode(own_mode);
  if (r) atomic_store(&r->taken, 0);
  return failed;
}

static int run_cut(walk* w, int64_t tasks) {
  if (!w->around.count && w->piece.m == w->whole.m && w->piece.n == w->whole.n) {
    /* Short calls: without the six divisions. */
    return run_block(w, &w->whole, w->around.data, w->rooms ? room_at(w, 0) : NULL);
  }
  w->along = te_select_ceil_div(w->whole.n, w->piece.n);
  w->inside = w->along * te_select_ceil_div(w->whole.m, w->piece.m);
  w->count = w->inside * count_around(w);
  if (w->threads == 1) return run_task(0, 1, w);
  int32_t count = (int32_t)te_select_least(tasks, w->count);
  return w->pool ? te_select_parallel_on(w->pool, run_task, w, count, w->threads)
                 : te_select_parallel(run_task, w, count, (te_select_crew){w->threads, w->team});
}

/* Decides about the walk; returns its tasks. */
static int32_t decide(walk* w, const te_select_machine* machine,
                      const int64_t bytes[TE_SELECT_OPERANDS]) {
  const te_select_block* block = &w->whole;
  char* const* data = w->around.data;
  te_select_knobs knobs = {
      TE_SELECT_BY_MACHINE, TE_SELECT_BY_MACHINE, TE_SELECT_BY_MACHINE, TE_SELECT_BY_MACHINE,
      bytes[TE_SELECT_COND] * w->around.width == bytes[TE_SELECT_OUT] * item_of(w, TE_SELECT_COND)};
  if (block->col[TE_SELECT_COND] != 1 || te_select_is_staged(w->stages, TE_SELECT_COND))
    knobs.skip = 0; /* it has no runs of booleans in memory, or is one value */
  const te_select_cond cond = {
      .data = data[TE_SELECT_COND],
      .run = block->n,
      .count = w->around.count + (block->m > 1), /* whose loop was the last one */
      .loops = w->around.loops,
      .in_place = data[TE_SELECT_THEN] == data[TE_SELECT_OUT] ||
                  data[TE_SELECT_ELSE] == data[TE_SELECT_OUT],
      .width = w->around.width};
  int32_t of_pool = !w->pool ? 0 : w->pool->threads > 0 ? w->pool->threads : machine->max_threads;
  te_select_manner how = te_select_decide(machine, &knobs, bytes, &cond, of_pool);
  w->threads = how.crew.threads;
  w->team = how.crew.team;
  w->flags = how.flags & ~TE_SELECT_SMALL; /* these kernels have no code of their own for it */
  return how.tasks;
}

/* Walks; nonzero means failure. */
static int run_walk(walk* w, int32_t tasks) {
  if (!make_rooms(w)) return -1;
  int failed = run_cut(w, tasks);
  if (w->memory) free(w->memory); /* short calls spare themselves the call */
  if (w->flags & TE_SELECT_STREAM) te_select_fence();
  return failed;
}

/* Finds the block that a kernel has when inputs are converted. Returns which operands are copied. */
static int shape_staged(const walk* w, te_select_block* tile) {
  int made = te_select_shape_tile(w->stages, &w->piece, w->around.width, tile);
  for (int i = 0; i < TE_SELECT_INPUTS; ++i) made &= ~(te_select_is_staged(w->stages, i) << i);
  return made;
}

int32_t te_select_where_walk(const te_select_where_kernels* kernels,
                             const te_select_machine* machine, const te_select_where_call* call,
                             const te_select_stage* stages, const te_select_pool_of_caller* pool,
                             te_select_where_plan* plan) {
  walk w; /* to set all of it to zero would take a tenth of a short call */
  w.kernels = kernels;
  w.stages = stages;
  w.float_mode = stages ? te_select_float_mode() : 0;
  w.pool = pool;
  if (!te_select_make_nest(call, &w.around)) return TE_SELECT_WHERE_DONE;
  int width = te_select_width_index(w.around.width);
  /* The runs of a width come together, and this one is added last. */
  if (!te_select_kernel_at(&kernels->runs[width][TE_SELECT_RUNS - 1])) {
    return TE_SELECT_WHERE_NO_KERNEL;
  }
  int64_t bytes[TE_SELECT_OPERANDS];
  for (int i = 0; i < TE_SELECT_OPERANDS; ++i) bytes[i] = bytes_of(&w, i);
  if (te_select_makes_bits(stages)) bytes[TE_SELECT_COND] = (bytes[TE_SELECT_COND] + 7) / 8;
  take_block(&w);
  int32_t tasks = 1;
  w.threads = 1;
  w.team = 0;
  w.flags = machine->decisions.backwards ? TE_SELECT_BACKWARDS : 0;
  /* Small calls spare themselves 10 ns of 250. */
  if (te_select_count_moved(bytes) >= machine->small_below) tasks = decide(&w, machine, bytes);
  if (stages) cut_for_stages(&w, 2 * machine->l1 / 3);
  else cut_block(&w, tasks);
  te_select_block tile;
  const te_select_block* of_kernel = stages ? &tile : &w.whole;
  int copied = stages ? shape_staged(&w, &tile) : w.by_tiles << TE_SELECT_OUT;
  if (plan) {
    plan->threads = w.threads;
    plan->by_team = w.team != 0;
    plan->past_cache = (w.flags & TE_SELECT_STREAM) && !(copied >> TE_SELECT_OUT & 1);
    plan->by_tiles = copied != 0;
    plan->block = stages ? (int32_t)(w.piece.m * w.piece.n) : 0;
  } else if (run_walk(&w, tasks)) {
    return TE_SELECT_WHERE_FAILED;
  }
  if (copied) return TE_SELECT_WHERE_DONE;
  int number = te_select_rows_number(of_kernel, w.around.width);
  if (number < 0) return TE_SELECT_RUNS * width + te_select_runs_number(of_kernel);
  int is_missing = !te_select_kernel_at(&kernels->rows[width][number]);
  number += TE_SELECT_WIDTHS * TE_SELECT_RUNS + TE_SELECT_ROWS * width;
  return is_missing ? number + TE_SELECT_WHERE_MISSING_KERNEL : number;
}
